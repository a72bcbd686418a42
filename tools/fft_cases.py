#!/usr/bin/env python3
"""Writes crates/fft/tests/cases.json: transforms and their gradients, computed by PyTorch in f64.

Needs PyTorch. A complex number is a pair in a last dimension of size 2. `gradient` is the gradient of the sum of the results
times `weights`, with respect to the input. `second` is a derivative of the sum of the squares of the results times `weights`: the gradient
of the sum of its gradient times `direction`. An error has PyTorch's sentence instead.

    python3 tools/fft_cases.py
"""

import json
import math
import pathlib

import torch

ROOT = pathlib.Path(__file__).resolve().parent.parent
OUT = ROOT / "crates/fft/tests/cases.json"


def array(x):
    # Twelve digits keep the file small. The tests compare to 1e-9.
    return {"shape": list(x.shape), "data": [float(f"{value:.12g}") for value in x.flatten().tolist()]}


def waves(shape, step, offset):
    """Returns numbers for weights, with twelve digits."""
    x = torch.arange(math.prod(shape), dtype=torch.float64).mul(step).sin().add(offset)
    return torch.tensor([float(f"{value:.12g}") for value in x.tolist()], dtype=torch.float64).reshape(shape)


def case(name, shape, is_complex, arguments):
    x = torch.rand(shape + ([2] if is_complex else []), dtype=torch.float64) * 2 - 1
    x = torch.tensor([float(f"{value:.12g}") for value in x.flatten().tolist()], dtype=torch.float64).reshape(x.shape)
    x.requires_grad_()
    entry = {"name": name, "arguments": arguments, "input": array(x.detach())}
    given = {key: value for key, value in arguments.items() if value is not None}
    try:
        y = getattr(torch.fft, name)(torch.view_as_complex(x) if is_complex else x, **given)
    except (RuntimeError, IndexError) as error:
        entry["error"] = str(error).split("\n")[0]
        return entry
    if y.is_complex():
        y = torch.view_as_real(y.resolve_conj())
    return with_derivatives(entry, x, y)


def short_time(name, shape, arguments):
    """Returns a case of `torch.stft` or `torch.istft`. `window` is the name of a window, and `win_length` its size."""
    x = torch.tensor([float(f"{value:.12g}") for value in (torch.rand(shape, dtype=torch.float64) * 2 - 1).flatten().tolist()], dtype=torch.float64)
    x = x.reshape(shape).requires_grad_()
    entry = {"name": name, "arguments": arguments, "input": array(x.detach())}
    given = dict(arguments)
    if "window" in given:
        size = given.get("win_length", given["n_fft"])
        given["window"] = getattr(torch, given["window"])(size, dtype=torch.float64)
    if name == "stft":
        y = torch.view_as_real(torch.stft(x, **given, return_complex=True))
    else:
        y = torch.istft(torch.view_as_complex(x), **given)
    return with_derivatives(entry, x, y)


def with_derivatives(entry, x, y):
    weights, direction = waves(y.shape, 0.7, 0.1), waves(x.shape, 1.3, 0.2)
    (gradient,) = torch.autograd.grad((y * weights).sum(), x, retain_graph=True)
    (slope,) = torch.autograd.grad((y.square() * weights).sum(), x, create_graph=True)
    (second,) = torch.autograd.grad((slope * direction).sum(), x)
    entry.update(output=array(y.detach()), weights=array(weights), gradient=array(gradient), direction=array(direction), second=array(second))
    return entry


