#!/usr/bin/env python3
"""Writes values and derivatives of special functions and distributions, computed by PyTorch in f64.

    python3 tools/derivative_cases.py

The files are crates/special/tests/pytorch.json and crates/distributions/tests/pytorch.json. A case has the shape and the elements of each
input and of the value. For the sum s of the value times cos(1), cos(2), …, in row-major order, `first` has the gradients of s. `second`
has the gradients of the sum of all elements of `first` times sin(1), sin(2), …. A missing gradient is null. Needs PyTorch.
"""

import json
import pathlib

import torch
import torch.distributions as td

torch.set_default_dtype(torch.float64)
ROOT = pathlib.Path(__file__).resolve().parent.parent
special = torch.special

REAL = torch.tensor([[-3.5, -0.75, 0.25], [1.5, 4.0, -12.0]])
POSITIVE = torch.tensor([[0.3, 1.5, 4.0], [0.05, 2.5, 12.0]])
UNIT = torch.tensor([[0.01, 0.3, 0.5], [0.9, 0.75, 1e-4]])
SHAPE = torch.tensor([[0.7], [2.5]])
EMPTY = torch.zeros(0, 3)


def betaln(a, b):
    return torch.lgamma(a) + torch.lgamma(b) - torch.lgamma(a + b)


SPECIAL = [
    ("ndtr", special.ndtr, [REAL]),
    ("log_ndtr", special.log_ndtr, [REAL]),
    ("ndtri", special.ndtri, [UNIT]),
    ("erfcx", special.erfcx, [torch.tensor([-2.5, -0.5, 0.25, 3.0, 20.0])]),
    ("i0", special.i0, [REAL]),
    ("i0e", special.i0e, [REAL]),
    ("i1", special.i1, [REAL]),
    ("i1e", special.i1e, [REAL]),
    ("gammaln", special.gammaln, [POSITIVE]),
    ("multigammaln", lambda x: special.multigammaln(x, 3), [POSITIVE + 1.5]),
    ("polygamma1", lambda x: special.polygamma(1, x), [POSITIVE]),
    ("polygamma3", lambda x: special.polygamma(3, x), [POSITIVE]),
    ("betaln", betaln, [POSITIVE, SHAPE]),
    ("betaln", betaln, [EMPTY, SHAPE[0]]),
    # PyTorch has no derivatives with respect to the shape parameter.
    ("gammainc", lambda x: special.gammainc(torch.tensor([[0.7], [2.5]]), x), [POSITIVE]),
    ("gammaincc", lambda x: special.gammaincc(torch.tensor([[0.7], [2.5]]), x), [POSITIVE]),
]

# A count is no variable: only the parameters have derivatives.
DISCRETE = {"Poisson", "Bernoulli", "Geometric", "Binomial", "NegativeBinomial", "Categorical"}
LOC, SCALE = torch.tensor([0.2, 1.0]), torch.tensor([0.7, 1.5])
ALPHA, BETA = torch.tensor([0.7, 2.5]), torch.tensor([0.8, 3.5])
PROBS = torch.tensor([0.2, 0.7])
X, OVER, SHARES = torch.tensor([[-1.0], [0.5]]), torch.tensor([[0.3], [1.5]]), torch.tensor([[0.3], [0.85]])
COUNTS = torch.tensor([[0.0], [1.0], [3.0]])
FAMILIES = [
    ("Normal", [LOC, SCALE], X, "log_prob cdf icdf entropy mean variance"),
    ("HalfNormal", [SCALE], OVER, "log_prob cdf icdf entropy mean variance"),
    ("LogNormal", [LOC, SCALE], OVER, "log_prob cdf icdf entropy mean variance"),
    ("StudentT", [torch.tensor([2.5, 5.0]), LOC, SCALE], X, "log_prob entropy mean variance"),
    ("Cauchy", [LOC, SCALE], X, "log_prob cdf icdf entropy"),
    ("HalfCauchy", [SCALE], OVER, "log_prob cdf icdf entropy"),
    ("Laplace", [LOC, SCALE], X, "log_prob cdf icdf entropy mean variance"),
    ("Gumbel", [LOC, SCALE], X, "log_prob cdf icdf entropy mean variance"),
    ("Exponential", [SCALE], OVER, "log_prob cdf icdf entropy mean variance"),
    ("Weibull", [ALPHA, BETA], OVER, "log_prob cdf icdf entropy mean variance"),
    ("Uniform", [LOC - 2.0, LOC + 2.0], X, "log_prob cdf icdf entropy mean variance"),
    ("Gamma", [ALPHA, BETA], OVER, "log_prob entropy mean variance"),
    ("InverseGamma", [ALPHA + 2.0, BETA], OVER, "log_prob entropy mean variance"),
    ("Beta", [ALPHA, BETA], SHARES, "log_prob entropy mean variance"),
    ("Dirichlet", [torch.tensor([[0.7, 2.5, 1.0], [4.0, 0.3, 2.0]])], torch.tensor([0.2, 0.3, 0.5]), "log_prob entropy mean variance"),
    ("Poisson", [SCALE], COUNTS, "log_prob mean variance"),
    ("Bernoulli", [PROBS], COUNTS[:2], "log_prob entropy mean variance"),
    ("Geometric", [PROBS], COUNTS, "log_prob entropy mean variance"),
    ("Binomial", [PROBS], COUNTS, "log_prob mean variance"),
    ("NegativeBinomial", [ALPHA, PROBS], COUNTS, "log_prob mean variance"),
    ("Categorical", [torch.tensor([[0.2, 0.3, 0.5], [0.6, 0.3, 0.1]])], torch.tensor([0.0, 2.0]), "log_prob entropy"),
    ("MultivariateNormal", [LOC, torch.tensor([[2.0, 0.5], [0.5, 1.0]])], torch.tensor([[0.3, -0.4], [1.0, 2.0]]), "log_prob entropy"),
]
DIVERGENCES = [
    ("Normal", [LOC, SCALE], [LOC + 0.3, SCALE + 0.2]),
    ("HalfNormal", [SCALE], [SCALE + 0.2]),
    ("LogNormal", [LOC, SCALE], [LOC + 0.3, SCALE + 0.2]),
    ("Laplace", [LOC, SCALE], [LOC + 0.3, SCALE + 0.2]),
    ("Cauchy", [LOC, SCALE], [LOC + 0.3, SCALE + 0.2]),
    ("Gumbel", [LOC, SCALE], [LOC + 0.3, SCALE + 0.2]),
    ("Exponential", [SCALE], [SCALE + 0.2]),
    ("Gamma", [ALPHA, BETA], [ALPHA + 0.3, BETA - 0.2]),
    ("Beta", [ALPHA, BETA], [ALPHA + 0.3, BETA - 0.2]),
    ("Dirichlet", [torch.tensor([0.7, 2.5, 1.0])], [torch.tensor([1.7, 0.5, 2.0])]),
    ("Poisson", [SCALE], [SCALE + 0.2]),
    ("Bernoulli", [PROBS], [PROBS + 0.1]),
    ("Geometric", [PROBS], [PROBS + 0.1]),
]


