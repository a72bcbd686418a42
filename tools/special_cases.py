#!/usr/bin/env python3
"""Writes the table of values of special functions with which the tests of crates/special compare.

Usage: python3 tools/special_cases.py > crates/special/tests/cases.json

Needs mpmath. Every input is a number of f32, so that the same table serves both element types. The values are computed with 60 digits and
rounded to f64. A derivative is a central difference of mpmath with 60 digits.
"""

import itertools
import json
import struct
import sys

import mpmath
from mpmath import mp, mpf

mp.dps = 60


def single(x):
    """Returns the nearest number of f32."""
    return struct.unpack("f", struct.pack("f", x))[0]


def ndtr(x):
    return mpmath.erfc(-x / mpmath.sqrt(2)) / 2


def ndtri(p):
    # Newton's method on the logarithm, from a root in double precision.
    from statistics import NormalDist
    tail = min(p, 1 - p)
    y = mpf(NormalDist().inv_cdf(float(tail)))
    for _ in range(12):
        density = mpmath.exp(-y * y / 2) / mpmath.sqrt(2 * mpmath.pi)
        y -= (mpmath.log(ndtr(y)) - mpmath.log(tail)) * ndtr(y) / density
    return y if p <= 0.5 else -y


def gammainc(a, x):
    return mpmath.gammainc(a, 0, x, regularized=True)


def gammaincc(a, x):
    return mpmath.gammainc(a, x, mpmath.inf, regularized=True)


def betainc(a, b, x):
    return mpmath.betainc(a, b, 0, x, regularized=True)


def betaln(a, b):
    return mpmath.loggamma(a) + mpmath.loggamma(b) - mpmath.loggamma(a + b)


def log_ndtr(x):
    return mpmath.log(ndtr(x))


def erfcx(x):
    return mpmath.exp(x * x) * mpmath.erfc(x)


REAL = [-300.0, -37.5, -12.25, -5.5, -1.0, -0.75, -1e-3, 0.0, 1e-10, 0.3, 1.0, 2.5, 6.0, 9.5, 10.5, 25.0]
SHAPES = [1e-3, 0.1, 0.5, 1.0, 2.5, 10.0, 11.5, 12.5, 47.0, 300.0, 20000.0]
SHARES = [1e-30, 1e-8, 0.01, 0.1, 0.25, 0.5, 0.625, 0.9, 0.99, 0.999]


def near(a):
    """Returns arguments of the incomplete gamma function, from far below the mean to far above."""
    deviation = a**0.5
    points = [a * 0.01, a * 0.5, a - deviation, a, a + 0.9, a + 1.1, a + deviation, a + 5 * deviation, a * 3 + 10]
    return [x for x in points if x > 0]


