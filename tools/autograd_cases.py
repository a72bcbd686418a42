#!/usr/bin/env python3
"""Writes the figures with which the tests of examples/ports compare.

    tools/autograd_cases.py > examples/ports/tests/cases.json
    tools/autograd_cases.py --check FOLDER      # FOLDER: the examples of HIPS/autograd

Needs autograd and SciPy. The models and data are the ones of five examples of HIPS/autograd, with our own formulas. `--check` runs the
original programs without pictures and compares value and gradient of the objective at two points. For mixture_variational_inference it
compares the parameters after 100 steps instead. It fails if a relative difference is above 1e-12.
"""

import argparse
import json
import math
import runpy
import sys
from unittest.mock import MagicMock

import autograd.numpy as np
from autograd import elementwise_grad, value_and_grad
from autograd.scipy.special import gammaln, logsumexp
from scipy.optimize import minimize

LOG_TAU = math.log(2 * math.pi)


def randn(seed, *shape):
    """Returns standard normal numbers of a new generator."""
    return np.random.RandomState(seed).randn(*shape)


def normal(x, mean, deviation):
    """Returns the logarithm of the density of a normal distribution."""
    return -(((x - mean) / deviation) ** 2) / 2 - np.log(deviation) - LOG_TAU / 2


def joint_normal(gaps, covariance):
    """Returns the logarithms [n] of the density of a normal distribution at distances [n, d] from its mean."""
    distances = np.sum(gaps * np.linalg.solve(covariance, gaps.T).T, axis=1)
    return -(distances + np.linalg.slogdet(covariance)[1] + len(covariance) * LOG_TAU) / 2


def pinwheel(per_arm):
    """Returns points in three curved arms."""
    noise = randn(0, 3 * per_arm, 2) * [0.3, 0.05]
    radius, side = noise[:, 0] + 1, noise[:, 1]
    angle = np.repeat(np.arange(3), per_arm) * (2 * math.pi / 3) + 0.4 * np.exp(radius)
    x = radius * np.cos(angle) + side * np.sin(angle)
    y = side * np.cos(angle) - radius * np.sin(angle)
    return np.stack([x, y], axis=1)


def process_loss(theta, x, y):
    """Returns minus the log likelihood of a Gaussian process; theta has the mean, then logarithms."""
    scaled = x / np.exp(theta[3:])
    squares = np.sum((scaled[:, None] - scaled[None]) ** 2, axis=-1)
    covariance = np.exp(theta[2] - squares / 2) + (np.exp(theta[1]) + 1e-4) * np.eye(len(y))
    return -joint_normal((y - theta[0])[None], covariance)[0]


def gaussian_process():
    """Returns the objective and the start."""
    x = np.concatenate([np.linspace(0, 3, 10), np.linspace(6, 8, 10)])
    y = (np.cos(x) + 0.1 * randn(0, 20)) / 2
    return lambda theta: process_loss(theta, ((x - 4) / 2)[:, None], y), 0.1 * randn(0, 4)


def gmm():
    """Returns the objective and the start."""
    points, noise = pinwheel(100), 0.1 * randn(0, 30)

    def loss(theta):
        logits, roots, means = theta[:10], theta[10:50].reshape(10, 2, 2), theta[50:].reshape(10, 2)
        parts = [logit + joint_normal(points - mean, root.T @ root) for logit, root, mean in zip(logits, roots, means)]
        return len(points) * logsumexp(logits) - np.sum(logsumexp(np.stack(parts), axis=0))

    return loss, np.concatenate([noise[:10], np.tile(np.eye(2).ravel(), 10), noise[10:]])


def ica():
    """Returns the objective and the start."""
    noise = randn(0, 20400)
    hidden = noise[:400].reshape(2, 200)
    hidden = hidden[:, np.argsort(hidden[0])]
    weights = np.stack([np.sin(np.linspace(0, top, 100)) for top in (4, 7.2)], axis=1)
    observed = (weights @ hidden).T + noise[400:].reshape(200, 100)
    constant = gammaln(1.7) - gammaln(1.2) - math.log(2.4 * math.pi) / 2

    def loss(theta):
        gaps = (theta[:200].reshape(100, 2) @ theta[200:600].reshape(2, 200)).T - observed
        density = constant - theta[600] - 1.7 * np.log1p(gaps**2 / (2.4 * np.exp(2 * theta[600])))
        return -np.sum(density) / 200

    return loss, randn(0, 601)


def gplvm():
    """Returns the objective and the start."""
    data = pinwheel(30)

    def loss(theta):
        places = theta[10:].reshape(90, 2)
        processes = process_loss(theta[:5], places, data[:, 0]) + process_loss(theta[5:10], places, data[:, 1])
        return processes - np.sum(normal(places, 0, 1))

    return loss, 0.1 * randn(1, 190)