def made(name, parameters):
    """Returns a distribution. A covariance is the symmetric part of its parameter, as in the tests."""
    if name == "Binomial":
        return td.Binomial(5, probs=parameters[0], validate_args=False)
    if name == "NegativeBinomial":
        return td.NegativeBinomial(parameters[0], probs=parameters[1], validate_args=False)
    if name == "MultivariateNormal":
        return td.MultivariateNormal(parameters[0], (parameters[1] + parameters[1].mT) / 2, validate_args=False)
    return getattr(td, name)(*parameters, validate_args=False)


def densities():
    """Yields the name, the function and the inputs of each case of distributions. The value comes first."""
    for name, parameters, value, functions in FAMILIES:
        for function in functions.split():
            share = torch.tensor([[0.3], [0.85]]) if function == "icdf" else value
            moment = function in ("mean", "variance")
            call = lambda x, *p, name=name, function=function: getattr(made(name, p), function)
            if function in ("log_prob", "cdf", "icdf"):
                yield f"{name} {function}", lambda x, *p, call=call: call(x, *p)(x), [share, *parameters]
            else:
                yield f"{name} {function}", lambda *p, call=call, moment=moment: call(None, *p) if moment else call(None, *p)(), parameters
    for name, p, q in DIVERGENCES:
        count = len(p)
        divergence = lambda *both, name=name, count=count: td.kl_divergence(made(name, both[:count]), made(name, both[count:]))
        yield f"{name} kl", divergence, [*p, *q]


def weighted(tensors, weight):
    """Returns the sum of all elements times weight(1), weight(2), …."""
    flat = [x.reshape(-1) for x in tensors if x is not None]
    whole = torch.cat(flat) if flat else torch.zeros(0)
    return (whole * weight(torch.arange(1, whole.numel() + 1, dtype=whole.dtype))).sum()


def gradients(s, inputs):
    """Returns the gradients of s, None for constants and where s does not depend on an input."""
    if not s.requires_grad:
        return [None] * len(inputs)
    variables = [x for x in inputs if x.requires_grad]
    slopes = iter(torch.autograd.grad(s, variables, create_graph=True, allow_unused=True))
    return [next(slopes) if x.requires_grad else None for x in inputs]


def plain(x):
    """Returns the shape and the elements."""
    return None if x is None else [list(x.shape), x.detach().reshape(-1).tolist()]


def rows(cases):
    """Returns the lines of the file."""
    for name, f, inputs in cases:
        counts = name.split()[0] in DISCRETE and name.endswith("log_prob")
        inputs = [x.clone().requires_grad_(not (counts and k == 0)) for k, x in enumerate(inputs)]
        value = f(*inputs)
        first = gradients(weighted([value], torch.cos), inputs)
        second = gradients(weighted(first, torch.sin), inputs)
        row = {"inputs": inputs, "outputs": [value], "first": first, "second": second}
        yield json.dumps({"name": name, **{key: [plain(x) for x in list_] for key, list_ in row.items()}})


def main():
    for crate, cases in [("special", SPECIAL), ("distributions", densities())]:
        lines = list(rows(cases))
        path = ROOT / f"crates/{crate}/tests/pytorch.json"
        path.write_text("[\n" + ",\n".join(lines) + "\n]\n")
        print(f"{len(lines)} cases in {path.relative_to(ROOT)}, PyTorch {torch.__version__}")


if __name__ == "__main__":
    main()
