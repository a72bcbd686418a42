#!/usr/bin/env bash
# Runs the tests of wengert-tensor with checks of the unsafe code, and prints one line per run.
#
#     tools/sanitizers.sh [address] [thread] [valgrind]
#
# Without arguments, runs all three.
#   address   AddressSanitizer, with every instruction set of this machine. The pool keeps no buffers, so that an access to a released
#             buffer is found.
#   thread    ThreadSanitizer over the memory and the threads. Needs a nightly toolchain with the sources of the standard library:
#             rustup component add rust-src --toolchain nightly
#   valgrind  Memcheck over the memory and a part of the kernels. It does not know AVX-512, so it uses AVX2.
# The builds go to target/sanitizers. FILTER names the tests; the default is all for address, and those of the memory otherwise.
set -euo pipefail
if [ "${1:-}" = -h ] || [ "${1:-}" = --help ]; then
    sed -n '2,13s/^# \{0,1\}//p' "$0"
    exit 0
fi
cd "$(dirname "$0")/.."
export CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-$PWD/target}/sanitizers
target=$(rustc -vV | sed -n 's/^host: //p')
tests=(test --target "$target" -p wengert-tensor --lib)
failed=0

# Runs a command. Prints its name and the line with the counts of tests, or the whole output if it fails.
report() {
    local name=$1 output
    shift
    if output=$("$@" 2>&1); then
        echo "$name: $(grep '^test result' <<<"$output")"
    else
        printf '%s: FAILED\n%s\n' "$name" "$output"
        failed=1
    fi
}

check_address() {
    local sets=(portable) set
    for set in avx2 avx512f; do
        if grep -qw "$set" /proc/cpuinfo; then sets+=("${set%f}"); fi
    done
    export RUSTC_BOOTSTRAP=1 RUSTFLAGS=-Zsanitizer=address WENGERT_TEST_NO_POOL=1
    cargo "${tests[@]}" --no-run
    for set in "${sets[@]}"; do
        # The skipped test checks that the pool keeps buffers.
        WENGERT_SIMD=$set report "address, $set" cargo "${tests[@]}" -- ${FILTER:-} --skip released_buffers_are_reused
    done
    unset RUSTC_BOOTSTRAP RUSTFLAGS WENGERT_TEST_NO_POOL
}

check_thread() {
    if ! [ -d "$(rustc +nightly --print sysroot)/lib/rustlib/src" ]; then
        echo "thread: NOT RUN, the nightly toolchain has no rust-src"
        return
    fi
    RUSTFLAGS=-Zsanitizer=thread report thread cargo +nightly "${tests[@]}" -Zbuild-std -- ${FILTER:-memory}
}

check_valgrind() {
    if ! command -v valgrind >/dev/null; then
        echo "valgrind: NOT RUN, it is not installed"
        return
    fi
    local program
    program=$(cargo "${tests[@]}" --no-run 2>&1 | sed -n 's/.*Executable.*(\(.*\))/\1/p')
    for part in ${FILTER:-memory kernel::gather kernel::transpose kernel::scan}; do
        WENGERT_SIMD=avx2 PROPTEST_CASES=8 report "valgrind, $part" \
            valgrind --quiet --error-exitcode=1 "$program" --test-threads=1 "$part"
    done
}

for check in "${@:-address thread valgrind}"; do
    for each in $check; do "check_$each"; done
done
exit "$failed"
