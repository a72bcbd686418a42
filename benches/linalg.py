#!/usr/bin/env python3
"""Times linear algebra with NumPy, PyTorch and JAX: kind, type, n, batch, library, microseconds. The best of 0.3 s.

    python benches/linalg.py [FILTER]

`cargo run --release -p wengert-benches --example linalg` prints the same lines for Wengert. The packages must be installed.
"""

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
    """Returns positive-definite matrices, regular ones, columns, and Cholesky factors."""
    random = numpy.random.default_rng(1)
    lead = () if batch == 1 else (batch,)
    x = random.standard_normal((*lead, n, n))
    definite = x @ numpy.swapaxes(x, -1, -2) + n * numpy.eye(n)
    b = random.standard_normal((*lead, n, 1))
    arrays = [definite, x + n * numpy.eye(n), b, numpy.linalg.cholesky(definite)]
    return [array.astype(dtype) for array in arrays]


def of_numpy(numpy, dtype):
    """Returns a function that makes the calls of NumPy; its triangular solution is SciPy's, without batches."""
    from scipy.linalg import solve_triangular

    def calls(n, batch):
        s, a, b, l = inputs(numpy, n, batch, dtype)
        of = numpy.linalg
        made = {
            "cholesky": lambda: of.cholesky(s),
            "solve": lambda: of.solve(a, b),
            "inv": lambda: of.inv(a),
            "det": lambda: of.det(a),
            "qr": lambda: of.qr(a),
            "eigh": lambda: of.eigh(s),
            "svd": lambda: of.svd(a, full_matrices=False),
        }
        if batch == 1:
            made["triangular"] = lambda: solve_triangular(l, b, lower=True)
        return made

    return calls


def of_torch(numpy, dtype):
    """Returns a function that makes the calls of PyTorch."""
    import torch

    def calls(n, batch):
        s, a, b, l = (torch.from_numpy(array) for array in inputs(numpy, n, batch, dtype))
        of = torch.linalg
        return {
            "cholesky": lambda: of.cholesky(s),
            "solve": lambda: of.solve(a, b),
            "inv": lambda: of.inv(a),
            "det": lambda: of.det(a),
            "triangular": lambda: of.solve_triangular(l, b, upper=False),
            "qr": lambda: of.qr(a),
            "eigh": lambda: of.eigh(s),
            "svd": lambda: of.svd(a, full_matrices=False),
        }

    return calls


def of_jax(numpy, dtype):
    """Returns a function that makes the compiled calls of JAX."""
    import jax

    jax.config.update("jax_enable_x64", True)
    of, triangular = jax.numpy.linalg, jax.lax.linalg.triangular_solve

    def calls(n, batch):
        s, a, b, l = (jax.numpy.asarray(array) for array in inputs(numpy, n, batch, dtype))
        compiled = {
            "cholesky": (jax.jit(of.cholesky), (s,)),
            "solve": (jax.jit(of.solve), (a, b)),
            "inv": (jax.jit(of.inv), (a,)),
            "det": (jax.jit(of.det), (a,)),
            "triangular": (jax.jit(lambda l, b: triangular(l, b, left_side=True, lower=True)), (l, b)),
            "qr": (jax.jit(of.qr), (a,)),
            "eigh": (jax.jit(of.eigh), (s,)),
            "svd": (jax.jit(lambda a: of.svd(a, full_matrices=False)), (a,)),
        }
        return {kind: lambda f=f, x=x: jax.block_until_ready(f(*x)) for kind, (f, x) in compiled.items()}

    return calls


def main():
    import numpy

    wanted = sys.argv[1] if len(sys.argv) > 1 else ""
    for dtype, name in [("float64", "f64"), ("float32", "f32")]:
        for library, make in [("numpy", of_numpy), ("torch", of_torch), ("jax", of_jax)]:
            try:
                calls = make(numpy, dtype)
            except ImportError:
                continue
            for n, batch in SIZES:
                for kind, run in calls(n, batch).items():
                    if wanted in kind:
                        print(kind, name, n, batch, library, f"{measure(run):.3f}", flush=True)


if __name__ == "__main__":
    main()
