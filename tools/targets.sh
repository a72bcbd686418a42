#!/usr/bin/env bash
# Tests the library for processors and systems which this machine need not have.
#
#     tools/targets.sh [--checkpoints] [PART ...]
#
# Most parts train four small networks in the mode of equal bits: `train_digits`, the digits CNN, the GRU and the transformer of the course.
# They print the SHA-256 of each checkpoint and fail if it is not the one in tests/fixtures/checkpoints.sha256. `native` trains on this
# machine, `x86_64` on emulated processors with and without AVX2, `aarch64` and `wasm32` on those targets. `s390x` (64 bits, big-endian) and
# `i686` (32 bits) train only the first network. `windows` and `macos` only check that the library compiles. `x86_64` and `aarch64` also run
# the tests of the crate `tensor` and the pinned bits, and `aarch64` one case in 20 of the conformance set. With --checkpoints, these tests
# are left out. Without names, all parts run.
#
# All parts but the first two need Debian's rustc-web, cargo-web and rust-web-src, which build the standard library. `x86_64`, `aarch64` and
# `s390x` need qemu-user 10 (Debian's backports; version 7.2 stands still in threads). `aarch64`, `s390x` and `i686` need the linker
# gcc-TARGET-linux-gnu, `wasm32` wasi-libc, lld and Node 20, `windows` binutils-mingw-w64-x86-64. With CI=true, root's run installs all of
# these except Node. LIMIT is the longest time of a program in seconds, 1800 if it is not set. The last lines name the parts that did not run
# and the failures. The exit code is 1 if a test failed.
set -uo pipefail
if [ "${1:-}" = -h ] || [ "${1:-}" = --help ]; then
    sed -n '2,17s/^# \{0,1\}//p' "$0"
    exit 0
fi
cd "$(dirname "$0")/.."
root=$PWD
only_checkpoints=
if [ "${1:-}" = --checkpoints ]; then
    only_checkpoints=true
    shift
fi
parts=${*:-native x86_64 aarch64 wasm32 s390x i686 windows macos}
target=$(realpath -m "${CARGO_TARGET_DIR:-target}")
limit=${LIMIT:-1800}
failed=()
skipped=()
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

step() { printf '\n== %s (%d s)\n' "$*" "$SECONDS"; }
check() { step "$1" && "${@:2}" || failed+=("$1"); }

# Installs packages if this is allowed.
packages() {
    [ "${CI:-}" = true ] && [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null || return 0
    if [ -z "${updated:-}" ]; then
        updated=true
        timeout 120 apt-get -qq update >/dev/null 2>&1 </dev/null
    fi
    DEBIAN_FRONTEND=noninteractive timeout 300 apt-get -qq install -y --no-install-recommends "$@" >/dev/null 2>&1 </dev/null
}

# Installs the emulator, from Debian's backports if the machine knows them.
install_emulator() {
    command -v "$1" >/dev/null && return
    packages -t "$(sed -n 's/^VERSION_CODENAME=//p' /etc/os-release)-backports" qemu-user || packages qemu-user
}

# Runs a program with the time limit.
emulate() { timeout "$limit" "$@"; }

# Runs Debian's cargo for a target. The standard library is built from its sources.
cargo_for() {
    CARGO_TARGET_DIR=$target/targets RUSTC_BOOTSTRAP=1 RUSTC=/usr/bin/rustc /usr/bin/cargo "$1" -Zbuild-std="${LIBRARIES:-std}" --target "$2" "${@:3}"
}

# Prints the paths of the programs in the messages of cargo.
programs() { sed -n 's/.*"executable":"\([^"]*\)".*/\1/p'; }

# Adds a part to the skipped ones and returns 1 if one of these programs is missing.
needs() {
    local part=$1 program missing=()
    shift
    for program in "$@"; do
        command -v "$program" >/dev/null || missing+=("$program")
    done
    [ "${#missing[@]}" = 0 ] || skipped+=("$part: needs ${missing[*]}")
    [ "${#missing[@]}" = 0 ]
}

# As `needs`, and for Debian's compiler with the sources of the standard library.
needs_sources() {
    packages rustc-web cargo-web rust-web-src
    needs "$1" /usr/bin/rustc /usr/bin/cargo "${@:2}" || return 1
    [ -f "$(/usr/bin/rustc --print sysroot)/lib/rustlib/src/rust/library/Cargo.lock" ] && return 0
    skipped+=("$1: needs the sources of the standard library (rust-web-src)")
    return 1
}

# The trainings whose checkpoints are compared.
TRAININGS=(train_digits 12_digits_cnn 21_gru_text 22_transformer_text)
HASHES=$root/tests/fixtures/checkpoints.sha256

# Trains a few steps in the mode of equal bits and compares the checkpoint: training, folder of the program, suffix of its name, emulator.
# The text is short, so that an epoch has 34 steps. One thread is enough, because the number of threads changes no bit.
compare() {
    local name=$1 program=$2/$1$3 out=$work/$1 file=last.safetensors options=(--epochs 1) found
    rm -rf "$out"
    case $name in
        train_digits) options=(--epochs 2) ;;
        12_digits_cnn) file=convolutional/$file ;;
        *)
            sed -n '/^MENENIUS:/,$p' examples/data/coriolanus.txt | head -c 660 >"$work/text"
            options+=(--text "$work/text")
            ;;
    esac
    WENGERT_NUM_THREADS=1 WENGERT_SIMD=portable emulate "${@:4}" "$program" --out "$out" "${options[@]}" >"$work/log" || return 1
    found="$(sha256sum <"$out/$file" | cut -d ' ' -f 1)  $name"
    echo "$found"
    grep -qxF "$found" "$HASHES" || { echo "expected: $(grep "  $name\$" "$HASHES")" && return 1; }
}

