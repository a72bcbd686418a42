#!/usr/bin/env python3
"""Writes the cases of decompositions that the tests of `wengert-linalg` compare, made with PyTorch.

    tools/decomposition_cases.py crates/linalg/tests/laws/decompositions.json

Each case has an input x, the value y = f(x), and two gradients with respect to x: g of the sum of y[k] cos(k), and h of the sum of
g[k] sin(k + 1). The functions do not depend on the signs of eigenvectors and singular vectors. A derivative that PyTorch does not have is
null. So is a value or derivative that is not finite. Error cases have PyTorch's sentence. Needs PyTorch.
"""

import json
import math
import sys

import torch

LA = torch.linalg
torch.set_default_dtype(torch.float64)


def sym(x):
    return x + x.mT


def low(x):
    """Returns a matrix of rank 2 or less, a function of x."""
    return x[..., :, :2] @ x[..., :2, :]


def eigh_function(x):
    values, vectors = LA.eigh(sym(x))
    return (vectors * values.sin()[..., None, :]) @ vectors.mT


def eig_vectors(x):
    values, vectors = LA.eig(x)
    return ((vectors * (1 + values.real**2 + values.imag.cos())[..., None, :]) @ vectors.mH).real


def eigvals_sums(x):
    values = LA.eigvals(x)
    parts = [values.real**3, values.real.exp() * values.imag.cos(), (1 + values.real**2 + values.imag**2).sqrt()]
    return torch.stack([part.sum(-1) for part in parts], -1)


FUNCTIONS = {
    "qr_q": lambda x: LA.qr(x)[0],
    "qr_r": lambda x: LA.qr(x)[1],
    "qr_complete": lambda x: LA.qr(x, mode="complete")[0],
    "eigh_values": lambda x: LA.eigh(sym(x))[0],
    "eigh_upper": lambda x: LA.eigh(sym(x), UPLO="U")[0],
    "eigh_squares": lambda x: LA.eigh(sym(x))[1].square(),
    "eigh_function": eigh_function,
    "eigvalsh": lambda x: LA.eigvalsh(sym(x)),
    "svd_values": lambda x: LA.svd(x, full_matrices=False)[1],
    "svd_left": lambda x: LA.svd(x, full_matrices=False)[0].square(),
    "svd_right": lambda x: LA.svd(x, full_matrices=False)[2].square(),
    "svd_polar": lambda x: (lambda u, _, vh: u @ vh)(*LA.svd(x, full_matrices=False)),
    "svd_full": lambda x: LA.svd(x)[0][..., : min(x.shape[-2:])].square(),
    "svdvals": LA.svdvals,
    "pinv": LA.pinv,
    "pinv_hermitian": lambda x: LA.pinv(sym(x), hermitian=True),
    "pinv_low": lambda x: LA.pinv(low(x), rtol=1e-10),
    "lstsq": lambda x: LA.lstsq(x[..., :-1], x[..., -1:], driver="gelsd").solution,
    "lstsq_low": lambda x: LA.lstsq(low(x), x[..., -1:], rcond=1e-10, driver="gelsd").solution,
    "matrix_exp": LA.matrix_exp,
    "norm_fro": lambda x: LA.matrix_norm(x, "fro"),
    "norm_nuc": lambda x: LA.matrix_norm(x, "nuc"),
    "norm_inf": lambda x: LA.matrix_norm(x, math.inf),
    "norm_-inf": lambda x: LA.matrix_norm(x, -math.inf),
    "norm_1": lambda x: LA.matrix_norm(x, 1),
    "norm_-1": lambda x: LA.matrix_norm(x, -1),
    "norm_2": lambda x: LA.matrix_norm(x, 2),
    "norm_-2": lambda x: LA.matrix_norm(x, -2),
    "cond_2": lambda x: LA.cond(x, 2),
    "cond_-2": lambda x: LA.cond(x, -2),
    "cond_1": lambda x: LA.cond(x, 1),
    "cond_fro": lambda x: LA.cond(x, "fro"),
    "vander": lambda x: LA.vander(x, N=4),
    "rank": lambda x: LA.matrix_rank(x).double(),
    "rank_low": lambda x: LA.matrix_rank(low(x)).double(),
    "eig_vectors": eig_vectors,
    "eigvals_sums": eigvals_sums,
}
SQUARE = [[3, 3], [2, 3, 3], [1, 1], [2, 2], [0, 0], [0, 3, 3]]
ANY = SQUARE + [[4, 3], [3, 4], [2, 5, 2], [2, 0, 3], [3, 0]]
SPECIAL = {"identity": torch.eye(3), "ones": torch.ones(3, 3), "zero": torch.zeros(3, 3), "diagonal": torch.diag(torch.tensor([2.0, -2, 1]))}


