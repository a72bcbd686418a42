#!/usr/bin/env python3
"""Writes tests/fixtures/arrays.json: quantiles, searches, reductions by index and other operations on arrays, computed by PyTorch in f64.

Needs PyTorch. `gradient` has the gradients of the sum of the result times `weights`, with respect to each input. For `second`, the
gradients of the sum of the squared result times `weights` are multiplied by cos(1), cos(2), … and summed. `second` has the gradients of
this sum. It is null if PyTorch has no second derivative. Operations without a derivative may have several results, and have no gradient.
An error has PyTorch's sentence instead.

    python3 tools/array_cases.py
"""

import json
import math
import pathlib

import torch

ROOT = pathlib.Path(__file__).resolve().parent.parent
OUT = ROOT / "tests/fixtures/arrays.json"
CASES = []


def rounded(x):
    """Returns a tensor whose numbers have few digits, so that the file keeps them exactly."""
    return torch.tensor([round(value, 4) for value in x.flatten().tolist()], dtype=torch.float64).reshape(x.shape)


def sample(*shape):
    return rounded(torch.rand(shape, dtype=torch.float64) * 3 - 1.5)


def array(x):
    shown = lambda value: value if isinstance(value, int) else ("nan" if value != value else float(f"{value:.12g}"))
    return {"shape": list(x.shape), "data": [shown(value) for value in x.flatten().tolist()]}


def case(name, f, inputs, index=None, differentiable=True, **arguments):
    entry = {"name": name, "arguments": arguments, "inputs": [array(x) for x in inputs]}
    if index is not None:
        entry["index"] = array(index)
    variables = [x.clone().requires_grad_(differentiable) for x in inputs]
    CASES.append(entry)
    try:
        results = f(*variables)
    except (RuntimeError, IndexError, ValueError) as error:
        entry["error"] = str(error).split("\n")[0]
        return
    results = list(results) if isinstance(results, tuple) else [results]
    entry["outputs"] = [array(y.detach()) for y in results]
    if differentiable:
        weights = rounded(torch.arange(results[0].numel(), dtype=torch.float64).mul(0.7).sin() + 0.1)
        entry["weights"] = array(weights.reshape(results[0].shape))
        sums = (results[0].flatten() * weights).sum()
        gradients = torch.autograd.grad(sums, variables, retain_graph=True)
        entry["gradient"] = [array(x) for x in gradients]
        entry["second"] = second_derivatives((results[0].flatten().square() * weights).sum(), variables)


def second_derivatives(sums, variables):
    """Returns the gradients of the weighted sum of the gradients."""
    try:
        slopes = torch.autograd.grad(sums, variables, create_graph=True)
        flat = torch.cat([x.flatten() for x in slopes])
        weighted = (flat * torch.arange(1, flat.numel() + 1, dtype=flat.dtype).cos()).sum()
        if not weighted.requires_grad:
            return None
        seconds = torch.autograd.grad(weighted, variables, allow_unused=True)
    except (RuntimeError, NotImplementedError):
        return None
    return [array(torch.zeros_like(x) if h is None else h) for x, h in zip(variables, seconds)]


def quantiles():
    nan = float("nan")
    for name, f in [("quantile", torch.quantile), ("nanquantile", torch.nanquantile)]:
        for mode in ["linear", "lower", "higher", "midpoint", "nearest"]:
            for q, dim, keepdim in [(0.3, None, False), ([0.0, 0.25, 0.8, 1.0], 1, True), ([0.5], 0, False)]:
                call = lambda x, q=q: f(x, torch.tensor(q, dtype=x.dtype), dim, keepdim, interpolation=mode)
                case(name, call, [sample(3, 5)], q=q, dim=dim, keepdim=keepdim, mode=mode)
        x = torch.tensor([[nan, 1.0, 2.0], [3.0, nan, nan], [0.5, 0.25, 4.0]], dtype=torch.float64)
        call = lambda x: f(x, torch.tensor([0.1, 0.9], dtype=x.dtype), 1)
        case(name, call, [x], differentiable=False, q=[0.1, 0.9], dim=1, keepdim=False, mode="linear")
        for q, shape in [(1.5, [3]), ([0.5, -0.1], [3]), (0.5, [0, 2])]:
            call = lambda x, q=q: f(x, q if isinstance(q, float) else torch.tensor(q, dtype=x.dtype))
            case(name, call, [sample(*shape)], q=q, dim=None, keepdim=False, mode="linear")


