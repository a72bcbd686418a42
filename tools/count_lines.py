#!/usr/bin/env python3
"""Counts the lines of crates without their tests.

    tools/count_lines.py                      # crates/tensor and crates/autograd
    tools/count_lines.py crates/nn --files    # another folder, each file

Raw lines are all lines of a file. Code lines are raw lines that hold more than white space and comments.
Left out are files named `tests.rs`, files under `tests/` or `testing/`, and `#[cfg(test)] mod ...` inside a file.
Files under `examples/` and all other items under `#[cfg(test)]` count. Doc comments and doc tests are raw lines only.
"""

import argparse

from sources import ROOT, blanked, rust_files, without_test_modules


def count(file):
    """Returns the raw and the code lines of one file, without its test modules."""
    lines = without_test_modules(file.read_text(encoding="utf-8"))
    # A string of several lines is code, so only comments may be blanked: mark the literals first.
    text = "\n".join(lines)
    with_comments = blanked(text, keep_comments=True).splitlines()
    without = blanked(text).splitlines()
    code = 0
    for raw, commented, bare in zip(lines, with_comments, without):
        inside_literal = raw.strip() and not commented.strip()
        code += bool(bare.strip() or inside_literal)
    return len(lines), code


def main():
    """Prints raw lines, code lines and files of each folder, and the sum."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="*", default=["crates/tensor", "crates/autograd"], help="folders of the workspace")
    parser.add_argument("--files", action="store_true", help="print each file, longest first")
    arguments = parser.parse_args()
    total = [0, 0, 0]
    print(f"{'raw':>7} {'code':>7} {'files':>6}")
    for folder in arguments.folders:
        counts = [(*count(file), file) for file in rust_files(folder)]
        if arguments.files:
            for raw, code, file in sorted(counts, reverse=True):
                print(f"{raw:7} {code:7}        {file.relative_to(ROOT)}")
        sums = [sum(raw for raw, _, _ in counts), sum(code for _, code, _ in counts), len(counts)]
        print("{:7} {:7} {:6}  {}".format(*sums, folder))
        total = [a + b for a, b in zip(total, sums)]
    print("{:7} {:7} {:6}  in all".format(*total))


if __name__ == "__main__":
    main()
