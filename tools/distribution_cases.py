#!/usr/bin/env python3
"""Writes the figures of PyTorch and SciPy with which the tests of crates/distributions compare.

Usage: python3 tools/distribution_cases.py > crates/distributions/tests/cases.json

Needs torch and scipy. Logarithms of densities, entropies, moments and divergences come from torch.distributions in f64. The distribution
and quantile functions of the families come from scipy.stats, because PyTorch lacks some of them. So do the entropies in SCIPY_ENTROPY and
all figures of the truncated normal distribution.
"""

import json
import math

import numpy as np
import scipy.stats as st
import torch
import torch.distributions as td

torch.set_default_dtype(torch.float64)

SHARES = [0.001, 0.1, 0.4, 0.5, 0.75, 0.99]
REAL = [-7.5, -1.0, -0.25, 0.0, 0.5, 2.0, 30.0]
POSITIVE = [1e-3, 0.25, 1.0, 2.5, 20.0]
UNIT = [1e-3, 0.2, 0.5, 0.9, 0.999]
COUNTS = [0.0, 1.0, 3.0, 7.0]

LOCATED = [[-1.0, 0.0, 2.0], [0.5, 1.0, 3.0]]
# The name, the parameters of each copy, the values, the SciPy distribution.
FAMILIES = [
    ("Normal", LOCATED, REAL, lambda m, s: st.norm(m, s)),
    ("HalfNormal", [[0.5, 1.0, 3.0]], POSITIVE, lambda s: st.halfnorm(0, s)),
    ("LogNormal", LOCATED, POSITIVE, lambda m, s: st.lognorm(s, 0, math.exp(m))),
    ("StudentT", [[0.7, 1.5, 8.0], [-1.0, 0.0, 2.0], [0.5, 1.0, 3.0]], REAL, lambda d, m, s: st.t(d, m, s)),
    ("Cauchy", LOCATED, REAL, lambda m, s: st.cauchy(m, s)),
    ("HalfCauchy", [[0.5, 1.0, 3.0]], POSITIVE, lambda s: st.halfcauchy(0, s)),
    ("Laplace", LOCATED, REAL, lambda m, s: st.laplace(m, s)),
    ("Gumbel", LOCATED, REAL, lambda m, s: st.gumbel_r(m, s)),
    ("Exponential", [[0.25, 1.0, 4.0]], POSITIVE, lambda r: st.expon(0, 1 / r)),
    ("Weibull", [[0.5, 1.0, 3.0], [0.8, 2.0, 5.0]], POSITIVE, lambda s, k: st.weibull_min(k, 0, s)),
    ("Uniform", [[-2.0, 0.0], [3.0, 40.0]], [0.25, 1.0, 2.5], lambda a, b: st.uniform(a, b - a)),
    ("Gamma", [[0.3, 2.0, 25.0], [1.5, 1.0, 4.0]], POSITIVE, lambda a, r: st.gamma(a, 0, 1 / r)),
    ("InverseGamma", [[0.6, 1.5, 6.0], [1.5, 1.0, 4.0]], POSITIVE, lambda a, r: st.invgamma(a, 0, r)),
    ("Beta", [[0.4, 1.0, 20.0], [0.7, 3.0, 5.0]], UNIT, lambda a, b: st.beta(a, b)),
    ("Poisson", [[0.3, 2.0, 40.0]], COUNTS, lambda r: st.poisson(r)),
    ("Bernoulli", [[0.1, 0.5, 0.99]], [0.0, 1.0], lambda p: st.bernoulli(p)),
    ("Geometric", [[0.1, 0.5, 0.99]], COUNTS, lambda p: st.geom(p, -1)),
    ("Binomial", [[7.0, 12.0, 30.0], [0.1, 0.5, 0.9]], COUNTS, lambda n, p: st.binom(n, p)),
    ("NegativeBinomial", [[0.5, 3.0, 12.0], [0.1, 0.5, 0.9]], COUNTS, lambda r, p: st.nbinom(r, 1 - p)),
]
# PyTorch has no entropy of these, or only for equal counts.
SCIPY_ENTROPY = {"Poisson", "Binomial"}
NO_ENTROPY = {"NegativeBinomial"}