def shapes(name):
    if name.startswith(("eig", "matrix_exp", "pinv_h", "cond_1", "cond_fro")):
        return SQUARE
    if name == "qr_complete":
        return SQUARE + [[3, 4]]
    if name.endswith("_low"):
        return [[3, 3], [4, 3], [3, 4], [2, 5, 3]]
    if name == "lstsq":
        return [[3, 4], [5, 3], [2, 5, 3], [2, 4], [0, 4, 3]]
    if name.startswith("norm_-"):
        return [shape for shape in ANY if 0 not in shape[-2:]]
    return ANY


def weights(x, f, start):
    return torch.tensor([f(k + start) for k in range(x.numel())]).reshape(x.shape)


def numbers(x):
    # The sum makes PyTorch's tensors of zeros without storage ordinary.
    values = (x.detach() + torch.zeros(x.shape)).flatten().tolist()
    return values if all(map(math.isfinite, values)) else None


def derivatives(f, x):
    x = x.clone().requires_grad_()
    y = f(x)
    try:
        (g,) = torch.autograd.grad((y * weights(y, math.cos, 0)).sum(), x, create_graph=True)
    except RuntimeError:
        return y, None, None
    try:
        (h,) = torch.autograd.grad((g * weights(g, math.sin, 1)).sum(), x)
    except RuntimeError:
        return y, numbers(g), None
    return y, numbers(g), numbers(h)


def case(name, kind, x):
    y, g, h = derivatives(FUNCTIONS[name], x)
    return {"f": name, "kind": kind, "shape": list(x.shape), "x": numbers(x), "y_shape": list(y.shape), "y": numbers(y), "g": g, "h": h}


ERRORS = {
    "qr_q": [[3], []],
    "eigh": [[3], [], [3, 2], [0, 3], [2, 3, 0]],
    "svdvals": [[3], []],
    "matrix_exp": [[3], [], [3, 2], [0, 3]],
    "norm_fro": [[3], []],
    "norm_-2": [[0, 3]],
    "cond_1": [[3], [3, 2]],
    "cond_fro": [[0, 3], [2, 4, 3]],
    "rank": [[3], []],
    "eig": [[3], [3, 2]],
    "eigvals": [[3], [], [3, 2], [0, 3]],
}
LSTSQ_ERRORS = [([3, 2], [4, 2]), ([3, 2], [4]), ([3], [3]), ([3, 2], []), ([2, 3, 2], [3])]


def sentence(f):
    try:
        f()
    except (RuntimeError, ValueError, IndexError) as error:
        return str(error)
    raise AssertionError("no error")


def main():
    torch.manual_seed(0)
    cases = []
    for name in FUNCTIONS:
        for shape in shapes(name):
            # Few digits keep the file small.
            cases.append(case(name, "random", (torch.randn(shape) * 64).round() / 64))
        if [3, 3] in shapes(name) and not name.endswith("_low"):
            cases += [case(name, kind, x) for kind, x in SPECIAL.items()]
    others = {"eigh": LA.eigh, "eig": LA.eig, "eigvals": LA.eigvals}
    errors = [
        {"f": name, "shape": shape, "sentence": sentence(lambda: {**FUNCTIONS, **others}[name](torch.ones(shape)))}
        for name, of in ERRORS.items()
        for shape in of
    ]
    errors += [
        {"f": "lstsq", "shape": a, "other": b, "sentence": sentence(lambda: LA.lstsq(torch.ones(a), torch.ones(b)))}
        for a, b in LSTSQ_ERRORS
    ]
    strange = torch.eye(2).repeat(3, 1, 1)
    strange[1, 0, 0] = math.nan
    errors += [
        {"f": "svdvals", "shape": [3, 2, 2], "nan": 4, "sentence": sentence(lambda: LA.svdvals(strange))},
        {"f": "svdvals", "shape": [2, 2], "nan": 0, "sentence": sentence(lambda: LA.svdvals(strange[1]))},
        {"f": "eig", "shape": [3, 2, 2], "nan": 4, "sentence": sentence(lambda: LA.eig(strange))},
    ]
    with open(sys.argv[1], "w", encoding="utf-8") as file:
        file.write('{"torch": "%s", "cases": [\n' % torch.__version__)
        file.write(",\n".join(json.dumps(case, separators=(",", ":")) for case in cases))
        file.write('\n], "errors": [\n')
        file.write(",\n".join(json.dumps(case, separators=(",", ":")) for case in errors))
        file.write("\n]}\n")


if __name__ == "__main__":
    main()