def searches():
    line = sample(12).sort()[0]
    rows = sample(2, 3, 4).sort(-1)[0]
    for right in [False, True]:
        values = torch.cat([sample(5), line[3:6]])
        case("searchsorted", lambda s, v: torch.searchsorted(s, v, right=right), [line, values], None, False, right=right)
        case("searchsorted", lambda s, v: torch.searchsorted(s, v, right=right), [rows, sample(2, 3, 2)], None, False, right=right)
        case("bucketize", lambda v, s: torch.bucketize(v, s, right=right), [values.reshape(2, 4), line], None, False, right=right)
    case("searchsorted", torch.searchsorted, [rows, sample(3, 3, 2)], None, False, right=False)
    case("bucketize", torch.bucketize, [line, rows], None, False, right=False)
    repeated = torch.randint(-3, 4, (4, 5)).double()
    case("unique", lambda x: torch.unique(x, return_inverse=True, return_counts=True), [repeated], None, False)
    for low, high in [(0, 0), (-1, 1), (0.5, 0.5), (1, 0)]:
        case("histc", lambda x: torch.histc(x, 5, low, high), [sample(20)], None, False, bins=5, min=low, max=high)
    for data, least in [([3, 1, 1, 0, 7], 0), ([2, 2], 6), ([-1, 2], 0)]:
        index = torch.tensor(data)
        case("bincount", lambda: torch.bincount(index, minlength=least), [], index, False, minlength=least)


def covariances():
    for shape in [[3, 6], [5], [1, 4], []]:
        for correction in [0, 1, 2]:
            case("cov", lambda x: torch.cov(x, correction=correction), [sample(*shape)], correction=correction)
    f, a = torch.tensor([1, 3, 0, 2, 1, 1]), rounded(torch.rand(6, dtype=torch.float64) + 0.1)
    for use_f, use_a in [(True, False), (False, True), (True, True)]:
        call = lambda x: torch.cov(x, fweights=f if use_f else None, aweights=a if use_a else None)
        arguments = {"correction": 1, "fweights": f.tolist() if use_f else None, "aweights": a.tolist() if use_a else None}
        case("cov", call, [sample(3, 6)], **arguments)
    case("cov", torch.cov, [sample(2, 2, 2)], correction=1)
    for shape in [[3, 6], [5], [2, 2, 2]]:
        case("corrcoef", torch.corrcoef, [sample(*shape)])


def reductions_by_index():
    for reduction in ["sum", "prod", "mean", "amax", "amin"]:
        for include_self in [True, False]:
            call = lambda x, s: x.scatter_reduce(0, index, s, reduction, include_self=include_self)
            index = torch.tensor([2, 0, 2, 2, 0, 3])
            case("scatter_reduce", call, [sample(5), sample(6)], index, dim=0, reduction=reduction, include_self=include_self)
            call = lambda x, s: x.scatter_reduce(1, index, s, reduction, include_self=include_self)
            index = torch.randint(0, 4, (2, 5))
            case("scatter_reduce", call, [sample(3, 4), sample(2, 5)], index, dim=1, reduction=reduction, include_self=include_self)
    index = torch.tensor([0, 1, 0])
    ties = [torch.tensor([5.0, 2.0, 3.0]).double(), torch.tensor([5.0, 2.0, 5.0]).double()]
    zeros = [torch.tensor([3.0, 2.0, 3.0]).double(), torch.tensor([0.0, 2.0, 5.0]).double()]
    for reduction, inputs in [("amax", ties), ("amin", ties), ("prod", zeros)]:
        call = lambda x, s: x.scatter_reduce(0, index, s, reduction)
        case("scatter_reduce", call, inputs, index, dim=0, reduction=reduction, include_self=True)
    for index, shape in [(torch.tensor([5]), [1]), (torch.tensor([[0]]), [1]), (torch.zeros(3).long(), [2]), (index, [3])]:
        call = lambda x, s: x.scatter_reduce(dim, index, s, "sum")
        dim = 1 if shape == [3] else 0
        case("scatter_reduce", call, [sample(4), sample(*shape)], index, dim=dim, reduction="sum", include_self=True)