# Compares the checkpoints of several trainings: a name of the platform, folder, suffix, trainings, `--`, emulator.
compare_all() {
    local platform=$1 folder=$2 suffix=$3 names=() name
    shift 3
    while [ "$1" != -- ]; do
        names+=("$1")
        shift
    done
    for name in "${names[@]}"; do
        check "checkpoint of $name on $platform" compare "$name" "$folder" "$suffix" "${@:2}"
    done
}

# Builds programs with a command, and returns 1 if this fails: a name of the platform, the command, `--`, the programs.
build() {
    local platform=$1 command=()
    shift
    while [ "$1" != -- ]; do
        command+=("$1")
        shift
    done
    step "programs for $platform"
    # shellcheck disable=SC2046 # The names are words.
    "${command[@]}" --quiet $(printf -- ' --example %s' "${@:2}") && return
    failed+=("programs for $platform")
    return 1
}

build_native() { build "this machine" cargo build -- "${TRAININGS[@]}"; }

native() {
    build_native || return
    compare_all "this machine" "$target/debug/examples" "" "${TRAININGS[@]}" --
}

# Proptest makes fewer cases, because an emulator takes 10 to 50 times as long as a processor. Timing tests do not exist.
export PROPTEST_CASES=${PROPTEST_CASES:-4}

# Large tests, most of which take minutes on an emulator. `the_forked_process` replaces the last one, which starts a program without the emulator.
SKIPPED=(every_operation_reads_every_access several_tiles_and_parts large_products large_reductions the_number_of_threads_changes_no_bit
    strided::tests::any_number_of_threads blocks_join_at_every_length the_first_of_equal_elements errors_are_as_stated
    small_blocks_equal_blocks a_forked_process_computes)

# Runs the tests of `tensor` except for the skipped ones: the program, the instruction set (or nothing), the emulator.
emulate_tensor() {
    local program=$1 set=$2 names=()
    shift 2
    for name in "${SKIPPED[@]}"; do names+=(--skip "$name"); done
    (
        cd "$root/crates/tensor" || exit 1
        [ -z "$set" ] || export WENGERT_SIMD=$set
        emulate "$@" "$program" --test-threads=1 "${names[@]}" &&
            WENGERT_TEST_FORKS=1 emulate "$@" "$program" --test-threads=1 --exact memory::tests::the_forked_process
    )
}

x86_64() {
    install_emulator qemu-x86_64
    if [ "$(uname -m)" != x86_64 ]; then
        skipped+=("x86_64: needs a machine with x86-64")
        return
    fi
    needs x86_64 qemu-x86_64 || return
    build_native || return
    for processor in Haswell Nehalem; do
        compare_all "$processor" "$target/debug/examples" "" "${TRAININGS[@]}" -- qemu-x86_64 -cpu "$processor"
    done
    [ -z "$only_checkpoints" ] || return 0
    local tensor alone
    tensor=$(cargo test --no-run --message-format=json -p wengert-tensor --lib | programs)
    alone=$(cargo test --no-run --message-format=json -p wengert-tests --test alone | programs | tail -n 1)
    for processor in Nehalem SandyBridge; do
        check "tests of tensor on $processor" emulate_tensor "$tensor" "" qemu-x86_64 -cpu "$processor"
    done
    # This test starts the emulators itself.
    check "the pinned bits on emulated processors" "$alone" equal_bits
}

# Builds trainings for a target, and compares their checkpoints: a name of the platform, the target, trainings, `--`, emulator.
train_for() {
    local platform=$1 triple=$2 names=() emulator=() suffix=
    shift 2
    while [ "$1" != -- ]; do
        names+=("$1")
        shift
    done
    emulator=("${@:2}")
    [[ $triple != wasm32-* ]] || suffix=.wasm
    build "$platform" cargo_for build "$triple" -- "${names[@]}" || return
    compare_all "$platform" "$target/targets/$triple/debug/examples" "$suffix" "${names[@]}" -- "${emulator[@]}"
}

