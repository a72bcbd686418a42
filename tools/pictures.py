#!/usr/bin/env python3
"""Draws the committed pictures under docs/ again, with the programs that made them.

    tools/pictures.py                          writes all pictures under docs/ anew
    tools/pictures.py --check                  compares the committed pictures with new ones, and ends with 1 if one differs
    tools/pictures.py --no-chapters            leaves out the pictures of the course's chapters, which course_output.py compares too
    tools/pictures.py --programs FOLDER        runs programs that are built already, such as those in target/debug/examples

The programs run with WENGERT_SIMD=portable, which gives the same bits on every processor. `--check` compares the texts exactly and the numbers
with a tolerance. A picture under docs/ that is neither in the table nor in the folder of the chapters' pictures is an error.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

# Each picture: the package and example that draws it, and the file that the example writes into its folder.
PICTURES = {
    "docs/guide/pictures/derivatives.svg": ("wengert-course", "03_gradients", "derivatives.svg"),
    "docs/guide/pictures/burgers.svg": ("wengert-course", "18_burgers", "burgers.svg"),
    "docs/broadcasting.svg": ("wengert-course", "02_broadcasting", "bias.svg"),
    "docs/distributed.svg": ("wengert-distributed", "reductions", None),
}
# The largest difference of two coordinates, as a share of the picture's width. The trained network of `burgers.svg` differs most.
TOLERANCE = 0.01
NUMBER = re.compile(r"-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?")


def draw(folder, programs):
    """Runs each example once, and returns the paths of the new pictures by their committed names. `programs` is None to build them."""
    drawn = {}
    for name, (package, example, file) in PICTURES.items():
        out = folder / example
        out.mkdir(exist_ok=True)
        new = out / (file or "picture.svg")
        options = ["--out", str(out)] if file else ["--plot", str(new)]
        if not new.exists():
            build = ["cargo", "run", "--release", "--quiet", "-p", package, "--example", example, "--"]
            command = [str(programs / example)] if programs else build
            environment = {**os.environ, "WENGERT_SIMD": "portable"}
            done = subprocess.run([*command, *options], cwd=ROOT, env=environment, capture_output=True, text=True)
            if done.returncode != 0:
                sys.exit(f"{example} failed:\n{done.stderr[-2000:]}")
        drawn[name] = new
    return drawn


def difference(old, new):
    """Returns a sentence about the first difference of two pictures, or None if they agree."""
    box = re.search(r'viewBox="0 0 (\d+)', new)
    tolerance = TOLERANCE * float(box[1]) if box else 0.0
    if NUMBER.sub("#", old) != NUMBER.sub("#", new):
        return "the texts or the shapes differ"
    # The text between tags is compared as it is: numbers there are labels.
    for a, b in zip(re.findall(r">([^<]*)<", old), re.findall(r">([^<]*)<", new)):
        if a != b:
            return f"the text {a.strip()!r} is now {b.strip()!r}"
    for a, b in zip(NUMBER.findall(old), NUMBER.findall(new)):
        if abs(float(a) - float(b)) > tolerance:
            return f"the number {a} is now {b}"
    return None


def draw_chapters(check, programs):
    """Draws the pictures of the course's chapters, or compares them. Returns their number and the differences."""
    import course_output as course

    pages = {name: course.chapter_of(name).read_text(encoding="utf-8") for name in course.examples()}
    pages = {name: page for name, page in pages.items() if course.PICTURE.search(page)}
    if not programs:
        course.build(list(pages))
    problems = []
    for name, page in pages.items():
        _, pictures = course.outputs(name, programs or course.RELEASE.resolve())
        if check:
            problems += course.check_pictures(page, pictures)
        else:
            course.write_pictures(page, pictures)
            print(f"wrote the pictures of {name}", flush=True)
    return sum(len(course.PICTURE.findall(page)) for page in pages.values()), problems


def control():
    """Checks the comparison: it must find a moved point, another label and another shape, and accept rounding."""
    picture = '<svg viewBox="0 0 800 500"><path d="M1.5 2 L300 4"/><text x="3">0.5</text></svg>'
    assert difference(picture, picture.replace("1.5", "1.6")) is None
    for old, new in [("300", "320"), ("0.5<", "0.6<"), ("L300", "C300")]:
        assert difference(picture, picture.replace(old, new)), new


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="compare, and write nothing")
    parser.add_argument("--programs", type=Path, help="folder of the built examples")
    parser.add_argument("--no-chapters", action="store_true", help="leave out the pictures of the course's chapters")
    arguments = parser.parse_args()
    control()
    programs = arguments.programs and arguments.programs.resolve()
    count, problems = len(PICTURES), []
    for path in sorted((ROOT / "docs").rglob("*.svg")):
        name = str(path.relative_to(ROOT))
        # `draw_chapters` finds the pictures of the chapters in their text.
        if name not in PICTURES and not name.startswith("docs/guide/course/pictures/"):
            problems.append(f"{name}: tools/pictures.py does not know the program that draws it")
    with tempfile.TemporaryDirectory() as folder:
        for name, new in draw(Path(folder), programs).items():
            if not arguments.check:
                (ROOT / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(new, ROOT / name)
                print(f"wrote {name}")
            elif not (ROOT / name).is_file():
                problems.append(f"{name} is missing")
            else:
                problem = difference((ROOT / name).read_text(encoding="utf-8"), new.read_text(encoding="utf-8"))
                problems += [f"{name}: {problem}. `tools/pictures.py` draws it again."] if problem else []
    if not arguments.no_chapters:
        drawn, differences = draw_chapters(arguments.check, programs)
        count, problems = count + drawn, problems + differences
    print("\n".join(problems) if problems else f"{count} pictures")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
