#!/usr/bin/env python3
"""Runs the examples of the course and writes their output and pictures into the chapters of the guide.

Usage: tools/course_output.py [NAME...]     all examples, or only some

Build them first: cargo build --release --examples -p wengert-course -p wengert-science
The output of an example replaces the first block below the heading "The output" of its chapter. A picture that the chapter
shows is copied from the folder of the example.
"""

import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
COURSE = ROOT / "docs/guide/course"
BLOCK = re.compile(r"(## The output\n.*?```text\n)(.*?)(```\n)", re.S)


def refresh(name, programs):
    """Runs one example and updates its chapter. Returns the longest line of its output."""
    chapter = COURSE / f"{name.replace('_', '-')}.md"
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run([programs / name], cwd=folder, capture_output=True, text=True, check=True)
        page = chapter.read_text()
        lines = "".join(line.rstrip() + "\n" for line in done.stdout.rstrip().splitlines())
        page = BLOCK.sub(lambda found: found[1] + lines + found[3], page, count=1)
        for picture in re.findall(r"\]\(pictures/([\w.-]+)\)", page):
            made = pathlib.Path(folder) / "out" / name / picture.split("-", 1)[1]
            (COURSE / "pictures").mkdir(exist_ok=True)
            shutil.copy(made, COURSE / "pictures" / picture)
        chapter.write_text(page)
    return max(map(len, lines.splitlines()))


def main():
    if "--help" in sys.argv:
        print(__doc__.strip())
        return
    programs = ROOT / "target/release/examples"
    names = sys.argv[1:] or sorted(path.stem for path in (ROOT / "examples/course").glob("[0-9]*.rs"))
    for name in names:
        print(f"{name}: {refresh(name, programs)} columns", flush=True)


if __name__ == "__main__":
    main()
