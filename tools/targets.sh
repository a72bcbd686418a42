#!/usr/bin/env bash
# Tests the library on emulated processors, which this machine need not have.
#
#     tools/targets.sh [x86_64] [aarch64]
#
# `x86_64` runs the tests of the crate `tensor` on processors without AVX2, and the pinned bits. `aarch64` builds and runs both for AArch64,
# with NEON and in the mode of equal bits, and one case in 20 of the conformance set. Without arguments it runs both parts. It needs
# qemu-user. The second part also needs Debian's rustc-web, libstd-rust-web-dev:arm64 and gcc-aarch64-linux-gnu. With CI=true, root's run
# installs them.
# The last lines name the parts that did not run. The exit code is 1 if a test failed.
set -uo pipefail
if [ "${1:-}" = -h ] || [ "${1:-}" = --help ]; then
    sed -n '2,10s/^# \{0,1\}//p' "$0"
    exit 0
fi
cd "$(dirname "$0")/.."
parts=${*:-x86_64 aarch64}
target=${CARGO_TARGET_DIR:-target}
failed=()
skipped=()

step() { printf '\n== %s (%d s)\n' "$*" "$SECONDS"; }
check() { step "$1" && "${@:2}" || failed+=("$1"); }

# Installs packages if this is allowed.
packages() {
    [ "${CI:-}" = true ] && [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null || return 0
    DEBIAN_FRONTEND=noninteractive apt-get -qq install -y --no-install-recommends "$@" >/dev/null
}

# Builds the tests of a package with the given arguments of cargo, and prints the path of the program.
program() {
    cargo test --no-run --message-format=json "$@" | sed -n 's/.*"executable":"\([^"]*\)".*/\1/p' | tail -n 1
}

# Proptest makes fewer cases, because an emulator takes 10 to 50 times as long as a processor. Timing tests do not exist.
export PROPTEST_CASES=${PROPTEST_CASES:-8}

x86_64() {
    command -v qemu-x86_64 >/dev/null || packages qemu-user
    if [ "$(uname -m)" != x86_64 ] || ! command -v qemu-x86_64 >/dev/null; then
        skipped+=("x86_64: needs a machine with x86-64 and qemu-x86_64 (Debian's qemu-user)")
        return
    fi
    tensor=$(program -p wengert-tensor --lib)
    alone=$(program -p wengert-tests --test alone)
    for processor in Nehalem SandyBridge Haswell; do
        check "tests of tensor on $processor" qemu-x86_64 -cpu "$processor" "$tensor" --test-threads=2
    done
    # This test starts the emulators itself.
    check "the pinned bits on emulated processors" "$alone" equal_bits
}

aarch64() {
    packages qemu-user gcc-aarch64-linux-gnu libc6-dev-arm64-cross rustc-web
    if [ "${CI:-}" = true ] && [ "$(id -u)" = 0 ] && command -v dpkg >/dev/null; then
        dpkg --add-architecture arm64 && apt-get -qq update && packages libstd-rust-web-dev:arm64
    fi
    if ! command -v qemu-aarch64 >/dev/null || ! command -v aarch64-linux-gnu-gcc >/dev/null; then
        skipped+=("aarch64: needs qemu-aarch64 and aarch64-linux-gnu-gcc")
        return
    fi
    # Debian's compiler has the standard library of AArch64 in /usr. A toolchain of rustup may have it too.
    local rustc=rustc
    [ -x /usr/bin/rustc ] && rustc=/usr/bin/rustc
    if ! ls "$("$rustc" --print sysroot)"/lib/rustlib/aarch64-unknown-linux-gnu/lib/libstd-* >/dev/null 2>&1; then
        skipped+=("aarch64: $rustc has no standard library for AArch64")
        return
    fi
    export RUSTC=$rustc CARGO_BUILD_TARGET=aarch64-unknown-linux-gnu CARGO_TARGET_DIR=$target/aarch64
    export CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER=aarch64-linux-gnu-gcc
    # With several threads, this emulator may stand still.
    export WENGERT_NUM_THREADS=1
    tensor=$(program -p wengert-tensor --lib)
    alone=$(program -p wengert-tests --test alone)
    conformance=$(program -p wengert-tests --test conformance)
    # The emulator of qemu 7.2 stood still at the first test. The time limit ends such a run.
    emulator=(timeout "${LIMIT:-1800}" qemu-aarch64 -L /usr/aarch64-linux-gnu)
    for set in neon portable; do
        export WENGERT_SIMD=$set
        check "tests of tensor on AArch64 with $set" "${emulator[@]}" "$tensor" --test-threads=1 "${AARCH64_SKIP[@]}"
        check "one case in 20 of the conformance set with $set" "${emulator[@]}" "$conformance" --every=20
    done
    check "the pinned bits on AArch64" "${emulator[@]}" "$alone" equal_bits --test-threads=1
}

# Tests that start many threads.
AARCH64_SKIP=(--skip memory::threads)

for part in $parts; do
    case $part in
        x86_64 | aarch64) "$part" ;;
        *)
            echo "unknown part: $part" >&2
            exit 2
            ;;
    esac
done

step result
[ "${#skipped[@]}" = 0 ] || printf 'NOT RUN: %s\n' "${skipped[@]}"
[ "${#failed[@]}" = 0 ] || printf 'FAILED: %s\n' "${failed[@]}"
[ "${#failed[@]}" = 0 ]