def grids():
    for mode in ["bilinear", "nearest"]:
        for padding in ["zeros", "border", "reflection"]:
            for corners in [False, True]:
                call = lambda x, g: torch.nn.functional.grid_sample(x, g, mode, padding, align_corners=corners)
                inputs = [sample(2, 2, 3, 4), sample(2, 3, 2, 2) * 2]
                case("grid_sample", call, inputs, mode=mode, padding=padding, align_corners=corners)


def integrals():
    y = sample(2, 3, 4)
    for name, f in [("trapezoid", torch.trapezoid), ("cumulative_trapezoid", torch.cumulative_trapezoid)]:
        for dim in [0, 1, -1]:
            case(name, lambda y: f(y, dx=0.5, dim=dim), [y], dx=0.5, dim=dim)
            case(name, lambda y, x: f(y, x, dim=dim), [y, sample(y.shape[dim])], dim=dim)
        case(name, lambda y, x: f(y, x, dim=1), [y, sample(3, 1)], dim=1)
        case(name, lambda y, x: f(y, x, dim=-1), [sample(3, 4), sample(2, 3, 4)], dim=-1)
        case(name, lambda y, x: f(y, x, dim=1), [y, sample(2)], dim=1)
        case(name, lambda y: f(y, dx=0.5, dim=3), [y], dx=0.5, dim=3)


def products_and_distances():
    for p in [1.0, 1.5, 2.0, 4.0, math.inf]:
        case("cdist", lambda x, y: torch.cdist(x, y, p), [sample(2, 3, 4), sample(5, 4)], p=str(p))
    case("cdist", torch.cdist, [sample(3, 4), sample(5, 3)], p="2")
    for n, dim in [(1, -1), (2, 0), (3, 1), (0, 1)]:
        case("diff", lambda x: torch.diff(x, n, dim), [sample(4, 3)], n=n, dim=dim)
    case("diff", torch.diff, [sample()], n=1, dim=-1)
    for dims, shapes in [(2, ([2, 3, 4], [3, 4, 2])), (0, ([2], [3])), (([0, 2], [1, 0]), ([2, 3, 4], [4, 2]))]:
        case("tensordot", lambda x, y: torch.tensordot(x, y, dims), [sample(*shape) for shape in shapes], dims=dims)
    case("tensordot", lambda x, y: torch.tensordot(x, y, 1), [sample(2, 3), sample(2, 3)], dims=1)
    for shapes in [([2, 3], [3, 2]), ([2], [3, 1, 2])]:
        case("kron", torch.kron, [sample(*shape) for shape in shapes])


def rearrangements():
    for k in [-1, 0, 1, 2, 3]:
        case("rot90", lambda x: torch.rot90(x, k, [2, 0]), [sample(2, 3, 2)], k=k, dims=[2, 0])
    for dims, shape in [([0, 1], [3]), ([1, -1], [2, 2]), ([0, 2], [2, 2])]:
        case("rot90", lambda x: torch.rot90(x, 1, dims), [sample(*shape)], k=1, dims=dims)
    for shape in [[], [3], [2, 3]]:
        for name in ["atleast_1d", "atleast_2d", "atleast_3d"]:
            case(name, getattr(torch, name), [sample(*shape)])
        case("diagflat", lambda x: torch.diagflat(x, -1), [sample(*shape)], offset=-1)
    for shapes in [([], []), ([3], [3]), ([3], [3, 2]), ([2, 3], [2, 3]), ([2, 1, 2], [2, 3, 2])]:
        inputs = [sample(*shape) for shape in shapes]
        for name in ["dstack", "column_stack"]:
            case(name, lambda *x: getattr(torch, name)(x), inputs)
        case("block_diag", torch.block_diag, inputs)
    for shapes in [([2], [3]), ([2], [0], [1]), ([3],), ([2], []), ([2, 2], [2])]:
        case("cartesian_prod", torch.cartesian_prod, [sample(*shape) for shape in shapes])
    for r, repeated, shape in [(2, False, [4]), (3, True, [3]), (1, False, [2]), (5, False, [3]), (2, True, [2, 2])]:
        call = lambda x: torch.combinations(x, r, repeated)
        case("combinations", call, [sample(*shape)], r=r, with_replacement=repeated)
    for dim, index, shape in [(0, -1, [3]), (1, 0, [4]), (0, 0, [1]), (0, 4, [3]), (2, 0, [3])]:
        call = lambda x, y: torch.select_scatter(x, y, dim, index)
        case("select_scatter", call, [sample(4, 3), sample(*shape)], dim=dim, position=index)
    for dim, start, end, step, shape in [(0, 0, 4, 2, [2, 3]), (1, -2, 9, 1, [4, 2]), (0, 1, 3, 1, [1, 3]), (0, 0, 1, 0, [1, 3])]:
        call = lambda x, y: torch.slice_scatter(x, y, dim, start, end, step)
        case("slice_scatter", call, [sample(4, 3), sample(*shape)], dim=dim, start=start, end=end, step=step)
    for offset, first, second, shape in [(1, 0, 1, [2]), (-1, 1, 0, [2]), (0, 0, 1, [2]), (0, 0, 0, [3])]:
        call = lambda x, y: torch.diagonal_scatter(x, y, offset, first, second)
        case("diagonal_scatter", call, [sample(4, 3), sample(*shape)], offset=offset, first=first, second=second)