def number(x):
    x = float(x)
    return x if math.isfinite(x) else str(x)


def numbers(x):
    return [number(x) for x in np.asarray(x, dtype=float).flatten()]


def torch_family(name, parameters):
    columns = [torch.tensor(p)[:, None] for p in parameters]
    if name == "Binomial":
        return td.Binomial(columns[0], probs=columns[1], validate_args=False)
    if name == "NegativeBinomial":
        return td.NegativeBinomial(columns[0], probs=columns[1], validate_args=False)
    return getattr(td, name)(*columns, validate_args=False)


def family(name, parameters, values, scipy):
    ours = torch_family(name, parameters)
    theirs = [scipy(*p) for p in zip(*parameters)]
    case = {
        "parameters": parameters,
        "values": values,
        "log_prob": numbers(ours.log_prob(torch.tensor(values))),
        "cdf": numbers([d.cdf(values) for d in theirs]),
        "mean": numbers(ours.mean + torch.zeros(len(parameters[0]), 1)),
        "variance": numbers(ours.variance + torch.zeros(len(parameters[0]), 1)),
    }
    case["shares"] = SHARES
    case["icdf"] = numbers([d.ppf(SHARES) for d in theirs])
    if name in SCIPY_ENTROPY:
        case["entropy"] = numbers([d.entropy() for d in theirs])
    elif name not in NO_ENTROPY:
        case["entropy"] = numbers(ours.entropy())
    return case


def divergences():
    """Returns the divergences of pairs: the names and parameters of both, and the figure."""
    pairs = [
        ("Normal", [0.3, 1.2], "Normal", [-0.5, 0.7]),
        ("HalfNormal", [1.3], "HalfNormal", [0.7]),
        ("LogNormal", [0.3, 1.2], "LogNormal", [-0.5, 0.7]),
        ("Laplace", [0.3, 1.2], "Laplace", [-0.5, 0.7]),
        ("Cauchy", [0.3, 1.2], "Cauchy", [-0.5, 0.7]),
        ("Gumbel", [0.3, 1.2], "Gumbel", [-0.5, 0.7]),
        ("Exponential", [1.3], "Exponential", [0.7]),
        ("Gamma", [2.5, 1.2], "Gamma", [0.8, 0.7]),
        ("Exponential", [1.3], "Gamma", [0.8, 0.7]),
        ("Gamma", [2.5, 1.2], "Exponential", [0.7]),
        ("Beta", [2.5, 1.2], "Beta", [0.8, 3.5]),
        ("Uniform", [0.5, 1.5], "Uniform", [0.0, 4.0]),
        ("Uniform", [0.5, 1.5], "Uniform", [0.75, 4.0]),
        ("Poisson", [2.5], "Poisson", [4.0]),
        ("Bernoulli", [0.3], "Bernoulli", [0.6]),
        ("Geometric", [0.3], "Geometric", [0.6]),
        ("Binomial", [5.0, 0.3], "Binomial", [5.0, 0.6]),
        ("Uniform", [0.5, 1.5], "Normal", [-0.5, 0.7]),
        ("Laplace", [0.3, 1.2], "Normal", [-0.5, 0.7]),
        ("Categorical", [0.2, 0.3, 0.5], "Categorical", [0.6, 0.3, 0.1]),
        ("Dirichlet", [0.5, 2.0, 4.0], "Dirichlet", [1.5, 1.0, 2.0]),
    ]

    def make(name, parameters):
        if name in ("Categorical", "Dirichlet"):
            return getattr(td, name)(torch.tensor(parameters))
        if name == "Binomial":
            return td.Binomial(int(parameters[0]), probs=torch.tensor(parameters[1]))
        return getattr(td, name)(*[torch.tensor(p) for p in parameters])

    return [[p, a, q, b, number(td.kl_divergence(make(p, a), make(q, b)))] for p, a, q, b in pairs]