def tables():
    """Yields the name of each function, the function, and its arguments."""
    gammas = [(a, x) for a in SHAPES for x in near(a)]
    some = [0.1, 0.5, 1.0, 2.5, 10.0, 47.0]
    slopes = [(a, x) for a in [0.05, 0.5, 1.0, 2.5, 10.0, 47.0, 300.0] for x in near(a)]
    betas = list(itertools.product(some + [300.0], some + [300.0], [1e-6, 0.05, 0.3, 0.5, 0.75, 0.98]))
    yield "log_ndtr", log_ndtr, REAL
    yield "ndtr", ndtr, REAL
    yield "ndtri", ndtri, SHARES + [0.49, 0.499, 0.501, 0.40, 0.05, 1e-20]
    yield "erfcx", erfcx, [x for x in REAL if x > -20] + [1e4, 1e10]
    yield "log1mexp", lambda x: mpmath.log(-mpmath.expm1(x)), [-1e-20, -1e-5, -0.1, -0.6875, -0.7, -2.0, -30.0]
    bessel = [-50.0, -29.0, -3.0, -1e-4, 0.0, 1e-8, 0.7, 5.0, 20.0, 30.5, 31.0, 45.0, 80.0]
    for order in (0, 1):
        yield f"i{order}", lambda x, order=order: mpmath.besseli(order, x), bessel
        yield f"i{order}e", lambda x, order=order: mpmath.besseli(order, x) * mpmath.exp(-abs(x)), bessel + [1e4, -1e6]
    first = [-100.25, -3.25, 0.0, 1e-8, 0.5, 1.0, 2.375, 3.75, 5.5, 8.65, 10.0, 14.9, 25.0, 100.25, 1000.5, 1e6]
    for order in (0, 1):
        yield f"bessel_j{order}", lambda x, order=order: mpmath.besselj(order, x), first
        yield f"bessel_y{order}", lambda x, order=order: mpmath.bessely(order, x), [1e-30] + [x for x in first if x > 0]
    inside = [-1.0, -0.75, -0.3, 0.0, 0.1, 0.5, 0.999, 1.0]
    # A value below 2⁻²⁰⁰ counts as 0.
    zero = {"zeroprec": 200}
    u = lambda n, x: mpmath.chebyu(n, x, **zero)
    polynomials = {
        "chebyshev_polynomial_t": lambda n, x: mpmath.chebyt(n, x, **zero),
        "chebyshev_polynomial_u": u,
        "chebyshev_polynomial_v": lambda n, x: u(n, x) - u(n - 1, x),
        "chebyshev_polynomial_w": lambda n, x: u(n, x) + u(n - 1, x),
        "hermite_polynomial_h": mpmath.hermite,
        "hermite_polynomial_he": lambda n, x: mpmath.hermite(n, x / mpmath.sqrt(2)) / mpmath.sqrt(2) ** n,
        "laguerre_polynomial_l": lambda n, x: mpmath.laguerre(n, 0, x, **zero),
        "legendre_polynomial_p": lambda n, x: mpmath.legendre(n, x, **zero),
    }
    for name, function in polynomials.items():
        for n in (1, 2, 7, 30):
            yield f"{name}{n}", lambda x, n=n, function=function: function(n, x), inside + [-2.5, 1.5, 4.0]
    yield "gammaln", mpmath.loggamma, SHAPES
    yield "multigammaln3", lambda x: sum(mpmath.loggamma(x - mpf(i) / 2) for i in range(3)) + 1.5 * mpmath.log(mpmath.pi), [1.5, 4.0, 30.0]
    for order in (0, 1, 2, 4):
        yield f"polygamma{order}", lambda x, order=order: mpmath.polygamma(order, x), [0.05, 0.7, 1.0, 3.5, 20.0, 1000.0]
    yield "betaln", betaln, list(itertools.product(SHAPES, SHAPES))
    yield "gammainc", gammainc, gammas
    yield "gammaincc", gammaincc, [(a, x) for a, x in gammas if a >= 0.1]
    yield "gammainc_a", lambda a, x: mpmath.diff(lambda a: gammainc(a, x), a), slopes
    yield "gammainc_aa", lambda a, x: mpmath.diff(lambda a: gammainc(a, x), a, 2), slopes
    yield "betainc", betainc, betas
    yield "betainc_a", lambda a, b, x: mpmath.diff(lambda a: betainc(a, b, x), a), betas
    yield "betainc_ab", lambda a, b, x: mpmath.diff(lambda a, b: betainc(a, b, x), (a, b), (1, 1)), betas[:: 7]


def main():
    cases = {}
    for name, function, arguments in tables():
        rows = []
        for inputs in arguments:
            inputs = [single(x) for x in (inputs if isinstance(inputs, tuple) else (inputs,))]
            value = float(mpmath.re(function(*map(mpf, inputs))))
            rows.append([float(f"{x:.17g}") for x in inputs] + [value])
        print(f"{name}: {len(rows)}", file=sys.stderr)
        cases[name] = rows
    print(json.dumps(cases).replace("], [", "],\n["))


if __name__ == "__main__":
    main()
