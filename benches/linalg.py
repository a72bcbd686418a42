#!/usr/bin/env python3
"""Compares linear algebra with NumPy, PyTorch, JAX, nalgebra and faer.

    cargo build --release -p wengert-benches --bin linalg
    cargo build --release --manifest-path benches/peers/Cargo.toml
    python benches/linalg.py [--threads 2] [--only cholesky] [--ours PROGRAM] [--rust PROGRAM] [--peers numpy,torch,jax]

Each library runs in its own process, because the threads of several libraries in one process disturb each other. The libraries take
turns: with --rounds N, each runs N times and its shortest time counts. The result is a table in Markdown with microseconds. The last column
is the shortest time of the others divided by ours, in bold where it is below 1. --threads sets the
variables of OpenBLAS, OpenMP, MKL, Rayon and Wengert.

    python benches/linalg.py --library numpy --only cholesky --size 128,1

prints the lines of one library: kind, type, n, batch, library, microseconds, the best of 0.3 s. With --lines FILE ..., the table is made from
files with these lines, and nothing runs. `cargo run --release -p wengert-benches
--bin linalg` and `benches/peers` print the same lines. The packages must be installed.
"""

import argparse
import os
import subprocess
import sys
import time

SIZES = [(4, 1), (8, 1), (32, 1), (128, 1), (512, 1), (4, 4096), (8, 4096)]


def measure(run):
    """Returns the shortest time of a call in microseconds."""
    run()
    best, rounds, count, begin = float("inf"), 1, 0, time.perf_counter()
    while time.perf_counter() - begin < 0.3 or count < 5:
        start = time.perf_counter()
        for _ in range(rounds):
            run()
        taken = time.perf_counter() - start
        best = min(best, taken / rounds)
        rounds = rounds * 2 if taken < 1e-3 else rounds
        count += 1
    return best * 1e6


def inputs(numpy, n, batch, dtype):
    """Returns random matrices, positive-definite ones, well-conditioned ones, columns, and Cholesky factors."""
    random = numpy.random.default_rng(1)
    lead = () if batch == 1 else (batch,)
    x = random.standard_normal((*lead, n, n))
    definite = x @ numpy.swapaxes(x, -1, -2) + n * numpy.eye(n)
    b = random.standard_normal((*lead, n, 1))
    arrays = [x, definite, x + n * numpy.eye(n), b, numpy.linalg.cholesky(definite)]
    return [array.astype(dtype) for array in arrays]


def of_numpy(numpy, dtype):
    """Returns a function that makes the calls of NumPy; its triangular solution is SciPy's, without batches."""
    from scipy.linalg import solve_triangular

    def calls(n, batch):
        x, s, a, b, l = inputs(numpy, n, batch, dtype)
        of = numpy.linalg
        made = {
            "cholesky": lambda: of.cholesky(s),
            "solve": lambda: of.solve(a, b),
            "inv": lambda: of.inv(a),
            "det": lambda: of.det(a),
            "qr": lambda: of.qr(x),
            "eigh": lambda: of.eigh(s),
            "svd": lambda: of.svd(x, full_matrices=False),
        }
        if batch == 1:
            made["triangular"] = lambda: solve_triangular(l, b, lower=True)
        return made

    return calls


def of_torch(numpy, dtype):
    """Returns a function that makes the calls of PyTorch."""
    import torch

    def calls(n, batch):
        x, s, a, b, l = (torch.from_numpy(array) for array in inputs(numpy, n, batch, dtype))
        of = torch.linalg
        return {
            "cholesky": lambda: of.cholesky(s),
            "solve": lambda: of.solve(a, b),
            "inv": lambda: of.inv(a),
            "det": lambda: of.det(a),
            "triangular": lambda: of.solve_triangular(l, b, upper=False),
            "qr": lambda: of.qr(x),
            "eigh": lambda: of.eigh(s),
            "svd": lambda: of.svd(x, full_matrices=False),
        }

    return calls


