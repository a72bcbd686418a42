#!/usr/bin/env python3
"""Times SciPy's solvers for the problems of solvers.rs, with the same tolerances. The gradients of solutions are left out, because SciPy has
none. `minimize` and `least_squares` get exact derivatives. `root` and the stiff solver approximate their Jacobians.

    python3 benches/solvers.py [FILTER]
"""

import sys
import time

import numpy as np
from scipy import integrate, optimize

TOLERANCES = dict(rtol=1e-6, atol=1e-9)


def lorenz(t, y):
    return np.array([10 * (y[1] - y[0]), y[0] * (28 - y[2]) - y[1], y[0] * y[1] - 8 / 3 * y[2]])


def pendulum(t, y):
    return np.array([y[1], -np.sin(y[0])])


def van_der_pol(t, y):
    return np.array([y[1], 1000 * (1 - y[0] ** 2) * y[1] - y[0]])


MATRIX = -2 * np.eye(100) + np.eye(100, k=1) + np.eye(100, k=-1)


def broyden(x):
    zero = np.zeros(1)
    return (3 - 2 * x) * x - np.concatenate([zero, x[:-1]]) - 2 * np.concatenate([x[1:], zero]) + 1


T = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6, 8])
Y = np.array([5.1, 3.72, 2.9, 2.18, 1.81, 1.2, 0.93, 0.62, 0.56])


def decay_slopes(x):
    e = np.exp(-x[1] * T)
    return np.stack([e, -x[0] * T * e, np.ones(9)], axis=1)


PROBLEMS = {
    "one_slope": lambda: lorenz(0, np.ones(3)),
    "ode_lorenz": lambda: integrate.solve_ivp(lorenz, (0, 10), [1.0, 1, 1], **TOLERANCES),
    "ode_pendulum": lambda: integrate.solve_ivp(pendulum, (0, 20), [1.0, 0], **TOLERANCES),
    "ode_heat_100": lambda: integrate.solve_ivp(lambda t, y: MATRIX @ y, (0, 10), np.sin(np.arange(100) * 0.1), **TOLERANCES),
    "ode_van_der_pol_stiff": lambda: integrate.solve_ivp(van_der_pol, (0, 1500), [2.0, 0], method="Radau", **TOLERANCES),
    "root_broyden": lambda: optimize.root(broyden, -np.ones(10)),
    "brentq_cosine": lambda: optimize.brentq(lambda x: np.cos(x) - x, 0, 1),
    "least_squares_decay": lambda: optimize.least_squares(
        lambda x: x[0] * np.exp(-x[1] * T) + x[2] - Y, [1.0, 1, 0], jac=decay_slopes, method="lm", x_scale="jac"
    ),
    "minimize_rosenbrock_10": lambda: optimize.minimize(optimize.rosen, np.zeros(10), jac=optimize.rosen_der),
    "quad_gauss": lambda: integrate.quad(lambda x: np.exp(-x * x), -np.inf, np.inf),
    "quad_waves": lambda: integrate.quad(lambda x: np.cos(50 * x) * x, 0, 3),
}


def measure(problem):
    problem()
    start, shortest = time.perf_counter(), float("inf")
    while time.perf_counter() - start < 0.5:
        call = time.perf_counter()
        problem()
        shortest = min(shortest, time.perf_counter() - call)
    return shortest * 1e6


def main():
    wanted = sys.argv[1] if len(sys.argv) > 1 else ""
    for name, problem in PROBLEMS.items():
        if wanted in name:
            print(f"{name} SciPy {measure(problem):.1f}", flush=True)


if __name__ == "__main__":
    main()
