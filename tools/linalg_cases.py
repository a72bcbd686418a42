#!/usr/bin/env python3
"""Writes crates/linalg/tests/laws/pytorch.json: values and derivatives of linear algebra, computed with PyTorch in f64. Writes the sentences
of errors to refusals.json beside it.

    python tools/linalg_cases.py

A case has the shape and the elements of each input and output. For a number s, the sum of the outputs times cos(1), cos(2), …, in
row-major order, `first` has the gradients of s. `second` has the gradients of the sum of all elements of `first` times sin(1), sin(2), ….
A missing gradient is null. PyTorch must be installed.
"""

import json
import pathlib

import torch

torch.set_default_dtype(torch.float64)
linalg = torch.linalg


def random(seed, *shape):
    """Returns normally distributed numbers with five decimals, which keeps the file short."""
    x = torch.randn(*shape, generator=torch.Generator().manual_seed(seed))
    return (x * 1e5).round() / 1e5


def regular(seed, *shape):
    """Returns diagonally dominant matrices."""
    return random(seed, *shape) * 0.5 + torch.eye(shape[-1]) * shape[-1]


def definite(seed, *shape):
    """Returns symmetric positive-definite matrices."""
    x = random(seed, *shape)
    return x @ x.mT + torch.eye(shape[-1])


def cases():
    """Yields the name, the function, and the inputs of each case."""
    near = torch.tensor([[1.0, 2.0], [2.0, 4.0 + 1e-7]])
    for upper in (False, True):
        for x in (definite(1, 3, 3), definite(2, 2, 4, 4), torch.zeros(0, 3, 3), torch.zeros(2, 0, 0), definite(3, 1, 1)):
            yield f"cholesky {int(upper)}", lambda x, upper=upper: linalg.cholesky(x, upper=upper), [x]
        factor = linalg.cholesky(definite(4, 2, 3, 3), upper=upper)
        # PyTorch's gradient is not zero in the triangle that is not read.
        solve = lambda b, l, upper=upper: torch.cholesky_solve(b, l.triu() if upper else l.tril(), upper=upper)
        yield f"cholesky_solve {int(upper)}", solve, [random(5, 3, 2), factor]
        for left in (False, True):
            for unit in (False, True):
                options = dict(upper=upper, left=left, unitriangular=unit)
                for b in (random(6, 3, 3), random(7, 2, 3, 3), torch.zeros(0, 3, 3)):
                    solve = lambda a, b, options=options: linalg.solve_triangular(a, b, **options)
                    yield f"solve_triangular {int(upper)}{int(left)}{int(unit)}", solve, [regular(8, 3, 3), b]
    for a, b in [
        (regular(9, 3, 3), random(10, 3)),
        (regular(9, 3, 3), random(10, 3, 2)),
        (regular(11, 2, 3, 3), random(12, 2, 3)),
        (regular(11, 2, 3, 3), random(12, 3)),
        (regular(11, 2, 3, 3), random(13, 3, 2)),
        (regular(9, 3, 3), random(14, 2, 3, 1)),
        (regular(11, 2, 1, 2, 2), random(15, 3, 2, 2)),
        (torch.zeros(0, 0), torch.zeros(0, 2)),
        (torch.zeros(0, 3, 3), torch.zeros(0, 3)),
        (near, random(16, 2)),
    ]:
        yield "solve", linalg.solve, [a, b]
    for a in (regular(17, 3, 3), regular(18, 2, 4, 4), torch.zeros(0, 3, 3), torch.zeros(0, 0), near):
        yield "inv", linalg.inv, [a]
    for a in (random(19, 3, 3), random(20, 2, 4, 4), random(21, 1, 1), torch.zeros(2, 0, 0), torch.zeros(0, 3, 3)):
        yield "det", linalg.det, [a]
        yield "slogdet", lambda a: tuple(linalg.slogdet(a)), [a]
    for power in (-3, -1, 0, 1, 2, 5):
        yield f"matrix_power {power}", lambda a, power=power: linalg.matrix_power(a, power), [regular(22, 2, 3, 3) / 3]
    for a in (random(23, 3, 3), random(24, 2, 3, 3), random(25, 2, 4), random(26, 2, 4, 2), torch.zeros(0, 3), torch.zeros(3, 0)):
        yield "lu", lambda a: tuple(linalg.lu(a)), [a]
        yield "lu_factor", lambda a: (lambda lu, pivots: (lu, pivots.double()))(*linalg.lu_factor(a)), [a]
    lu, pivots = linalg.lu_factor(random(27, 2, 3, 3))
    yield "lu_solve", lambda lu, p, b: linalg.lu_solve(lu, p.int(), b), [lu, pivots.double(), random(28, 3, 2)]


def gradients(s, inputs):
    """Returns the gradients of s, None where s does not depend on an input."""
    if not s.requires_grad:
        return [None] * len(inputs)
    return torch.autograd.grad(s, inputs, create_graph=True, allow_unused=True)