aarch64() {
    install_emulator qemu-aarch64
    packages gcc-aarch64-linux-gnu libc6-dev-arm64-cross
    needs_sources aarch64 qemu-aarch64 aarch64-linux-gnu-gcc || return
    export CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER=aarch64-linux-gnu-gcc
    local emulator=(qemu-aarch64 -L /usr/aarch64-linux-gnu) tests=(--no-run --message-format=json) tensor alone conformance
    train_for AArch64 aarch64-unknown-linux-gnu "${TRAININGS[@]}" -- "${emulator[@]}"
    [ -z "$only_checkpoints" ] || return 0
    tensor=$(cargo_for test aarch64-unknown-linux-gnu "${tests[@]}" -p wengert-tensor --lib | programs)
    alone=$(cargo_for test aarch64-unknown-linux-gnu "${tests[@]}" -p wengert-tests --test alone | programs | tail -n 1)
    conformance=$(cargo_for test aarch64-unknown-linux-gnu "${tests[@]}" -p wengert-tests --test conformance | programs | tail -n 1)
    check "the pinned bits on AArch64" emulate "${emulator[@]}" "$alone" equal_bits --test-threads=1
    for set in neon portable; do
        check "one case in 20 of the conformance set with $set" in_tests "$set" emulate "${emulator[@]}" "$conformance" --every=20
        check "tests of tensor on AArch64 with $set" emulate_tensor "$tensor" "$set" "${emulator[@]}"
    done
}

# Runs a program of the package of tests with an instruction set.
in_tests() { (cd "$root/tests" && WENGERT_SIMD=$1 "${@:2}"); }

# Debian's compiler has no linker for WebAssembly. Another compiler's or the package `lld` links.
wasm_linker() {
    local own
    own=$(rustc --print sysroot)/lib/rustlib/$(rustc -vV | sed -n 's/^host: //p')/bin/rust-lld
    if [ -x "$own" ]; then echo "$own"; else command -v wasm-ld; fi
}

wasm32() {
    packages wasi-libc lld
    needs_sources wasm32 node || return
    local library=/usr/lib/wasm32-wasi linker
    linker=$(wasm_linker) || { skipped+=("wasm32: needs a linker (lld)") && return; }
    [ -f $library/libc.a ] || { skipped+=("wasm32: needs wasi-libc") && return; }
    local -x CARGO_TARGET_WASM32_WASIP1_LINKER=$linker LIBRARIES=std,panic_abort
    # Debian's wasi-libc lacks the functions of threads, which tools/wasi.mjs defines.
    local -x RUSTFLAGS="-C target-feature=+simd128 -C link-self-contained=no -L native=$library -C link-arg=$library/crt1-command.o"
    RUSTFLAGS+=" -C link-arg=--allow-undefined"
    train_for WebAssembly wasm32-wasip1 "${TRAININGS[@]}" -- node --no-warnings tools/wasi.mjs
}

s390x() {
    install_emulator qemu-s390x
    packages gcc-s390x-linux-gnu libc6-dev-s390x-cross
    needs_sources s390x qemu-s390x s390x-linux-gnu-gcc || return
    export CARGO_TARGET_S390X_UNKNOWN_LINUX_GNU_LINKER=s390x-linux-gnu-gcc
    train_for s390x s390x-unknown-linux-gnu train_digits -- qemu-s390x -L /usr/s390x-linux-gnu
}

i686() {
    packages gcc-i686-linux-gnu libc6-dev-i386-cross
    if [ "$(uname -m)" != x86_64 ]; then
        skipped+=("i686: needs a machine with x86-64, which executes it without an emulator")
        return
    fi
    needs_sources i686 i686-linux-gnu-gcc || return
    export CARGO_TARGET_I686_UNKNOWN_LINUX_GNU_LINKER=i686-linux-gnu-gcc
    local libraries=/usr/i686-linux-gnu/lib
    train_for i686 i686-unknown-linux-gnu train_digits -- "$libraries/ld-linux.so.2" --library-path "$libraries"
}

windows() {
    packages binutils-mingw-w64-x86-64
    needs_sources windows x86_64-w64-mingw32-dlltool || return
    check "the library compiles for Windows" cargo_for check x86_64-pc-windows-gnu --quiet -p wengert --all-features
}

macos() {
    needs_sources macos || return
    check "the library compiles for macOS" cargo_for check aarch64-apple-darwin --quiet -p wengert --all-features
}

for part in $parts; do
    case $part in
        native | x86_64 | aarch64 | wasm32 | s390x | i686 | windows | macos) "$part" ;;
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
