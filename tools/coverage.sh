#!/usr/bin/env bash
# Prints the coverage of crates by lines and branches.
#
#     tools/coverage.sh [--laws] [FOLDER]          # wengert-tensor and wengert-autograd
#     tools/coverage.sh --crates "fft special" [FOLDER]
#
# The first form runs the unit tests of both crates, and with --laws also the laws of tests/. The second form measures the named crates one
# after the other, each with its unit tests and the tests in its folder tests/. Tests of other crates and of the documentation do not count.
# The report of each file goes to standard output, and the lines that no test reaches go to FOLDER/uncovered.txt (default: target/coverage).
# Needs the component llvm-tools: rustup component add llvm-tools
# Branches are measured with an option that the compiler does not guarantee.
set -euo pipefail
if [ "${1:-}" = -h ] || [ "${1:-}" = --help ]; then
    sed -n '2,11s/^# \{0,1\}//p' "$0"
    exit 0
fi
cd "$(dirname "$0")/.."
export CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-$PWD/target}/coverage
laws=false crates=
case ${1:-} in
    --laws) laws=true && shift ;;
    --crates) crates=$2 && shift 2 ;;
esac
out=${1:-$CARGO_TARGET_DIR}
mkdir -p "$out"
bin=$(rustc --print sysroot)/lib/rustlib/$(rustc -vV | sed -n 's/^host: //p')/bin
if ! [ -x "$bin/llvm-cov" ]; then
    echo "coverage: NOT RUN, there are no llvm-tools (rustup component add llvm-tools)"
    exit 1
fi

export RUSTC_BOOTSTRAP=1 CARGO_INCREMENTAL=0 LLVM_PROFILE_FILE=$CARGO_TARGET_DIR/profiles/%p-%m.profraw
flags=(-Cinstrument-coverage -Zcoverage-options=branch)
programs=()
# Builds and runs tests, and remembers the programs.
run() {
    local built
    built=$(cargo test "$@" --no-run 2>&1) || { printf '%s\n' "$built"; exit 1; }
    mapfile -t -O "${#programs[@]}" programs < <(sed -n 's/.*Executable.*(\(.*\))/\1/p' <<<"$built")
    cargo test "$@" 1>&2
}

# Prints the report of the sources in the given folders, and adds their lines that no test reaches to the list.
report() {
    local objects=() program
    "$bin/llvm-profdata" merge -sparse "$CARGO_TARGET_DIR"/profiles/*.profraw -o "$out/all.profdata"
    for program in "${programs[@]}"; do objects+=(--object "$program"); done
    "$bin/llvm-cov" report --instr-profile "$out/all.profdata" "${objects[@]}" --show-branch-summary --sources "$@"
    "$bin/llvm-cov" show --instr-profile "$out/all.profdata" "${objects[@]}" --show-instantiations=false --sources "$@" |
        awk '/^\/.*:$/ { file = $0 } /^ *[0-9]+\| +0\|/ { print file $0 }' >>"$out/uncovered.txt"
}

: >"$out/uncovered.txt"
for crate in $crates; do
    rm -rf "$CARGO_TARGET_DIR/profiles"
    programs=()
    # Only the crate itself is compiled for coverage, because code that is compiled for it is larger and slower.
    quoted=$(printf '"%s",' "${flags[@]}")
    run -Zprofile-rustflags --config "profile.dev.package.wengert-$crate.rustflags=[$quoted]" -p "wengert-$crate" --lib --tests
    report "crates/$crate/src"
done
if [ -n "$crates" ]; then exit; fi

rm -rf "$CARGO_TARGET_DIR/profiles"
export RUSTFLAGS="${flags[*]}"
run -p wengert-tensor -p wengert-autograd --lib
if $laws; then run -p wengert-tests --test laws; fi
report crates/tensor/src crates/autograd/src
