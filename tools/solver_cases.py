#!/usr/bin/env python3
"""Writes crates/solvers/tests/cases.json: solutions computed by SciPy, and the work that SciPy needed for them.

Needs SciPy. The tests define the same functions by the names of the cases. Differential equations are solved with tolerances near the
rounding error; `counts` are the steps and evaluations of `solve_ivp` with `rtol=1e-6, atol=1e-9`.

    python3 tools/solver_cases.py
"""

import json
import pathlib

import numpy as np
from scipy import integrate, optimize

ROOT = pathlib.Path(__file__).resolve().parent.parent
OUT = ROOT / "crates/solvers/tests/cases.json"

# name: right-hand side, initial state, times, stiff
EQUATIONS = {
    "lotka_volterra": (lambda t, y: [1.5 * y[0] - y[0] * y[1], -3 * y[1] + y[0] * y[1]], [10, 5], [0, 1, 2.5, 5, 15], False),
    "lorenz": (lambda t, y: [10 * (y[1] - y[0]), y[0] * (28 - y[2]) - y[1], y[0] * y[1] - 8 / 3 * y[2]], [1, 1, 1], [0, 0.3, 1, 3], False),
    "pendulum": (lambda t, y: [y[1], -0.25 * y[1] - 5 * np.sin(y[0]) + np.cos(2 * t)], [3, 0], [0, 2, 4, 10], False),
    "backward": (lambda t, y: [y[1], -y[0] + 0.1 * t], [1, 0], [3, 2, 0.5, -1], False),
    "van_der_pol": (lambda t, y: [y[1], 1000 * (1 - y[0] ** 2) * y[1] - y[0]], [2, 0], [0, 1, 500, 1500], True),
    "robertson": (
        lambda t, y: [-0.04 * y[0] + 1e4 * y[1] * y[2], 0.04 * y[0] - 1e4 * y[1] * y[2] - 3e7 * y[1] ** 2, 3e7 * y[1] ** 2],
        [1, 0, 0], [0, 0.4, 40, 4e4], True,
    ),
}

# name: function, start
SYSTEMS = {
    "freudenstein_roth": (lambda x: [-13 + x[0] + ((5 - x[1]) * x[1] - 2) * x[1], -29 + x[0] + ((x[1] + 1) * x[1] - 14) * x[1]], [6, 3]),
    "powell_badly_scaled": (lambda x: [1e4 * x[0] * x[1] - 1, np.exp(-x[0]) + np.exp(-x[1]) - 1.0001], [0, 1]),
    "broyden_tridiagonal": (
        lambda x: [(3 - 2 * x[i]) * x[i] - (x[i - 1] if i else 0) - 2 * (x[i + 1] if i < 9 else 0) + 1 for i in range(10)], [-1] * 10,
    ),
    "helical_valley": (
        lambda x: [10 * (x[2] - 10 * np.arctan2(x[1], x[0]) / (2 * np.pi)), 10 * (np.hypot(x[0], x[1]) - 1), x[2]], [1, 0.5, 0.5],
    ),
    "chandrasekhar": (
        lambda x: [
            x[i] - 1 / (1 - 0.45 / 8 * sum((i + 0.5) / (i + j + 1) * x[j] for j in range(8))) for i in range(8)
        ], [1] * 8,
    ),
}

# name: function, interval
SCALAR = {
    "cubic": (lambda x: x**3 - 2 * x - 5, [2, 3]),
    "cosine": (lambda x: np.cos(x) - x, [0, 1]),
    "flat": (lambda x: (x - 1) ** 9, [0, 4]),
    "exponential": (lambda x: np.exp(x) - 1e6, [-100, 100]),
    "step": (lambda x: np.tanh(1e3 * (x - 0.123)), [-1, 1]),
}

KOWALIK_Y = [0.1957, 0.1947, 0.1735, 0.16, 0.0844, 0.0627, 0.0456, 0.0342, 0.0323, 0.0235, 0.0246]
KOWALIK_U = [4, 2, 1, 0.5, 0.25, 0.167, 0.125, 0.1, 0.0833, 0.0714, 0.0625]
DECAY_T = [0, 0.5, 1, 1.5, 2, 3, 4, 6, 8]
DECAY_Y = [5.1, 3.72, 2.9, 2.18, 1.81, 1.2, 0.93, 0.62, 0.56]
MEYER_Y = [34780, 28610, 23650, 19630, 16370, 13720, 11540, 9744, 8261, 7030, 6005, 5147, 4427, 3820, 3307, 2872]


def kowalik(x):
    y, u = np.array(KOWALIK_Y), np.array(KOWALIK_U)
    return y - x[0] * (u**2 + u * x[1]) / (u**2 + u * x[2] + x[3])


def decay(x):
    t, y = np.array(DECAY_T), np.array(DECAY_Y)
    return x[0] * np.exp(-x[1] * t) + x[2] - y


def meyer(x):
    t = 45 + 5 * np.arange(1, 17)
    return x[0] * np.exp(x[1] / (t + x[2])) - np.array(MEYER_Y)


# name: residuals, start
FITS = {
    "rosenbrock": (lambda x: np.array([10 * (x[1] - x[0] ** 2), 1 - x[0]]), [-1.2, 1]),
    "kowalik_osborne": (kowalik, [0.25, 0.39, 0.415, 0.39]),
    "decay": (decay, [1, 1, 0]),
    "meyer": (meyer, [0.02, 4000, 250]),
    "powell_singular": (
        lambda x: np.array([x[0] + 10 * x[1], 5**0.5 * (x[2] - x[3]), (x[1] - 2 * x[2]) ** 2, 10**0.5 * (x[0] - x[3]) ** 2]),
        [3, -1, 0, 1],
    ),
}