def mixture_variational_inference():
    """Returns the objective for noise [10, 40, 2] and the start."""

    def target(x):
        mean, log_deviation = x[..., 0], x[..., 1]
        parts = [(-0.5, 0.0), (0.5, 0.1)]
        return np.logaddexp(*(normal(log_deviation, b, 1.35) + normal(mean, a, np.exp(log_deviation)) for a, b in parts))

    def loss(theta, noise):
        log_weights = theta[:10] - logsumexp(theta[:10])
        means, deviations = theta[10:].reshape(10, 4)[:, :2], np.exp(theta[10:].reshape(10, 4)[:, 2:])
        x = means[:, None] + deviations[:, None] * noise
        parts = np.sum(normal(x[:, :, None], means, deviations), axis=-1) + log_weights
        return -np.sum(np.exp(log_weights) * np.mean(target(x) - logsumexp(parts, axis=-1), axis=1))

    start = np.concatenate([np.ones(10), (0.1 * randn(0, 10, 4) + [-1, -1, -5, -5]).ravel()])
    return loss, start


# The objective, and the length of the steps of gradient descent.
MODELS = {"gaussian_process": (gaussian_process, 0.01), "gmm": (gmm, 1e-4), "ica": (ica, 0.01), "gplvm": (gplvm, 1e-3)}


def near(start):
    """Returns a second point at which objectives are compared."""
    return start + 0.1 * np.sin(np.arange(len(start)))


def evaluations(objective, start):
    """Returns value and gradient at two points."""
    results = [value_and_grad(objective)(point) for point in (start, near(start))]
    return [{"value": float(value), "gradient": gradient.tolist()} for value, gradient in results]


def cases():
    """Returns all figures."""
    figures = {"randn": randn(0, 5).tolist(), "late_randn": randn(0, 20400)[-5:].tolist()}
    for name, (model, rate) in MODELS.items():
        objective, start = model()
        derivative = value_and_grad(objective)
        theta = start
        for _ in range(20):
            theta = theta - rate * derivative(theta)[1]
        figures[name] = {"at": evaluations(objective, start), "rate": rate, "after_20_steps": theta.tolist()}
        if name in ("gaussian_process", "ica"):
            figures[name]["lowest"] = float(minimize(derivative, start, jac=True, method="CG").fun)
    objective, start = gmm()
    direction = np.cos(np.arange(len(start)))
    product = lambda theta, p: elementwise_grad(lambda theta: np.sum(value_and_grad(objective)(theta)[1] * p))(theta)
    lowest = minimize(value_and_grad(objective), start, jac=True, hessp=product, method="Newton-CG")
    figures["gmm"] |= {"lowest": float(lowest.fun), "lowest_at": lowest.x.tolist()}
    figures["gmm"]["hessian_times_cosines"] = product(near(start), direction).tolist()

    objective, start = mixture_variational_inference()
    noise = np.random.RandomState(0)
    draw = lambda: noise.randn(10, 40, 2)
    first = draw()
    figure = {"at": evaluations(lambda theta: objective(theta, first), start)}
    noise = np.random.RandomState(0)
    theta, m, v = start, 0.0, 0.0
    for step in range(1, 101):
        gradient = value_and_grad(lambda theta, numbers: objective(theta, numbers))(theta, draw())[1]
        m, v = 0.9 * m + 0.1 * gradient, 0.999 * v + 0.001 * gradient**2
        theta = theta - 0.1 * (m / (1 - 0.9**step)) / (np.sqrt(v / (1 - 0.999**step)) + 1e-8)
        if step == 20:
            figure["after_20_steps"] = theta.tolist()
    figures["mixture_variational_inference"] = {**figure, "after_100_steps": theta.tolist()}
    return figures


def check(folder):
    """Compares the formulas with the original programs."""
    figures = cases()
    for module in ("matplotlib", "matplotlib.pyplot", "matplotlib.image", "matplotlib.cm"):
        sys.modules[module] = MagicMock()
    sys.path.insert(0, folder)
    caught = {}

    import autograd.misc.optimizers
    import scipy.optimize

    def catch(function, start, jac=True, **_):
        caught["call"] = function if jac is True else lambda theta: (function(theta), jac(theta))
        caught["start"] = start

    adam = autograd.misc.optimizers.adam
    scipy.optimize.minimize = catch
    for name in figures:
        if name in MODELS:
            runpy.run_path(f"{folder}/{name}.py", run_name="__main__")
            points = [caught["start"], near(caught["start"])]
            pairs = list(zip(figures[name]["at"], map(caught["call"], points)))
            worst = max(difference(a["value"], value) for a, (value, _) in pairs)
            worst_slope = max(difference(a["gradient"], gradient) for a, (_, gradient) in pairs)
        elif name == "mixture_variational_inference":
            run = lambda slope, start, step_size, **_: caught.update(last=adam(slope, start, None, 100, step_size))
            autograd.misc.optimizers.adam = run
            runpy.run_path(f"{folder}/{name}.py", run_name="__main__")
            worst, worst_slope = 0.0, difference(figures[name]["after_100_steps"], caught["last"])
        else:
            continue
        print(f"{name:32} value {worst:.1e}   gradient, or parameters after 100 steps {worst_slope:.1e}")
        if max(worst, worst_slope) > 1e-12:
            sys.exit(f"{name} differs")


def difference(a, b):
    """Returns the largest difference, relative to the largest element."""
    a, b = np.array(a), np.array(b)
    return float(np.max(np.abs(a - b)) / np.max(np.abs(b)))


def main():
    """Reads the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", metavar="FOLDER", help="compare with the original programs in this folder")
    folder = parser.parse_args().check
    if folder:
        check(folder)
    else:
        print(json.dumps(cases()))


if __name__ == "__main__":
    main()