def channels_and_pixels():
    functional = torch.nn.functional
    for factor, shape in [(2, [2, 4, 1, 3]), (3, [9, 2, 1]), (3, [4, 1, 2]), (2, [4, 2]), (0, [4, 1, 2])]:
        case("pixel_shuffle", lambda x: functional.pixel_shuffle(x, factor), [sample(*shape)], factor=factor)
    for factor, shape in [(2, [2, 1, 2, 4]), (3, [1, 3, 6]), (2, [1, 3, 2]), (2, [1, 2, 3]), (2, [2, 2]), (0, [1, 2, 2])]:
        case("pixel_unshuffle", lambda x: functional.pixel_unshuffle(x, factor), [sample(*shape)], factor=factor)
    for groups, shape in [(3, [2, 6, 2, 1]), (2, [1, 4, 3]), (4, [1, 6, 2]), (0, [1, 6, 2]), (2, [2, 2])]:
        case("channel_shuffle", lambda x: functional.channel_shuffle(x, groups), [sample(*shape)], groups=groups)
    for dims, size in [(2, [2, 1, 3, 2]), (2, [1, 1, 1, 2]), (3, [1, 1, 2, 3, 1]), (2, [1, 1, 2]), (2, [1, 1, 2, 0])]:
        shape = [size[0], dims, dims + 1]
        for corners in [False, True]:
            call = lambda x: functional.affine_grid(x, size, align_corners=corners)
            case("affine_grid", call, [sample(*shape)], size=size, align_corners=corners)
    for shape, size, options in [
        ([2, 8, 6], [3, 4], {}),
        ([4, 9], [4, 4], {"padding": 1, "stride": 2}),
        ([1, 4, 1], [3, 3], {"dilation": 2}),
        ([1, 4, 5], [3, 3], {}),
        ([1, 3, 4], [3, 3], {}),
        ([4], [3, 3], {}),
    ]:
        options = {"dilation": 1, "padding": 0, "stride": 1} | options
        case("fold", lambda x: functional.fold(x, size, 2, **options), [sample(*shape)], size=size, **options)
    for size, shape in [(2, [2, 4, 3]), (3, [1, 3, 2, 2]), (7, [1, 3, 1]), (2, [0, 3, 2])]:
        call = lambda x: functional.local_response_norm(x, size, 0.5, 0.7, 1.5)
        case("local_response_norm", call, [sample(*shape)], size=size)


