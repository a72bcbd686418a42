#!/usr/bin/env bash
# Runs unit tests with checks of the unsafe code, and prints the counts of each run.
#
#     tools/sanitizers.sh [address] [thread] [miri] [valgrind]
#
# Without arguments, runs all four.
#   address   AddressSanitizer over wengert-tensor, wengert-autograd and wengert-nn, with portable, AVX2 and AVX-512 if available. The pool
#             keeps no buffers, so that an access to a released buffer is found. SETS names the instruction sets.
#   thread    ThreadSanitizer over the memory and the threads.
#   miri      Miri over the shapes and the memory. It interprets a program and knows no vector instructions.
#   valgrind  Memcheck over the memory, indexing and a part of the kernels. It does not know AVX-512, so it uses AVX2.
# thread and miri use the package of the lower folders, which tools/mutants.py writes. They need a nightly toolchain with the sources
# of the standard library: rustup component add rust-src miri --toolchain nightly
# The builds go to target/sanitizers. FILTER names the tests; the default is all for address, and the parts named above otherwise.
set -euo pipefail
if [ "${1:-}" = -h ] || [ "${1:-}" = --help ]; then
    sed -n '2,17s/^# \{0,1\}//p' "$0"
    exit 0
fi
cd "$(dirname "$0")/.."
export CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-$PWD/target}/sanitizers
export CARGO_PROFILE_DEV_DEBUG=line-tables-only # the reports have lines
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
    local set sets=portable all=("${tests[@]}" -p wengert-autograd -p wengert-nn)
    for set in avx2 avx512f; do
        if grep -qw "$set" /proc/cpuinfo; then sets+=" ${set%f}"; fi
    done
    mkdir -p "$CARGO_TARGET_DIR"
    # These tests leak memory on purpose: for static views, static tapes, and the payloads of panics.
    printf 'leak:%s\n' tensor::interop::tests memory::threads::tests results_of_another_tape_are_refused \
        inference_takes_every_form_of_inputs >"$CARGO_TARGET_DIR/leaks.txt"
    export RUSTC_BOOTSTRAP=1 RUSTFLAGS=-Zsanitizer=address WENGERT_TEST_NO_POOL=1
    export LSAN_OPTIONS=suppressions=$CARGO_TARGET_DIR/leaks.txt:print_suppressions=0
    cargo "${all[@]}" --no-run
    for set in ${SETS:-$sets}; do
        # The skipped test checks that the pool keeps buffers.
        WENGERT_SIMD=$set report "address, $set" cargo "${all[@]}" --no-fail-fast -- ${FILTER:-} --skip released_buffers_are_reused
    done
    unset RUSTC_BOOTSTRAP RUSTFLAGS WENGERT_TEST_NO_POOL LSAN_OPTIONS
}

# Runs the tests of the lower folders with a nightly toolchain. The arguments are the name of the check, the command of cargo and its
# options, and after -- the options of the tests.
on_nightly() {
    local name=$1 package=$CARGO_TARGET_DIR/lower-folders
    shift
    if ! [ -d "$(rustc +nightly --print sysroot 2>/dev/null)/lib/rustlib/src" ]; then
        echo "$name: NOT RUN, there is no nightly toolchain with rust-src"
        return
    fi
    tools/mutants.py --package "$package"
    pushd "$package" >/dev/null
    report "$name" cargo +nightly "$@"
    popd >/dev/null
}

check_thread() {
    RUSTFLAGS=-Zsanitizer=thread on_nightly thread test --lib --target "$target" -Zbuild-std -- "${FILTER:-memory::}"
}

check_miri() {
    if ! cargo +nightly miri --version >/dev/null 2>&1; then
        echo "miri: NOT RUN, the nightly toolchain has no Miri"
        return
    fi
    # The skipped tests start processes, run for hours in the interpreter, or test how the system schedules threads.
    MIRIFLAGS=-Zmiri-disable-isolation PROPTEST_CASES=4 on_nightly miri miri test --lib -- ${FILTER:-shape:: memory::} \
        --skip a_process_ --skip every_view_selects --skip every_small_layout --skip a_reshape_keeps \
        --skip threads:: --skip released_buffers_are_reused --skip memory::scratch
}

check_valgrind() {
    if ! command -v valgrind >/dev/null; then
        echo "valgrind: NOT RUN, it is not installed"
        return
    fi
    local program parts
    program=$(cargo "${tests[@]}" --no-run 2>&1 | sed -n 's/.*Executable.*(\(.*\))/\1/p')
    parts='memory ops::index kernel::elementwise kernel::pool kernel::reduce kernel::scan kernel::step kernel::transpose'
    for part in ${FILTER:-$parts}; do
        WENGERT_SIMD=avx2 PROPTEST_CASES=8 report "valgrind, $part" \
            valgrind --quiet --error-exitcode=1 "$program" --test-threads=1 "$part"
    done
}

for check in "${@:-address thread miri valgrind}"; do
    for each in $check; do "check_$each"; done
done
exit "$failed"
