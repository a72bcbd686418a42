#!/usr/bin/env python3
"""Runs mutation tests: cargo-mutants changes one expression at a time, and a test must fail.

    tools/mutants.py broadcast layout compat partition storage pool threads
    tools/mutants.py engine checkpoint --shard 0/4     # a sample: every fourth mutant
    tools/mutants.py --package FOLDER                  # only writes the package of the lower folders

The modules `broadcast` to `threads` are in the lower folders of wengert-tensor, which import none of the upper folders. The
script copies them to a small package, which compiles in seconds. Their own unit tests must find each mutant. `engine` (binding, tiling
and short axes), `kernel` (selection, padding and distances) and `checkpoint` run in their crates. The results go to
target/mutants/GROUP/mutants.out. The status is 0 if the tests find every mutant in time.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

from sources import ROOT

LOW = "thresholds.rs shape scalar memory".split()

# The files of each group, and the filters of the unit tests that must find its mutants.
GROUPS = {
    "broadcast": (["src/shape/broadcast.rs"], ["shape::"]),
    "layout": (["src/shape/layout.rs"], ["shape::"]),
    "compat": (["src/shape/compat/*.rs"], ["shape::"]),
    "partition": (["src/memory/partition.rs"], ["memory::"]),
    "storage": (["src/memory/storage.rs"], ["memory::"]),
    "pool": (["src/memory/pool/*.rs"], ["memory::"]),
    "threads": (["src/memory/threads/*.rs"], ["memory::"]),
    "engine": (
        [f"crates/tensor/src/engine/{name}.rs" for name in ("bound", "tiling", "short_axis", "run_short_axis")],
        ["engine::", "tensor::program::"],
    ),
    "kernel": (
        [f"crates/tensor/src/kernel/{name}.rs" for name in ("scan/select", "pad", "distance")],
        ["kernel::scan", "ops::shape::padding", "distances"],
    ),
    "checkpoint": (["crates/nn/src/checkpoint/*.rs"], ["checkpoint::"]),
}
PACKAGES = {"engine": "wengert-tensor", "kernel": "wengert-tensor", "checkpoint": "wengert-nn"}

# The unit tests of these files use the upper folders, so the small package leaves them out.
CUT = ["shape/diagnostic/mod.rs", "shape/dims.rs", "shape/ranges.rs", "scalar/math/mod.rs"]


def write_package(folder):
    """Writes a package with the lower folders of wengert-tensor."""
    tensor = ROOT / "crates/tensor"
    shutil.rmtree(folder / "src", ignore_errors=True)
    (folder / "src").mkdir(parents=True)
    for name in LOW:
        source, target = tensor / "src" / name, folder / "src" / name
        shutil.copytree(source, target) if source.is_dir() else shutil.copy(source, target)
    for name in CUT:
        path = folder / "src" / name
        path.write_text(path.read_text().split("#[cfg(test)]")[0])
    memory = folder / "src/memory/mod.rs"
    memory.write_text(memory.read_text().replace("#[cfg(test)]\nmod tests;\n", ""))
    upper = re.compile(r"(pub )?(use|mod) (engine|kernel|ops|tensor)\b")
    lines = (tensor / "src/lib.rs").read_text().split("\n/// The tensor type and")[0].splitlines()
    lines = [line for line in lines if not upper.match(line) and not line.startswith("//!") and line != "#[doc(hidden)]"]
    (folder / "src/lib.rs").write_text("#![allow(dead_code, unused)]\n" + "\n".join(lines) + "\n")
    manifest = (tensor / "Cargo.toml").read_text()
    manifest = "\n".join(line for line in manifest.splitlines() if not re.match(r"(approx|gemm|wengert-macros)", line))
    manifest = manifest.replace("wengert-tensor", "wengert-lower-folders").replace("[lints]\nworkspace = true\n", "")
    manifest = re.sub(r"\n\[target.'cfg\(all\(target_family.*?\n\n", "\n", manifest, flags=re.S)
    workspace = (ROOT / "Cargo.toml").read_text()
    sections = re.findall(r"^\[workspace\.(?:package|dependencies)\]\n.*?(?=^\[)", workspace, flags=re.S | re.M)
    sections = [re.sub(r'^wengert.*path.*\n', "", section, flags=re.M) for section in sections]
    profile = "[profile.dev]\ndebug = false\nopt-level = 0\n"
    (folder / "Cargo.toml").write_text("\n".join([manifest, "\n[workspace]\n", *sections, profile]))
    shutil.copy(ROOT / "Cargo.lock", folder / "Cargo.lock")


def run(group, arguments):
    """Runs the mutants of a group. Returns the status of cargo-mutants."""
    files, filters = GROUPS[group]
    target = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")).resolve()
    out = target / "mutants" / group
    out.mkdir(parents=True, exist_ok=True)
    command = ["cargo", "mutants", "--output", out, "--timeout", str(arguments.timeout)]
    command += [option for file in files for option in ("--file", file)]
    command += ["--sharding", "round-robin", "--shard", arguments.shard] if arguments.shard else []
    command += ["--cargo-arg", "--lib", "--", "--", *filters]
    environment = {**os.environ, "CARGO_PROFILE_DEV_OPT_LEVEL": "0", "CARGO_PROFILE_DEV_DEBUG": "false", "CARGO_INCREMENTAL": "1"}
    folder = ROOT
    if group in PACKAGES:
        # cargo-mutants changes a copy of the repository, which has its own folder of builds.
        command[2:2] = ["--package", PACKAGES[group]]
        environment.pop("CARGO_TARGET_DIR", None)
    else:
        folder = target / "mutants/lower-folders"
        write_package(folder)
        command.insert(2, "--in-place")
        environment["CARGO_TARGET_DIR"] = str(target / "mutants/build")
    return subprocess.run(command, cwd=folder, env=environment).returncode


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("groups", nargs="*", choices=[*GROUPS, []], metavar="GROUP", help=", ".join(GROUPS))
    parser.add_argument("--shard", metavar="K/N", help="only every N-th mutant, from the K-th on")
    parser.add_argument("--timeout", type=int, default=60, help="seconds for the tests of one mutant (default: %(default)s)")
    parser.add_argument("--package", type=Path, help="writes the package of the lower folders there, and ends")
    arguments = parser.parse_args()
    if arguments.package:
        write_package(arguments.package)
        return
    sys.exit(max([run(group, arguments) for group in arguments.groups or GROUPS]))


if __name__ == "__main__":
    main()
