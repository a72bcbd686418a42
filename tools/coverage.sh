#!/usr/bin/env bash
# Prints the coverage of wengert-tensor and wengert-autograd by lines and branches.
#
#     tools/coverage.sh [--laws] [FOLDER]
#
# Runs the unit tests of both crates, and with --laws also the laws of tests/. The report of each file goes to standard output, and the
# lines that no test reaches go to FOLDER/uncovered.txt (default: target/coverage). Needs the component llvm-tools:
#     rustup component add llvm-tools
# Branches are measured with an option that the compiler does not guarantee.
set -euo pipefail
if [ "${1:-}" = -h ] || [ "${1:-}" = --help ]; then
    sed -n '2,9s/^# \{0,1\}//p' "$0"
    exit 0
fi
cd "$(dirname "$0")/.."
export CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-$PWD/target}/coverage
laws=false
if [ "${1:-}" = --laws ]; then
    laws=true
    shift
fi
out=${1:-$CARGO_TARGET_DIR}
mkdir -p "$out"
bin=$(rustc --print sysroot)/lib/rustlib/$(rustc -vV | sed -n 's/^host: //p')/bin
if ! [ -x "$bin/llvm-cov" ]; then
    echo "coverage: NOT RUN, there are no llvm-tools (rustup component add llvm-tools)"
    exit 1
fi

export RUSTC_BOOTSTRAP=1 RUSTFLAGS="-Cinstrument-coverage -Zcoverage-options=branch" CARGO_INCREMENTAL=0
export LLVM_PROFILE_FILE=$CARGO_TARGET_DIR/profiles/%p-%m.profraw
rm -rf "$CARGO_TARGET_DIR/profiles"
tests=(-p wengert-tensor -p wengert-autograd --lib)
programs=()
# Builds and runs tests, and remembers the programs.
run() {
    local built
    built=$(cargo test "$@" --no-run 2>&1) || { printf '%s\n' "$built"; exit 1; }
    mapfile -t -O "${#programs[@]}" programs < <(sed -n 's/.*Executable.*(\(.*\))/\1/p' <<<"$built")
    cargo test "$@" 1>&2
}
run "${tests[@]}"
if $laws; then run -p wengert-tests --test laws; fi

"$bin/llvm-profdata" merge -sparse "$CARGO_TARGET_DIR"/profiles/*.profraw -o "$out/all.profdata"
objects=()
for program in "${programs[@]}"; do objects+=(--object "$program"); done
sources=(crates/tensor/src crates/autograd/src)
"$bin/llvm-cov" report --instr-profile "$out/all.profdata" "${objects[@]}" --show-branch-summary --sources "${sources[@]}"
"$bin/llvm-cov" show --instr-profile "$out/all.profdata" "${objects[@]}" --show-instantiations=false --sources "${sources[@]}" |
    awk '/^\/.*:$/ { file = $0 } /^ *[0-9]+\| +0\|/ { print file $0 }' >"$out/uncovered.txt"
