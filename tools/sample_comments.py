#!/usr/bin/env python3
"""Draws comments at random from the sources, for a reader to judge.

    tools/sample_comments.py --seed 1 --count 100

Each comment is printed with its file, its line and five lines of context on each side. Lines of the comment begin with `>`.
Doc comments and plain comments are drawn alike. Consecutive comment lines of one kind count as one comment, and a
comment behind code counts as one. Every comment has the same chance, and the same seed draws the same comments from the same sources.
"""

import argparse
import random

from sources import ROOT, blanked, rust_files

KINDS = ("//!", "///", "//", "/*")


def comments(file):
    """Returns the comments of a file as pairs of the first and the last line number, counted from 0."""
    text = file.read_text(encoding="utf-8")
    lines = blanked(text, keep_comments=True).splitlines()
    found, previous = [], None
    for number, line in enumerate(lines):
        start = min((at for at in (line.find("//"), line.find("/*")) if at >= 0), default=None)
        if start is None:
            previous = None
            continue
        kind = next(kind for kind in KINDS if line.startswith(kind, start))
        behind_code = bool(line[:start].strip())
        here = (kind, start, behind_code)
        if found and not behind_code and here == previous:
            found[-1] = (found[-1][0], number)
        else:
            found.append((number, number))
        previous = here
    return found


def show(file, first, last, context):
    """Prints one comment with the lines around it."""
    lines = file.read_text(encoding="utf-8").splitlines()
    for number in range(max(0, first - context), min(len(lines), last + context + 1)):
        mark = ">" if first <= number <= last else " "
        print(f"{mark} {number + 1:5} {lines[number]}")


def main():
    """Prints the comments drawn."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="*", default=["crates"], help="folders of the workspace (default: crates)")
    parser.add_argument("--seed", type=int, required=True, help="the seed of the draw")
    parser.add_argument("--count", type=int, default=100, help="how many comments are drawn (default: 100)")
    parser.add_argument("--context", type=int, default=5, help="lines shown on each side (default: 5)")
    arguments = parser.parse_args()
    files = [file for folder in arguments.folders for file in rust_files(folder, with_tests=True)]
    every = [(file, *lines) for file in files for lines in comments(file)]
    drawn = random.Random(arguments.seed).sample(every, min(arguments.count, len(every)))
    print(f"{len(drawn)} of {len(every)} comments in {len(files)} files, seed {arguments.seed}")
    for number, (file, first, last) in enumerate(drawn, 1):
        print(f"\n--- {number}: {file.relative_to(ROOT)}:{first + 1}")
        show(file, first, last, arguments.context)


if __name__ == "__main__":
    main()
