#!/usr/bin/env python3
"""Lists functions that are longer than a limit.

    tools/long_functions.py                     # all Rust files of the workspace, more than 60 lines
    tools/long_functions.py crates/nn --limit 40

The length of a function is the number of lines from `fn` to its closing brace, with comments and blank lines.
The script exits with 1 if it finds a function that is too long. Tables may be long: judge each line of the list.
"""

import argparse
import re
import sys

from sources import ROOT, blanked, rust_files

FOLDERS = ["crates", "src", "examples", "tests", "benches"]
FUNCTION = re.compile(r"\bfn\s+(\w+)")


def functions(text):
    """Yields the name, the first line and the number of lines of each function that has a body."""
    code = blanked(text)
    for match in FUNCTION.finditer(code):
        # The body begins at the first brace outside of parentheses and brackets; a declaration ends with `;` instead.
        depth, at = 0, match.end()
        while at < len(code) and not (depth == 0 and code[at] in "{;"):
            depth += (code[at] in "([") - (code[at] in ")]")
            at += 1
        if at >= len(code) or code[at] == ";":
            continue
        braces, end = 0, at
        while end < len(code):
            braces += (code[end] == "{") - (code[end] == "}")
            if braces == 0:
                break
            end += 1
        first = code.count("\n", 0, match.start()) + 1
        yield match.group(1), first, code.count("\n", match.start(), end) + 1


def main():
    """Prints the functions that are too long, longest first."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="*", default=FOLDERS, help="folders of the workspace (default: all)")
    parser.add_argument("--limit", type=int, default=60, help="the most lines that a function may have (default: 60)")
    arguments = parser.parse_args()
    found = []
    for folder in arguments.folders:
        for file in rust_files(folder, with_tests=True):
            for name, first, length in functions(file.read_text(encoding="utf-8")):
                if length > arguments.limit:
                    found.append((length, f"{file.relative_to(ROOT)}:{first}", name))
    for length, place, name in sorted(found, reverse=True):
        print(f"{length:5}  {place}  {name}")
    print(f"{len(found)} functions of more than {arguments.limit} lines")
    sys.exit(1 if found else 0)


if __name__ == "__main__":
    main()