def vectors():
    """Returns figures of the other distributions: over classes, shares and vectors, of mixtures, images, LKJ and a truncated normal one."""
    a = torch.tensor([[0.5, 2.0, 4.0], [1.0, 1.0, 1.0]])
    x = torch.tensor([[0.2, 0.3, 0.5], [0.7, 0.1, 0.2]])
    dirichlet = td.Dirichlet(a)
    counts = torch.tensor([[2.0, 3.0, 5.0], [0.0, 0.0, 10.0]])
    multinomial = td.Multinomial(10, x)
    z = torch.tensor([[0.3, -1.2, 2.0], [0.0, 0.0, 0.0]])
    stick = td.StickBreakingTransform()
    shares = stick(z)
    component = td.Normal(torch.tensor([-1.0, 0.5, 3.0]), torch.tensor([0.5, 1.0, 2.0]))
    mixture = td.MixtureSameFamily(td.Categorical(torch.tensor([0.2, 0.3, 0.5])), component)
    points = torch.tensor(REAL)
    transforms = [td.AffineTransform(0.5, -2.0), td.SigmoidTransform(), td.ExpTransform(), td.TanhTransform()]
    images = td.TransformedDistribution(td.Normal(0.2, 0.7), transforms)
    image = torch.tensor([0.77, 0.8, 0.9, 0.95])
    loc, x3 = torch.tensor([0.5, -1.0, 2.0]), torch.tensor([[0.0, 0.0, 0.0], [1.0, -2.0, 2.5]])
    covariances = torch.tensor([[[2.0, 0.5, 0.1], [0.5, 1.0, -0.3], [0.1, -0.3, 0.7]], [[1.0, 0.0, 0.2], [0.0, 3.0, 0.0], [0.2, 0.0, 1.5]]])
    normal, other = td.MultivariateNormal(loc, covariances), td.MultivariateNormal(loc * 0.5, covariances[0])
    inverse = td.MultivariateNormal(loc, precision_matrix=covariances)
    lkj = td.LKJCholesky(3, torch.tensor([0.6, 2.5]))
    factors = torch.linalg.cholesky(torch.tensor([[1.0, 0.3, -0.2], [0.3, 1.0, 0.5], [-0.2, 0.5, 1.0]]))
    truncated = st.truncnorm(-0.5, 2.0, 1.0, 2.0)
    return {
        "dirichlet": [a.tolist(), x.tolist(), numbers(dirichlet.log_prob(x)), numbers(dirichlet.entropy()), numbers(dirichlet.variance)],
        "multinomial": [x.tolist(), counts.tolist(), numbers(multinomial.log_prob(counts)), numbers(multinomial.variance), numbers(multinomial.entropy())],
        "stick": [z.tolist(), numbers(shares), numbers(stick.log_abs_det_jacobian(z, shares))],
        "mixture": [REAL, numbers(mixture.log_prob(points)), numbers(mixture.cdf(points)), numbers([mixture.mean, mixture.variance])],
        "transformed": [image.tolist(), numbers(images.log_prob(image)), numbers(images.cdf(image))],
        "multivariate": [
            loc.tolist(), covariances.tolist(), x3.tolist(), numbers(normal.log_prob(x3)), numbers(normal.entropy()),
            numbers(normal.variance), numbers(td.kl_divergence(normal, other)), numbers(inverse.log_prob(x3)),
            numbers(other.log_prob(x3)),
        ],
        "lkj": [factors.tolist(), numbers(lkj.log_prob(factors))],
        # A normal distribution of mean 1 and scale 2 between 0 and 5.
        "truncated": [POSITIVE[:4], numbers(truncated.logpdf(POSITIVE[:4])), numbers(truncated.cdf(POSITIVE[:4])), numbers(truncated.ppf(SHARES))],
    }


def main():
    cases = {name: family(name, *rest) for name, *rest in FAMILIES}
    text = json.dumps({"families": cases, "divergences": divergences(), "vectors": vectors(), "shares": SHARES})
    print(text.replace("}, ", "},\n"))


if __name__ == "__main__":
    main()