def pairs_and_sets():
    nan = float("nan")
    for p in [0.0, 0.5, 1.0, 1.5, 2.0, 3.0, math.inf]:
        case("pdist", lambda x: torch.pdist(x, p), [sample(4, 3)], p=str(p))
    for p, shape in [(2.0, [1, 3]), (2.0, [3]), (-1.0, [3, 2])]:
        case("pdist", lambda x: torch.pdist(x, p), [sample(*shape)], p=str(p))
    x = torch.tensor([[nan, 2.0, 1.0, 2.0], [nan, nan, nan, nan], [4.0, 1.0, 1.0, nan]], dtype=torch.float64)
    case("nanmedian", lambda x: x.nanmedian(), [x])
    for dim in [0, 1, 2]:
        case("nanmedian", lambda x: x.nanmedian(dim)[0], [x], dim=dim)
    repeated = torch.randint(0, 2, (6, 3)).double()
    for dim in [0, 1, -1, 2]:
        call = lambda x: torch.unique(x, return_inverse=True, return_counts=True, dim=dim)
        case("unique_dim", call, [repeated], None, False, dim=dim)
    for dim in [None, 0, 1]:
        call = lambda x: torch.unique_consecutive(x, return_inverse=True, return_counts=True, dim=dim)
        case("unique_consecutive", call, [repeated], None, False, dim=dim)
        case("unique_consecutive", call, [sample(0, 3)], None, False, dim=dim)
    values = torch.tensor([nan, 1.0, 3.0], dtype=torch.float64)
    for x in [torch.tensor([nan, 1.0, 2.0], dtype=torch.float64), repeated, torch.zeros(0).double()]:
        case("isin", lambda x, v: torch.isin(x, v).double(), [x, values], None, False)


def later_operations():
    """Appends cases, so that the random numbers of the cases above stay the same."""
    functional = torch.nn.functional
    for order, dim, shape in [(1, 0, [4, 3]), (2, -1, [2, 5]), (1, 0, [2]), (2, 0, [2]), (3, 0, [4]), (1, 1, [4])]:
        call = lambda x: torch.gradient(x, spacing=0.5, dim=dim, edge_order=order)[0]
        case("gradient", call, [sample(*shape)], dx=0.5, dim=dim, order=order)
        points = torch.rand(shape[min(dim, len(shape) - 1)], dtype=torch.float64).add(0.2).cumsum(0)
        call = lambda x, p: torch.gradient(x, spacing=(p,), dim=dim, edge_order=order)[0]
        case("gradient_over", call, [sample(*shape), rounded(points)], dim=dim, order=order)
    for p, dim, bound, shape in [
        (2.0, 0, 1.0, [3, 4]),
        (1.0, -1, 0.5, [2, 3, 2]),
        (3.0, 1, 0.0, [2, 3]),
        (math.inf, 0, 0.7, [3, 2]),
        (0.0, 0, 1.0, [3, 2]),
        (2.0, 0, -1.0, [3, 2]),
        (2.0, 0, 1.0, [3]),
    ]:
        case("renorm", lambda x: torch.renorm(x, p, dim, bound), [sample(*shape)], p=str(p), dim=dim, bound=bound)
    for name, count, shape in [("hsplit", 2, [2, 4]), ("vsplit", 3, [3, 2]), ("dsplit", 2, [1, 2, 4])]:
        for shape in [shape, [1], [], [2, 5, 3]]:
            case(name, lambda x: getattr(torch, name)(x, count)[-1], [sample(*shape)], count=count)
    case("frexp", lambda x: torch.frexp(x)[0], [sample(3, 4) * 1000])
    line, plane = torch.tensor([[0, 3], [2, 1]]), torch.tensor([[[0, 3], [9, 15]]])
    for index, options, size in [
        (line, {}, None),
        (line, {}, [5]),
        (line, {"stride": 3, "padding": 1}, [5]),
        (line - 1, {}, None),
        (line + 1, {}, None),
        (line, {}, [7]),
        (plane, {}, None),
        (plane, {"stride": 3}, [4, 5]),
        (plane, {"stride": 1, "padding": 0}, None),
        (plane.expand(2, 1, 2, 2), {}, None),
        (plane.expand(1, 1, 1, 2, 2), {}, None),
        (plane, {}, [6, 5]),
    ]:
        name = "max_unpool1d" if index.dim() == 2 else "max_unpool2d"
        options = {"stride": 2, "padding": 0} | options
        call = lambda x: getattr(functional, name)(x, index, 2, output_size=size, **options)
        case(name, call, [sample(*index.shape)], index, size=size, **options)


def main():
    torch.manual_seed(0)
    makes = [quantiles, searches, covariances, reductions_by_index, grids, integrals, products_and_distances]
    makes += [rearrangements, channels_and_pixels, pairs_and_sets, later_operations]
    for make in makes:
        make()
    OUT.write_text("[\n" + ",\n".join(json.dumps(entry) for entry in CASES) + "\n]\n")
    print(f"{len(CASES)} cases in {OUT.relative_to(ROOT)}")


if __name__ == "__main__":
    main()