def of_jax(numpy, dtype):
    """Returns a function that makes the compiled calls of JAX."""
    import jax

    jax.config.update("jax_enable_x64", True)
    of, triangular = jax.numpy.linalg, jax.lax.linalg.triangular_solve

    def calls(n, batch):
        x, s, a, b, l = (jax.numpy.asarray(array) for array in inputs(numpy, n, batch, dtype))
        compiled = {
            "cholesky": (jax.jit(of.cholesky), (s,)),
            "solve": (jax.jit(of.solve), (a, b)),
            "inv": (jax.jit(of.inv), (a,)),
            "det": (jax.jit(of.det), (a,)),
            "triangular": (jax.jit(lambda l, b: triangular(l, b, left_side=True, lower=True)), (l, b)),
            "qr": (jax.jit(of.qr), (x,)),
            "eigh": (jax.jit(of.eigh), (s,)),
            "svd": (jax.jit(lambda x: of.svd(x, full_matrices=False)), (x,)),
        }
        return {kind: lambda f=f, given=given: jax.block_until_ready(f(*given)) for kind, (f, given) in compiled.items()}

    return calls


PEERS = {"numpy": of_numpy, "torch": of_torch, "jax": of_jax}
KINDS = ["cholesky", "solve", "inv", "det", "triangular", "qr", "eigh", "svd"]


def lines(library, only, size):
    """Prints the lines of one library."""
    import numpy

    for dtype, name in [("float64", "f64"), ("float32", "f32")]:
        calls = PEERS[library](numpy, dtype)
        for n, batch in SIZES:
            if size in ("", f"{n},{batch}"):
                for kind, run in calls(n, batch).items():
                    if only in kind:
                        print(kind, name, n, batch, library, f"{measure(run):.3f}", flush=True)


def run(command, threads):
    """Returns the lines that a program prints. The variables of OpenBLAS, OpenMP, MKL, Rayon and Wengert set the number of threads."""
    names = ["OPENBLAS", "OMP", "MKL", "RAYON", "WENGERT"]
    environment = {**os.environ, **{f"{name}_NUM_THREADS": str(threads) for name in names}}
    # These variables overrule OpenBLAS's choice of kernels and the size of the cache that it finds.
    for name in ["OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE"]:
        environment.pop(name, None)
    done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=True)
    return [line.split() for line in done.stdout.splitlines()]


def lines_of_files(files):
    """Yields the columns of the lines in files."""
    for file in files:
        with open(file, encoding="utf-8") as text:
            yield from (line.split() for line in text)


def measured(arguments, commands):
    """Yields the columns of the lines that the programs print, in turns."""
    for _ in range(arguments.rounds):
        for library, command in commands.items():
            yield from run(command, arguments.threads)
            print("measured", library, file=sys.stderr)


def compare(arguments):
    """Prints the table."""
    commands = {"wengert": [arguments.ours, arguments.only]}
    for library in arguments.peers.split(","):
        command = [sys.executable, __file__, "--library", library, "--only", arguments.only]
        commands[library] = command if library in PEERS else [arguments.rust, library, arguments.only]
    best = {}
    for kind, dtype, n, batch, library, time in lines_of_files(arguments.lines) if arguments.lines else measured(arguments, commands):
        key = (dtype, kind, int(n), int(batch), library)
        best[key] = min(float(time), best.get(key, float("inf")))
    peers = [library for library in commands if library != "wengert"]
    for dtype in ["f64", "f32"]:
        print(f"\n{dtype}\n\n| operation | n | batch | ours | {' | '.join(peers)} | best ÷ ours |")
        print("|---" * (5 + len(peers)) + "|")
        for kind in KINDS:
            for n, batch in SIZES:
                times = [best.get((dtype, kind, n, batch, library)) for library in commands]
                if times[0] is not None:
                    print(row(kind, n, batch, times))


def row(kind, n, batch, times):
    """Returns a row of the table. The first of `times` is ours."""
    cells = ["–" if time is None else f"{time:.3g}" if time < 100 else f"{time:,.0f}" for time in times]
    ratio = min((time for time in times[1:] if time is not None), default=0) / times[0]
    return f"| {kind} | {n} | {batch:,} | {' | '.join(cells)} | {f'{ratio:.2f}' if ratio >= 1 else f'**{ratio:.2f}**'} |"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--only", default="", help="operations whose name contains this text")
    parser.add_argument("--ours", default="target/release/linalg")
    parser.add_argument("--rust", default="benches/peers/target/release/wengert-peers")
    parser.add_argument("--peers", default="numpy,torch,jax,nalgebra,faer")
    parser.add_argument("--library", choices=list(PEERS), help="print the lines of this library only")
    parser.add_argument("--size", default="", help="N,BATCH for --library")
    parser.add_argument("--lines", nargs="*", default=[], help="files with lines instead of programs")
    arguments = parser.parse_args()
    if arguments.library:
        lines(arguments.library, arguments.only, arguments.size)
    else:
        compare(arguments)


if __name__ == "__main__":
    main()
