#!/usr/bin/env bash
# Builds the web site of the project in one folder, which any static host can serve: a front page, the guide as a book, the documentation
# of the crates, and the results of the examples.
#
#     tools/site.sh FOLDER [RESULTS [DOCUMENTATION]]
#
# RESULTS is the folder in which the examples wrote their pictures and reports; the default is `out`. DOCUMENTATION is the folder of
# `cargo doc`; without it, the documentation is built. Needs Python 3. The last lines name the parts that are left out: the book if mdbook
# is not installed, and the results of examples that did not run.
set -euo pipefail
if [ $# -eq 0 ] || [ "$1" = -h ] || [ "$1" = --help ]; then
    sed -n '2,9s/^# \{0,1\}//p' "$0"
    exit 0
fi
mkdir -p "$1"
site=$(realpath "$1")
results=$(realpath -m "${2:-$(dirname "$0")/../out}")
given=${3:+$(realpath "$3")}
cd "$(dirname "$0")/.."
missing=()

# The documentation. Pages of an earlier state would stay, so its folders are made anew. The facade shows the items of the other crates under
# its own paths, and alone it gives each of them once in the search. So the pages of the crates themselves are in a second folder.
rm -rf "$site/api" "$site/crates"
if [ -n "$given" ]; then
    cp -r "$given" "$site/api"
else
    built=$(realpath -m "${CARGO_TARGET_DIR:-target}/doc")
    # rustdoc links to another crate only if it finds its pages. So the crates are documented one after the other, in the order of their imports.
    rm -rf "$built"
    for package in wengert-{macros,tensor,autograd,nn,linalg,fft,special,distributions,solvers,onnx}; do
        cargo doc --quiet --no-deps -p "$package" --all-features
    done
    cargo doc --quiet --no-deps -p wengert-distributed # its only feature needs MPI
    rm -f "$built/.lock"
    mv "$built" "$site/crates"
    # rustdoc writes links to a crate if a folder has its name. The links then lead to the second folder.
    (cd "$site/crates" && mkdir -p "$built" && find wengert_* -maxdepth 0 -type d -exec mkdir "$built/{}" \;)
    cargo doc --quiet --no-deps -p wengert --features images,npz,plots,progress,linalg,fft,special,distributions,solvers,onnx
    find "$built" -maxdepth 1 -type d -empty -delete
    rm -f "$built/.lock"
    cp -r "$built" "$site/api"
    find "$site/api" -name '*.html' -exec sed -i 's#href="\(\(\.\./\)*\)\(\(src/\)\{0,1\}wengert_[a-z]*/\)#href="../\1crates/\3#g' {} +
fi

# The book.
stage=$(mktemp -d)
trap 'rm -rf "$stage"' EXIT
rm -rf "$site/book"
tools/book.py "$stage" --check
if command -v mdbook >/dev/null; then
    mdbook build "$stage" --dest-dir "$site/book"
else
    missing+=("the book: mdbook is not installed (cargo install mdbook)")
fi

# The results of the examples.
rm -rf "$site/results"
mkdir -p "$site/results"
for example in examples/course/*.rs examples/own_images/*.rs examples/ports/*.rs; do
    name=$(basename "$example" .rs)
    if [ -d "$results/$name" ]; then
        mkdir -p "$site/results/$name"
        find "$results/$name" -maxdepth 1 -type f \( -name '*.svg' -o -name '*.html' -o -name '*.png' -o -name '*.txt' \) \
            -exec cp {} "$site/results/$name/" \;
    else
        missing+=("the results of $name")
    fi
done

tools/front_page.py "$site"
[ ${#missing[@]} = 0 ] || printf 'LEFT OUT: %s\n' "${missing[@]}"
tools/check_links.py "$site"
echo "The site is in $site."
