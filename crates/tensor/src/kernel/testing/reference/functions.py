"""Writes functions.csv: values of the elementwise functions, rounded from 60 digits. Needs mpmath.

A line is: name, arguments, value. The optional argument is the number of points for each function.
"""

import math
import random
import sys

import mpmath as mp

mp.mp.dps = 60
random.seed(1964)
COUNT = int(sys.argv[1]) if len(sys.argv) > 1 else 40


def sizes(low, high, signs=(-1, 1)):
    """Returns a function that draws numbers whose decimal exponents are uniform from low to high."""
    return lambda: random.choice(signs) * 10 ** random.uniform(low, high)


def even(low, high):
    return lambda: random.uniform(low, high)


def beside(*centres, low=-15, high=-1):
    """Returns a function that draws numbers near one of the centres."""
    return lambda: random.choice(centres) + random.choice((-1, 1)) * 10 ** random.uniform(low, high)


def multiples(step):
    """Returns a function that draws floating-point numbers that are nearest to multiples of step."""
    return lambda: float(random.randint(1, 10**random.randint(1, 6)) * step)


def within(low, high, draw):
    def inside():
        while True:
            x = draw()
            if low < x < high:
                return x

    return inside


def halves(low, high):
    """Returns a function that draws numbers that are at least 0.05 from the next integer."""
    return lambda: random.randint(low, high) + random.uniform(0.05, 0.95)


def erfinv(x):
    # mpmath's function does not converge near 0.
    return x * mp.sqrt(mp.pi) / 2 if abs(x) < mp.mpf("1e-100") else mp.erfinv(x)


def lgamma(x):
    return mp.re(mp.loggamma(x)) if x > 0 else mp.log(abs(mp.gamma(x)))


PLUS = (1,)
REAL = [sizes(-300, -3), sizes(-3, 1), sizes(-3, 1)]
ANGLE = REAL + [sizes(1, 20), multiples(math.pi / 2)]
UNIT = [sizes(-300, -1), even(-1, 1), within(-1, 1, beside(-1, 1))]
WIDE = REAL + [sizes(1, 300)]
POSITIVE = [sizes(-300, 300, PLUS), sizes(-2, 2, PLUS), beside(1)]

UNARY = {
    "exp": (mp.exp, REAL + [even(-744, 709)]),
    "exp2": (lambda x: mp.mpf(2) ** x, REAL + [even(-1073, 1023)]),
    "expm1": (mp.expm1, REAL + [even(-50, 709)]),
    "log": (mp.log, POSITIVE),
    "log2": (lambda x: mp.log(x, 2), POSITIVE),
    "log10": (mp.log10, POSITIVE),
    "log1p": (mp.log1p, [sizes(-300, -3), even(-1, 10), sizes(0, 300, PLUS)]),
    "sin": (mp.sin, ANGLE),
    "cos": (mp.cos, ANGLE),
    "tan": (mp.tan, ANGLE),
    "asin": (mp.asin, UNIT),
    "acos": (mp.acos, UNIT),
    "atan": (mp.atan, WIDE),
    "sinh": (mp.sinh, REAL + [even(-709, 709)]),
    "cosh": (mp.cosh, REAL + [even(-709, 709)]),
    "tanh": (mp.tanh, REAL + [even(-22, 22)]),
    "asinh": (mp.asinh, WIDE),
    "acosh": (mp.acosh, [within(1, 2, beside(1)), sizes(0.001, 3, PLUS), sizes(3, 300, PLUS)]),
    "atanh": (mp.atanh, UNIT),
    "sigmoid": (lambda x: 1 / (1 + mp.exp(-x)), REAL + [even(-744, 40)]),
    "sinc": (mp.sincpi, ANGLE + [beside(1, -2, 3, 10)]),
    "logit": (lambda x: mp.log(x / (1 - x)), [sizes(-300, -1, PLUS), even(0, 1), within(0, 1, beside(0.5, 1))]),
    "erf": (mp.erf, [sizes(-300, -3), even(-6, 6)]),
    "erfc": (mp.erfc, [sizes(-300, -1), even(-6, 26)]),
    "erfinv": (erfinv, UNIT),
    "lgamma": (lgamma, [sizes(-300, 300, PLUS), sizes(-1, 2, PLUS), beside(1, 2), halves(-30, -1)]),
    "digamma": (mp.digamma, [sizes(-300, 300, PLUS), sizes(-1, 2, PLUS), beside(1.4616321449683623), halves(-30, -1)]),
    "trigamma": (lambda x: mp.psi(1, x), [sizes(-150, 150, PLUS), sizes(-1, 2, PLUS), halves(-30, -1)]),
}

BINARY = {
    "pow": (lambda x, y: x**y, [(even(0, 10), even(-30, 30)), (beside(1, high=-3), sizes(0, 4)), (sizes(-30, 30, PLUS), even(-5, 5))]),
    "atan2": (mp.atan2, [(sizes(-300, 300), sizes(-300, 300)), (sizes(-2, 2), sizes(-2, 2))]),
    "hypot": (mp.hypot, [(sizes(-300, 300), sizes(-300, 300)), (sizes(-2, 2), sizes(-2, 2))]),
    "xlogy": (lambda x, y: x * mp.log(y), [(even(-10, 10), sizes(-30, 30, PLUS)), (sizes(-3, 3), beside(1))]),
    "xlog1py": (lambda x, y: x * mp.log1p(y), [(even(-10, 10), sizes(-30, 30, PLUS)), (sizes(-3, 3), beside(0))]),
    "zeta": (mp.zeta, [(even(1.1, 20), sizes(-1, 2, PLUS)), (lambda: 1 + 10 ** random.uniform(-6, 0), even(0.5, 20))]),
}


# This table comes after the others, because their points depend on the state of the random generator.
NORMAL = {
    "ndtr": (mp.ncdf, [sizes(-300, -1), even(-37, 8), even(-4, 4)]),
}

# Powers with whole exponents. Their lines come after the other lines of the function. Drawing them does not change the state of the random
# generator for later functions.
WHOLE = {
    "pow": (BINARY["pow"][0], [(sizes(-60, 60), lambda: random.choice((2.0, 3.0))), (sizes(-3, 3), lambda: float(random.randint(-9, 9)))]),
}


def rows(name, function, draws):
    done = 0
    while done < COUNT:
        arguments = draws[done % len(draws)]
        arguments = [draw() for draw in arguments] if isinstance(arguments, tuple) else [arguments()]
        value = float(function(*map(mp.mpf, arguments)))
        # Leaves out zeros and infinities, because no digits can be compared.
        if value == 0 or math.isinf(value):
            continue
        done += 1
        yield ",".join([name, *map(repr, arguments), repr(value)])


with open("functions.csv", "w") as table:
    for name, (function, draws) in [*UNARY.items(), *BINARY.items(), *NORMAL.items()]:
        for row in rows(name, function, draws):
            table.write(row + "\n")
        if name in WHOLE:
            state = random.getstate()
            for row in rows(name, *WHOLE[name]):
                table.write(row + "\n")
            random.setstate(state)
