#!/usr/bin/env python3
"""Runs the examples of the course and writes their output and pictures into the chapters of the guide.

    tools/course_output.py [NAME...]           writes the chapters of all examples, or only of some
    tools/course_output.py --check [NAME...]   compares the chapters with the output, and ends with 1 if one differs
    tools/course_output.py --check --quick     leaves out the chapters of SLOW, whose programs take long in a debug build
    tools/course_output.py --check --slow      compares the chapters of SLOW
    tools/course_output.py --programs FOLDER   runs the programs of another folder, such as target/debug/examples, and builds none

Without --programs, the examples are built with --release first.

The output of an example replaces the first block below the heading "The output" of its chapter, and further blocks if RUNS lists
further runs. A picture that the chapter shows is copied from the folder of the example. The programs run with WENGERT_SIMD=portable, which
gives the same numbers on every processor. Times are not compared. With neither names nor `--slow`, `--check` also requires each message
that README.md and the guide quote from another example, such as `bias_add`, in the output of this example.
"""

import argparse
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from pictures import difference

ROOT = Path(__file__).resolve().parent.parent
COURSE = ROOT / "docs/guide/course"
RELEASE = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")) / "release/examples"
BLOCK = re.compile(r"(?<=```text\n).*?(?=```\n)", re.S)
PICTURE = re.compile(r"\]\(pictures/([\w.-]+)\)")
QUOTING = [ROOT / "README.md", *sorted((ROOT / "docs/guide").glob("*.md"))]
# Each block of the output: the options of the runs that print it. Without an entry, it is one run without options.
RUNS = {"11_resume": [[[]], [["--kill", "3"], ["--resume"]]]}
# The examples that take more than ten seconds in a debug build, on two cores.
SLOW = [
    "09_overfitting",
    "12_digits_cnn",
    "13_mistakes",
    "15_profile",
    "18_burgers",
    "19_autoencoder",
    "20_variational",
    "21_gru_text",
    "22_transformer_text",
    "25_fine_tuning",
    "32_augmentation",
    "33_batch_norm",
    "34_label_smoothing",
]
# A number with a unit of time, the share that it has in a profile, and the bar of this share. Also the number of samples in a second.
TIME = re.compile(r" *\d[\d.]* (?:µs|ms|s|min)\b(?: +\d+%(?: +#+)?)?| \d+(?= samples in a second)")

# The place of a message in an example outside of the course.
QUOTED = re.compile(r"\bexamples/(\w+)\.rs:\d+")


def run(program, folder, options, errors=False):
    """Returns the output of one run, without spaces at the ends of lines. `errors` adds what it writes to standard error."""
    environment = {**os.environ, "WENGERT_SIMD": "portable"}
    done = subprocess.run([program, *options], cwd=folder, capture_output=True, text=True, env=environment)
    # The option --kill ends the program in the way of an error.
    if done.returncode != 0 and "--kill" not in options:
        sys.exit(f"{program} {' '.join(options)} failed:\n{done.stderr[-2000:]}")
    return "".join(line.rstrip() + "\n" for line in (done.stdout + (done.stderr if errors else "")).rstrip().splitlines())


def build(names):
    """Builds examples of the course with optimisation."""
    # One command for both packages would build the library with the features of both.
    science = re.findall(r'name = "([0-9]\w+)"', (ROOT / "examples/science/Cargo.toml").read_text(encoding="utf-8"))
    for package in ("wengert-course", "wengert-science"):
        package_names = [name for name in names if (name in science) == (package == "wengert-science")]
        command = ["cargo", "build", "--release", "--quiet", "-p", package]
        if package_names and subprocess.run([*command, *(word for name in package_names for word in ("--example", name))], cwd=ROOT).returncode != 0:
            sys.exit("the examples cannot be built")


def outputs(name, programs):
    """Returns the text of each block of an example's output, and its pictures as a dictionary."""
    blocks, pictures = [], {}
    for runs in RUNS.get(name, [[[]]]):
        with tempfile.TemporaryDirectory() as folder:
            blocks.append("".join(run(programs / name, folder, options) for options in runs))
            for picture in Path(folder).glob(f"out/{name}/*.svg"):
                pictures[picture.name] = picture.read_text(encoding="utf-8")
    return blocks, pictures


def replaced(page, blocks):
    """Returns the chapter with these blocks below the heading "The output"."""
    before, after = page.split("## The output\n", 1)
    following, new = iter(blocks), len(blocks)
    return f"{before}## The output\n{BLOCK.sub(lambda _: next(following), after, count=new)}"


def examples():
    """Returns the names of the examples of the course, in order."""
    return sorted(path.stem for path in (ROOT / "examples/course").glob("[0-9]*.rs"))


def chapter_of(name):
    """Returns the path of the chapter of an example."""
    return COURSE / f"{name.replace('_', '-')}.md"


def without_times(text):
    """Returns a text in which the word TIME replaces each time."""
    return TIME.sub(" TIME", text)


