#!/usr/bin/env python3
"""Times whole models while other processes keep the machine busy.

    cargo build --release --example models
    python3 benches/busy.py ours2="env WENGERT_NUM_THREADS=2 target/release/examples/models" \
        ours1="env WENGERT_NUM_THREADS=1 target/release/examples/models" [NAME="COMMAND" ...]

Each command is a runner of the protocol in `runner.rs`. For each number of busy processes and each model, the runners
answer in turn. An answer is the median over 0.7 s. The table shows the smallest answer of all rounds in microseconds, and
the first runner's time divided by each other runner's. On a busy machine, the system suspends a runner during some answers
and not during others. So answers differ much, and only the smallest one is used.

    --busy 0,1,2,4    numbers of busy processes
    --rounds N        answers of each runner to each model (4)
    --only TEXT       models whose name contains TEXT
"""
import argparse
import json
import os
import shlex
import signal
import subprocess
import sys
import tempfile

MODELS = {
    "gpt": ["gpt", [8, 32, 32, 4, 2, 65]],
    "lstm": ["lstm", [16, 30, 64, 40]],
    "mlp_big": ["mlp_big", [500, 50, 64, 64, 64, 64, 64, 5]],
    "cnn_bn": ["cnn_bn", [16, 24, 12]],
}

# A shell that never sleeps. `timeout` ends it after two minutes, in case this script is killed.
BUSY = ["timeout", "120", "sh", "-c", "while :; do :; done"]


def start(command, table):
    """Starts a runner, with the table of models in the file `table`."""
    environment = {**os.environ, "WORKLOADS": table, "TF_CPP_MIN_LOG_LEVEL": "3"}
    return subprocess.Popen(shlex.split(command), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment)


def ask(runner, model):
    """Returns the microseconds of one step, or None if the runner cannot compute the model."""
    runner.stdin.write(model + "\n")
    runner.stdin.flush()
    answer = json.loads(runner.stdout.readline())
    return answer["ns"] / 1000 if "ns" in answer else None


def measure(runners, model, rounds):
    """Returns the smallest time of each runner; the runners answer in turn."""
    times = {name: [] for name in runners}
    for _ in range(rounds):
        for name, runner in runners.items():
            times[name].append(ask(runner, model))
    return {name: min(answers) if None not in answers else None for name, answers in times.items()}


def row(busy, model, times):
    """Returns a line of the table."""
    first, *others = times.values()
    cells = [f"{time:,.0f}" if time else "–" for time in times.values()]
    ratios = [f"{first / time:.2f}" if first and time else "–" for time in others]
    return f"| {' | '.join([str(busy), model, *cells, *ratios])} |"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--busy", default="0,1,2,4")
    parser.add_argument("--rounds", type=int, default=4)
    parser.add_argument("--only", default="")
    parser.add_argument("runners", nargs="+", metavar="NAME=COMMAND")
    options = parser.parse_args()
    # Ends the busy processes too if this script is told to end.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    models = [model for model in MODELS if options.only in model]
    with tempfile.NamedTemporaryFile("w", suffix=".json") as table:
        json.dump(MODELS, table)
        table.flush()
        runners = {}
        for runner in options.runners:
            name, command = runner.split("=", 1)
            runners[name] = start(command, table.name)
        # Every runner loads before anything is timed.
        for runner in runners.values():
            ask(runner, models[0])
        names = list(runners)
        header = ["busy", "model", *names, *(f"{names[0]} ÷ {name}" for name in names[1:])]
        print(f"| {' | '.join(header)} |\n|{'---|' * len(header)}", flush=True)
        for busy in map(int, options.busy.split(",")):
            for model in models:
                load = [subprocess.Popen(BUSY) for _ in range(busy)]
                try:
                    print(row(busy, model, measure(runners, model, options.rounds)), flush=True)
                finally:
                    for process in load:
                        process.terminate()
                        process.wait()
        for runner in runners.values():
            runner.stdin.close()


if __name__ == "__main__":
    main()