def main():
    torch.manual_seed(0)
    cases = []
    of_complex = ["fft", "ifft", "irfft", "hfft"]
    for name in ["fft", "ifft", "rfft", "irfft", "hfft", "ihfft"]:
        is_complex = name in of_complex
        for n in [1, 2, 3, 4, 5, 8, 11]:
            cases.append(case(name, [n + (n == 1 and name in ["irfft", "hfft"])], is_complex, {"norm": "backward"}))
        for norm in ["backward", "ortho", "forward"]:
            for n, dim in [(None, 1), (7, 0), (2, 1), (6, -1)]:
                cases.append(case(name, [3, 4], is_complex, {"n": n, "dim": dim, "norm": norm}))
        cases.append(case(name, [0, 3], is_complex, {"norm": "backward"}))
        for shape, arguments in [([3], {"n": 0}), ([0], {}), ([], {}), ([3], {"dim": 2}), ([2, 3], {"dim": -3})]:
            cases.append(case(name, shape, is_complex, {"norm": "backward", **arguments}))
    for name in ["fftn", "ifftn", "rfftn", "irfftn"]:
        is_complex = name != "rfftn"
        for norm in ["backward", "ortho", "forward"]:
            cases.append(case(name, [3, 4, 2], is_complex, {"norm": norm}))
        for arguments in [{"s": [2, 5]}, {"dim": [2, 0]}, {"s": [3, 3], "dim": [0, 1]}, {"dim": [0]}]:
            cases.append(case(name, [3, 4, 2], is_complex, {"norm": "backward", **arguments}))
        for shape, arguments in [
            ([3], {"s": [2, 2]}),
            ([3, 3], {"s": [2], "dim": [0, 1]}),
            ([3, 3], {"dim": [0, 0]}),
            ([3, 3], {"dim": []}),
            ([3, 3], {"dim": [3]}),
            ([3, 3], {"s": [0, 2]}),
        ]:
            cases.append(case(name, shape, is_complex, {"norm": "backward", **arguments}))
    for name in ["fft2", "ifft2", "rfft2", "irfft2"]:
        for shape in [[2, 3, 4], [3]]:
            cases.append(case(name, shape, name != "rfft2", {"norm": "ortho"}))
    for window in ["hann_window", "hamming_window", "blackman_window", "bartlett_window", "kaiser_window"]:
        cases.append(short_time("stft", [12], {"n_fft": 8, "window": window}))
    for shape, arguments in [
        ([11], {"n_fft": 4}),
        ([2, 10], {"n_fft": 5, "hop_length": 2, "window": "hann_window", "normalized": True}),
        ([2, 9], {"n_fft": 6, "hop_length": 3, "window": "hamming_window", "win_length": 3, "onesided": False}),
        ([10], {"n_fft": 4, "hop_length": 3, "center": False}),
        ([7], {"n_fft": 6, "hop_length": 2, "pad_mode": "constant"}),
        ([2, 7], {"n_fft": 6, "hop_length": 5, "pad_mode": "replicate", "window": "hann_window"}),
        ([7], {"n_fft": 7, "hop_length": 1, "pad_mode": "circular"}),
    ]:
        cases.append(short_time("stft", shape, arguments))
    for shape, arguments in [
        ([3, 6, 2], {"n_fft": 4}),
        ([2, 3, 4, 2], {"n_fft": 5, "hop_length": 2, "window": "hann_window", "normalized": True}),
        ([5, 3, 2], {"n_fft": 8, "hop_length": 2, "window": "hamming_window", "win_length": 6, "length": 5}),
        ([5, 3, 2], {"n_fft": 8, "hop_length": 4, "window": "hamming_window", "length": 15}),
        ([3, 4, 2], {"n_fft": 4, "hop_length": 2, "center": False}),
        ([6, 3, 2], {"n_fft": 6, "hop_length": 3, "window": "hamming_window", "onesided": False, "length": 6}),
    ]:
        cases.append(short_time("istft", shape, arguments))
    for name in ["hfftn", "ihfftn"]:
        is_complex = name == "hfftn"
        for norm in ["backward", "ortho", "forward"]:
            cases.append(case(name, [3, 4, 2], is_complex, {"norm": norm}))
        for arguments in [{"s": [2, 5]}, {"dim": [2, 0]}, {"s": [3, 3], "dim": [0, 1]}, {"dim": [0]}]:
            cases.append(case(name, [3, 4, 2], is_complex, {"norm": "backward", **arguments}))
        cases.append(case(name, [0, 3, 2], is_complex, {"dim": [1, 2]}))
        for shape, arguments in [([3, 3], {"s": [2], "dim": [0, 1]}), ([3, 3], {"dim": [0, 0]}), ([3, 3], {"dim": []}), ([3], {"s": [0]})]:
            cases.append(case(name, shape, is_complex, {"norm": "backward", **arguments}))
        for shape in [[2, 3, 4], [3]]:
            cases.append(case(name[:-1] + "2", shape, is_complex, {"norm": "ortho"}))
    OUT.write_text("[\n" + ",\n".join(json.dumps(entry) for entry in cases) + "\n]\n")
    print(f"{len(cases)} cases in {OUT.relative_to(ROOT)}")


if __name__ == "__main__":
    main()