def weighted(tensors, weight):
    """Returns the sum of all elements times weight(1), weight(2), …."""
    flat = [x.reshape(-1) for x in tensors if x is not None]
    whole = torch.cat(flat) if flat else torch.zeros(0)
    return (whole * weight(torch.arange(1, whole.numel() + 1, dtype=whole.dtype))).sum()


def plain(x):
    """Returns the shape and the elements."""
    return None if x is None else [list(x.shape), x.detach().reshape(-1).tolist()]


# Calls with shapes that PyTorch refuses: the name, the function, the shapes.
REFUSED = [
    ("cholesky", linalg.cholesky, [[3]], [[3, 2]], [[2, 2, 3]]),
    ("solve", linalg.solve, [[3, 3], [2, 3]], [[2, 3, 3], [5, 3]], [[2, 3, 3], [4, 3, 1]], [[3], [3]], [[2, 3], [3]]),
    ("inv", linalg.inv, [[4]], [[2, 3]]),
    ("det", linalg.det, [[4]], [[2, 3]]),
    ("slogdet", linalg.slogdet, [[4]], [[2, 3]]),
    ("matrix_power", lambda a: linalg.matrix_power(a, 2), [[3]], [[2, 3]]),
    ("matrix_exp", linalg.matrix_exp, [[3]], [[2, 3]]),
    ("qr", linalg.qr, [[3]], [[]]),
    ("eigh", linalg.eigh, [[3]], [[2, 3]]),
    ("eigvalsh", linalg.eigvalsh, [[3]], [[2, 3]]),
    ("svd", linalg.svd, [[3]], [[]]),
    ("svdvals", linalg.svdvals, [[3]], [[]]),
    ("pinv", linalg.pinv, [[3]], [[]]),
    ("pinv_hermitian", lambda a: linalg.pinv(a, hermitian=True), [[3, 2]]),
    ("lstsq", linalg.lstsq, [[3, 2], [4, 2]], [[3, 2], [4]], [[3], [3]], [[3, 2], []]),
    ("matrix_rank", linalg.matrix_rank, [[3]]),
    ("matrix_rank_hermitian", lambda a: linalg.matrix_rank(a, hermitian=True), [[2, 3]]),
    ("solve_triangular", lambda a, b: linalg.solve_triangular(a, b, upper=True), [[3, 3], [2, 3]], [[2, 3, 3], [5, 3, 1]], [[3], [3, 1]], [[3, 2], [3, 1]]),
    ("cholesky_solve", torch.cholesky_solve, [[3], [3, 3]], [[3, 3], [3]], [[2, 2], [3, 3]], [[3, 2], [3, 2]]),
    ("lu", linalg.lu, [[3]], [[]]),
    ("lu_factor", linalg.lu_factor, [[3]], [[]]),
    ("lu_solve", lambda lu, p, b: linalg.lu_solve(lu, p.int(), b), [[3, 3], [2], [3, 1]], [[2, 3], [2], [3, 1]], [[3, 3], [3], [2, 1]]),
    ("multi_dot", lambda *x: linalg.multi_dot(x), [[2, 3]], [[2, 3], [2, 3]], [[2, 3], [3, 2, 1], [2, 2]], [[2, 3, 1], [3, 2]]),
    ("cond_1", lambda a: linalg.cond(a, 1), [[3]], [[2, 3]]),
    ("cond_7", lambda a: linalg.cond(a, 7), [[3, 3]]),
    ("matrix_norm_3", lambda a: linalg.matrix_norm(a, 3), [[3, 3]], [[3]]),
    ("vander_0", lambda x: linalg.vander(x, N=0), [[3]]),
]


def refusals():
    """Yields the lines of the refused calls."""
    for name, f, *calls in REFUSED:
        for shapes in calls:
            try:
                f(*[torch.ones(shape) for shape in shapes])
            except (RuntimeError, ValueError, IndexError) as error:
                yield json.dumps({"name": name, "shapes": shapes, "sentence": str(error).split("\n")[0]})
            else:
                raise AssertionError(f"{name} accepts {shapes}")


def main():
    rows = []
    for name, f, inputs in cases():
        inputs = [x.clone().requires_grad_() for x in inputs]
        outputs = f(*inputs)
        outputs = outputs if isinstance(outputs, tuple) else (outputs,)
        first = gradients(weighted(outputs, torch.cos), inputs)
        second = gradients(weighted(first, torch.sin), inputs)
        rows.append({"name": name, "inputs": inputs, "outputs": outputs, "first": first, "second": second})
    texts = [json.dumps({key: value if key == "name" else [plain(x) for x in value] for key, value in row.items()}) for row in rows]
    path = pathlib.Path(__file__).parent.parent / "crates/linalg/tests/laws/pytorch.json"
    path.write_text("[\n" + ",\n".join(texts) + "\n]\n")
    refused = list(refusals())
    path.with_name("refusals.json").write_text("[\n" + ",\n".join(refused) + "\n]\n")
    print(f"{len(rows)} cases and {len(refused)} errors, PyTorch {torch.__version__}")


if __name__ == "__main__":
    main()
