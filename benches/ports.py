#!/usr/bin/env python3
"""Times the ports of examples/ports beside the original programs, turn about.

    cargo build --release -p wengert-ports --example time_ports
    benches/ports.py PROGRAM FOLDER [NAME...] [--threads N] [--rounds N] [--long NAME...] [--what objective fit]

PROGRAM is target/release/examples/time_ports, FOLDER has the examples of HIPS/autograd. Needs autograd and SciPy. Prints the medians: time of
the objective with its gradient at the start, and of the whole fit, without pictures and printed lines. The fits of the programs after
`--long` run once instead of in every round. These are gmm, gplvm and mixture_variational_inference if the option is absent.
"""

import argparse
import json
import os
import runpy
import statistics
import subprocess
import sys
import time
from unittest.mock import MagicMock

NAMES = ["gaussian_process", "gmm", "ica", "gplvm", "mixture_variational_inference"]


def median(call):
    """Returns the median time of a call in seconds, over samples of at least 5 ms that take 1 s."""
    begin, samples = time.perf_counter(), []
    while time.perf_counter() - begin < 1:
        sample, calls = time.perf_counter(), 0
        while time.perf_counter() - sample < 0.005:
            call()
            calls += 1
        samples.append((time.perf_counter() - sample) / calls)
    return statistics.median(samples)


def load(folder, name):
    """Runs an original program with its optimiser replaced. Returns its objective with gradient, and its fit."""
    import autograd.misc.optimizers
    import scipy.optimize
    from autograd import value_and_grad

    caught = {}

    def catch(function, start, jac, callback=None, **settings):
        caught["objective"] = (lambda: function(start)) if jac is True else (lambda: value_and_grad(function)(start))
        caught["fit"] = lambda: minimize(function, start, jac=jac, **settings).fun

    def catch_adam(slope, start, callback=None, **settings):
        caught["fit"] = lambda: adam(slope, start, None, **settings)
        caught["start"] = start

    minimize, adam = scipy.optimize.minimize, autograd.misc.optimizers.adam
    scipy.optimize.minimize, autograd.misc.optimizers.adam = catch, catch_adam
    main = runpy.run_path(f"{folder}/{name}.py", run_name="__main__")
    scipy.optimize.minimize, autograd.misc.optimizers.adam = minimize, adam
    if "start" in caught:
        caught["objective"] = lambda: value_and_grad(main["objective"])(caught["start"], 0)
    return caught


def serve(folder):
    """Answers the same lines as the port's program."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    for module in ("matplotlib", "matplotlib.pyplot", "matplotlib.image", "matplotlib.cm"):
        sys.modules[module] = MagicMock()
    sys.path.insert(0, folder)
    programs = {}
    for line in sys.stdin:
        name, what = line.split()
        program = programs.setdefault(name, None) or load(folder, name)
        programs[name] = program
        if what == "fit":
            begin = time.perf_counter()
            lowest = program["fit"]()
            seconds = time.perf_counter() - begin
            print(f"{name}: objective {lowest if getattr(lowest, 'ndim', 0) == 0 else '(random)'} at the end", file=sys.stderr)
        else:
            seconds = median(program["objective"])
        print(seconds, file=answers, flush=True)


def main():
    """Reads the command line, and asks both programs in turn."""
    if sys.argv[1] == "--serve":
        return serve(sys.argv[2])
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("folder")
    parser.add_argument("names", nargs="*", default=NAMES)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--long", nargs="*", default=["gmm", "gplvm", "mixture_variational_inference"])
    parser.add_argument("--what", nargs="*", default=["objective", "fit"])
    arguments = parser.parse_args()
    threads = {name: str(arguments.threads) for name in ("WENGERT_NUM_THREADS", "OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS")}
    commands = [arguments.program], [sys.executable, __file__, "--serve", arguments.folder]
    servers = [
        subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=os.environ | threads)
        for command in commands
    ]

    def ask(server, line):
        print(line, file=server.stdin, flush=True)
        return float(server.stdout.readline())

    for name in arguments.names:
        for what in arguments.what:
            rounds = 1 if what == "fit" and name in arguments.long else arguments.rounds
            times = [[ask(server, f"{name} {what}") for server in servers] for _ in range(rounds)]
            ours, theirs = (statistics.median(column) for column in zip(*times))
            print(json.dumps([name, what, arguments.threads, ours, theirs, round(theirs / ours, 2)]), flush=True)


if __name__ == "__main__":
    main()