def rosenbrock(x):
    return sum(100 * (x[i + 1] - x[i] ** 2) ** 2 + (1 - x[i]) ** 2 for i in range(len(x) - 1))


# name: function, start
MINIMA = {
    "rosenbrock": (rosenbrock, [-1.2, 1]),
    "rosenbrock_10": (rosenbrock, [-1.2, 1] * 5),
    "beale": (
        lambda x: (1.5 - x[0] + x[0] * x[1]) ** 2 + (2.25 - x[0] + x[0] * x[1] ** 2) ** 2 + (2.625 - x[0] + x[0] * x[1] ** 3) ** 2,
        [1, 1],
    ),
    "wood": (
        lambda x: 100 * (x[0] ** 2 - x[1]) ** 2 + (x[0] - 1) ** 2 + (x[2] - 1) ** 2 + 90 * (x[2] ** 2 - x[3]) ** 2
        + 10.1 * ((x[1] - 1) ** 2 + (x[3] - 1) ** 2) + 19.8 * (x[1] - 1) * (x[3] - 1),
        [-3, -1, -3, -1],
    ),
    "log_sum_exp": (lambda x: np.log(np.exp(x[0] + 3 * x[1]) + np.exp(x[0] - 3 * x[1]) + np.exp(-x[0])) + 0.1 * x @ x, [-1, 1.5]),
}

# name: function, limits
INTEGRALS = {
    "gauss": (lambda x: np.exp(-(x**2)), [-np.inf, np.inf]),
    "runge": (lambda x: 1 / (1 + 25 * x**2), [-1, 1]),
    "root": (lambda x: np.sqrt(x), [0, 1]),
    "logarithm": (lambda x: np.log(x), [0, 1]),
    "waves": (lambda x: np.cos(50 * x) * x, [0, 3]),
    "kink": (lambda x: abs(x - 0.3), [0, 1]),
    "lorentz": (lambda x: 1 / (1 + x**2), [0, np.inf]),
    "gamma": (lambda x: x**3 * np.exp(-x), [0, np.inf]),
    "tail": (lambda x: np.exp(x), [-np.inf, -1]),
    "reversed": (lambda x: np.exp(x), [1, 0]),
}


def numbers(values):
    return [float(value) for value in values]


def equations():
    for name, (f, y0, times, stiff) in EQUATIONS.items():
        method, rtol = ("Radau", 1e-11) if stiff else ("DOP853", 1e-13)
        solve = lambda **options: integrate.solve_ivp(f, (times[0], times[-1]), y0, **options)
        exact = solve(method=method, rtol=rtol, atol=1e-14, t_eval=times)
        case = {"name": name, "y0": numbers(y0), "times": numbers(times), "y": [numbers(row) for row in exact.y.T], "counts": {}}
        for method in ["Radau"] if stiff else ["RK23", "RK45"]:
            solved = solve(method=method, rtol=1e-6, atol=1e-9)
            case["counts"][method] = [len(solved.t) - 1, int(solved.nfev)]
        yield case


def systems():
    for name, (f, x0) in SYSTEMS.items():
        solved = optimize.root(f, np.array(x0, dtype=float), tol=1e-14)
        yield {"name": name, "x0": numbers(x0), "x": numbers(solved.x), "evaluations": int(solved.nfev)}


def scalar():
    for name, (f, (a, b)) in SCALAR.items():
        x, result = optimize.brentq(f, a, b, full_output=True, maxiter=1000)
        yield {"name": name, "a": a, "b": b, "x": float(x), "evaluations": result.function_calls}


def fits():
    for name, (f, x0) in FITS.items():
        solved = optimize.least_squares(f, np.array(x0, dtype=float), method="lm", x_scale="jac", xtol=1e-15, ftol=1e-15, gtol=1e-15, max_nfev=10000)
        _, s, vt = np.linalg.svd(solved.jac, full_matrices=False)
        yield {"name": name, "x0": numbers(x0), "x": numbers(solved.x), "cost": float(solved.cost), "covariance": numbers(((vt.T / s**2) @ vt).ravel())}


def minima():
    for name, (f, x0) in MINIMA.items():
        solved = optimize.minimize(f, np.array(x0, dtype=float), method="BFGS", jac="3-point", options={"gtol": 1e-8})
        yield {"name": name, "x0": numbers(x0), "x": numbers(solved.x), "value": float(solved.fun), "iterations": int(solved.nit)}


def integrals():
    for name, (f, limits) in INTEGRALS.items():
        value, error, info = integrate.quad(f, *limits, epsabs=1e-12, epsrel=1e-12, full_output=True)[:3]
        yield {"name": name, "limits": [repr(float(x)) for x in limits], "value": value, "evaluations": info["neval"]}


def main():
    tables = [equations, systems, scalar, fits, minima, integrals]
    cases = {table.__name__: list(table()) for table in tables}
    OUT.write_text(json.dumps(cases, separators=(",", ":")).replace("},{", "},\n{") + "\n")
    print(f"{OUT.relative_to(ROOT)}: {sum(map(len, cases.values()))} cases")


if __name__ == "__main__":
    main()
