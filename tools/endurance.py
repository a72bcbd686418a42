#!/usr/bin/env python3
"""Runs a million small steps of training with shapes that never repeat.

    tools/endurance.py                   # a million steps, about 40 seconds on two cores after the build
    tools/endurance.py --steps 10000

Memory must stay flat, and a program must give the same bits as in a fresh process. The script builds and runs
the ignored test `endurance::a_million_steps` and ends with the status of the test.
"""

import argparse
import os
import subprocess
import sys

from sources import ROOT


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=1_000_000, help="the number of steps (default: %(default)s)")
    steps = parser.parse_args().steps
    command = ["cargo", "test", "--release", "-p", "wengert-tests", "--test", "alone", "endurance::a_million_steps"]
    options = ["--", "--exact", "--ignored", "--nocapture"]
    environment = {**os.environ, "WENGERT_TEST_STEPS": str(steps)}
    sys.exit(subprocess.run(command + options, cwd=ROOT, env=environment).returncode)


if __name__ == "__main__":
    main()