def first_difference(old, new):
    """Returns a sentence about the first line that differs, or None. Times do not count."""
    a, b = without_times(old).splitlines(), without_times(new).splitlines()
    for old_line, new_line in zip(a, b):
        if old_line != new_line:
            return f"the page has {old_line.strip()!r}, the program printed {new_line.strip()!r}"
    return None if len(a) == len(b) else f"the page has {len(a)} lines, with the output of the program {len(b)}"


def check(name, page, blocks, pictures):
    """Returns the differences between a chapter and the output of its program."""
    problem = first_difference(page, replaced(page, blocks))
    return ([f"{name}: {problem}"] if problem else []) + check_pictures(page, pictures)


def check_pictures(page, pictures):
    """Returns the differences between the pictures of a chapter and the new pictures of its program."""
    problems = []
    for picture in PICTURE.findall(page):
        old, new = COURSE / "pictures" / picture, pictures[picture.split("-", 1)[1]]
        problem = difference(old.read_text(encoding="utf-8"), new) if old.is_file() else "it is missing"
        problems += [f"docs/guide/course/pictures/{picture}: {problem}"] if problem else []
    return problems


def write(chapter, page, blocks, pictures):
    """Writes the chapter and its pictures anew."""
    chapter.write_text(replaced(page, blocks), encoding="utf-8")
    write_pictures(page, pictures)


def write_pictures(page, pictures):
    """Writes the pictures of a chapter anew."""
    (COURSE / "pictures").mkdir(exist_ok=True)
    for picture in PICTURE.findall(page):
        (COURSE / "pictures" / picture).write_text(pictures[picture.split("-", 1)[1]], encoding="utf-8")


def quotations(page):
    """Returns the examples outside of the course that a page quotes messages of, each with the lines of the quotation."""
    for block in BLOCK.findall(page):
        found = QUOTED.search(block)
        if found:
            yield found[1], [line.strip() for line in block.splitlines() if line.strip()]


def check_quotations(pages, printed):
    """Returns the lines that a page quotes and that the example does not print. `printed` returns the output of an example."""
    problems = []
    for name, page in pages.items():
        for example, quoted in quotations(page):
            lines = [line.strip() for line in printed(example).splitlines() if line.strip()]
            # A note may stand to the right of a line.
            missing = [line for line in quoted if not any(f"{line}     ".startswith(f"{old}     ") for old in lines)]
            problems += [f"{name}: {example} does not print {line!r}" for line in missing]
    return problems


def control():
    """Checks the comparison: it must find another number and another line, and accept another time."""
    page = "## The output\n\n```text\nepoch 1   loss 0.5   0.1 s, 10 s left\nshift  7 µs  16%  #####\n```\n"
    changed = "epoch 1   loss 0.5   12 s, 1 s left\nshift  1337 µs  9%  #\n"
    assert first_difference(page, replaced(page, [changed])) is None
    for old, new in [("0.5", "0.6"), ("epoch 1", "epoch 2"), ("shift", "batch"), ("0.5", "0.5\n")]:
        assert first_difference(page, replaced(page, [changed.replace(old, new)])), new
    page = {"page": "```text\nA size\n  --> examples/bias_add.rs:22:16, in add      a note\n```\n"}
    assert not check_quotations(page, lambda _: "A size\n  --> examples/bias_add.rs:22:16, in add\n")
    assert check_quotations(page, lambda _: "A size\n  --> examples/bias_add.rs:23:16, in add\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", help="the examples, such as 05_line; all without a name")
    parser.add_argument("--check", action="store_true", help="compare, and write nothing")
    parser.add_argument("--quick", action="store_true", help="leave out the examples that take long in a debug build")
    parser.add_argument("--slow", action="store_true", help="run only the examples that take long in a debug build")
    parser.add_argument("--programs", type=Path, help="folder of the built examples")
    arguments = parser.parse_args()
    control()
    names = arguments.names or examples()
    assert set(SLOW) <= {path.stem for path in (ROOT / "examples/course").glob("*.rs")}, "SLOW names a missing example"
    names = [name for name in names if not (arguments.quick and name in SLOW or arguments.slow and name not in SLOW)]
    problems, programs = [], arguments.programs.resolve() if arguments.programs else RELEASE.resolve()
    quoted = arguments.check and not arguments.names and not arguments.slow
    if not arguments.programs:
        build(names)
        if quoted:
            subprocess.run(["cargo", "build", "--release", "--quiet", "--examples"], cwd=ROOT, check=True)
    if quoted:
        pages = {str(path.relative_to(ROOT)): path.read_text(encoding="utf-8") for path in QUOTING}
        with tempfile.TemporaryDirectory() as folder:
            problems += check_quotations(pages, lambda example: run(programs / example, folder, [], errors=True))
    for name in names:
        blocks, pictures = outputs(name, programs)
        chapter = chapter_of(name)
        page = chapter.read_text(encoding="utf-8")
        if arguments.check:
            problems += check(name, page, blocks, pictures)
        else:
            write(chapter, page, blocks, pictures)
            print(f"{name}: {max(len(line) for block in blocks for line in block.splitlines())} columns", flush=True)
    print("\n".join([*problems, "`tools/course_output.py` writes the chapters again."] if problems else [f"{len(names)} chapters"]))
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
