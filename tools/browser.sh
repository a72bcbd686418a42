#!/usr/bin/env bash
# Builds the page of examples/browser in one folder, which any static host can serve, and tests it in Node and in headless Chromium.
#
#     tools/browser.sh FOLDER [PICTURES]
#     tools/browser.sh --missing
#
# PICTURES is a folder for pictures of the page. The second form prints the programs that are missing, and nothing else. Needs a standard
# library for WebAssembly, the program `wasm-bindgen` of the version that examples/browser/Cargo.toml names, Node 20, Python 3, and
# Chromium with its driver. If Debian's packages `rustc-web`, `cargo-web` and `rust-web-src` are installed, the standard library is
# built from its sources. `wasm-opt` after version 108 makes the file smaller if it is installed.
set -euo pipefail
if [ $# -eq 0 ] || [ "$1" = -h ] || [ "$1" = --help ]; then
    sed -n '2,11s/^# \{0,1\}//p' "$0"
    exit 0
fi
root=$(realpath "$(dirname "$0")/..")
target=wasm32-unknown-unknown
version=$(sed -n 's/^wasm-bindgen = "=\([0-9.]*\)".*/\1/p' "$root/examples/browser/Cargo.toml")

# Prints how the standard library for WebAssembly is found: `installed`, `sources`, or nothing.
library() {
    if [ -d "$(rustc --print sysroot)/lib/rustlib/$target" ]; then
        echo installed
    elif [ -x /usr/bin/cargo ] && [ -x /usr/bin/rustc ] && [ -f "$(/usr/bin/rustc --print sysroot)/lib/rustlib/src/rust/library/Cargo.lock" ]; then
        echo sources
    fi
}

# Prints the linker for WebAssembly, which Debian's compiler lacks: another compiler's, or the package `lld`.
linker() {
    local own
    own=$(rustc --print sysroot)/lib/rustlib/$(rustc -vV | sed -n 's/^host: //p')/bin/rust-lld
    if [ -x "$own" ]; then echo "$own"; else command -v wasm-ld; fi
}

# Runs cargo for WebAssembly with vectors of 128 bits.
cargo_web() {
    export RUSTFLAGS="-C target-feature=+simd128"
    case $(library) in
        installed) cargo "$@" --target $target ;;
        sources)
            CARGO_TARGET_WASM32_UNKNOWN_UNKNOWN_LINKER=$(linker) RUSTC_BOOTSTRAP=1 RUSTC=/usr/bin/rustc \
                /usr/bin/cargo "$@" -Zbuild-std=std,panic_abort --target $target
            ;;
    esac
}

missing=()
[ -n "$(library)" ] || missing+=("the standard library for $target (rustup target add $target)")
[ "$(wasm-bindgen --version 2>/dev/null)" = "wasm-bindgen $version" ] || missing+=("wasm-bindgen $version (cargo install wasm-bindgen-cli --version $version)")
for program in node python3 chromium chromedriver; do
    command -v $program >/dev/null || missing+=("$program")
done
if [ "$1" = --missing ]; then
    [ "${#missing[@]}" = 0 ] || printf '%s\n' "${missing[@]}"
    exit 0
fi
if [ "${#missing[@]}" -gt 0 ]; then
    printf 'missing: %s\n' "${missing[@]}" >&2
    exit 1
fi

mkdir -p "$1"
site=$(realpath "$1")
pictures=$(realpath -m "${2:-$site/pictures}")
cd "$root/examples/browser"
builds=${CARGO_TARGET_DIR:-$root/target}
(export CARGO_TARGET_DIR=$builds/web && cargo_web build --release --quiet)
wasm-bindgen --target web --no-typescript --out-dir "$site/pkg" "$builds/web/$target/release/wengert_browser.wasm"
# Version 108 of wasm-opt confuses the tables of functions and of JavaScript's values, so that the page does not start.
if [ "$(wasm-opt --version 2>/dev/null | tr -dc 0-9 | head -c 3)" -gt 108 ] 2>/dev/null; then
    # The names are the features that the compiler uses.
    wasm-opt -O2 --enable-simd --enable-bulk-memory --enable-sign-ext --enable-nontrapping-float-to-int --enable-mutable-globals \
        --enable-reference-types --enable-multivalue "$site/pkg/wengert_browser_bg.wasm" -o "$site/pkg/optimized.wasm" &&
        mv "$site/pkg/optimized.wasm" "$site/pkg/wengert_browser_bg.wasm"
fi
cp index.html page.js pytorch.safetensors ../data/digits.csv.gz "$site"
bytes=$(gzip -9 <"$site/pkg/wengert_browser_bg.wasm" | wc -c)
echo "$bytes bytes of WebAssembly after gzip"
[ "$bytes" -lt 1000000 ] || { echo "the limit is 1 MB" >&2 && exit 1; }

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
gunzip <../data/digits.csv.gz >"$work/digits.csv"
# The native build of the same training uses the portable instruction set, so both checkpoints have the same bits.
CARGO_TARGET_DIR=$builds WENGERT_SIMD=portable WENGERT_NUM_THREADS=1 cargo run --quiet --release --example native -- "$work/native.safetensors"
node node_test.mjs "$site/pkg" "$work/digits.csv" pytorch.safetensors "$work/native.safetensors"
"$root/tools/browser.py" "$site" "$pictures"
