#!/usr/bin/env python3
"""Writes tests/fixtures/matrices.json: optimisers and norms of whole matrices, computed by PyTorch in f64.

Needs PyTorch. Element k of a parameter begins at k / 4 - 1/2. Its gradient in step t is sin((k + 1)(0.7 + t)) + p, where p is its value.

    python3 tools/matrix_cases.py
"""

import json
import pathlib

import torch
from torch.nn.utils import parametrizations
from torch.optim import _muon

ROOT = pathlib.Path(__file__).resolve().parent.parent
OUT = ROOT / "tests/fixtures/matrices.json"

DOUBLE = torch.float64


def array(x):
    return {"shape": list(x.shape), "data": x.detach().flatten().tolist()}


def orthogonal_in_f64(grad, coefficients, steps, eps):
    """Computes the iteration of Newton and Schulz in the type of the gradient. PyTorch's own function computes it in bfloat16."""
    x = grad.T if grad.size(0) > grad.size(1) else grad
    x = x / x.norm().clamp(min=eps)
    a, b, c = coefficients
    for _ in range(steps):
        gram = x @ x.T
        x = a * x + (b * gram + c * gram @ gram) @ x
    return x.T if grad.size(0) > grad.size(1) else x


def optimizer_case(kind, shape, options, steps):
    count = torch.Size(shape).numel()
    numbers = torch.arange(count, dtype=DOUBLE).reshape(shape)
    parameter = torch.nn.Parameter(numbers / 4 - 0.5)
    optimizer = getattr(torch.optim, kind)([parameter], **options)
    values = []
    for step in range(steps):
        parameter.grad = ((numbers + 1) * (0.7 + step)).sin() + parameter.detach()
        optimizer.step()
        values.append(array(parameter))
    return {"kind": kind, "shape": shape, "options": options, "values": values}


def layer(weight):
    layer = torch.nn.Linear(weight.shape[1], weight.shape[0], bias=False, dtype=DOUBLE)
    layer.weight = torch.nn.Parameter(weight.clone())
    return layer


def norm_case(kind, weight, options):
    """Makes three steps: the output for `x` and the gradients of the sum of its squares. All parameters move after each."""
    layer_ = parametrizations.weight_norm(layer(weight), **options) if kind == "weight_norm" else None
    if layer_ is None:
        layer_ = parametrizations.spectral_norm(layer(weight), **options)
    parts = layer_.parametrizations.weight
    state = {name.removeprefix("0."): array(value) for name, value in parts.state_dict().items()}
    x = torch.arange(weight.shape[1], dtype=DOUBLE).mul(1.3).cos().reshape(1, -1)
    steps = []
    for _ in range(3):
        layer_.train()
        layer_.zero_grad()
        y = layer_(x)
        y.square().sum().backward()
        gradients = {name: array(value.grad) for name, value in parts.named_parameters()}
        with torch.no_grad():
            for value in parts.parameters():
                value -= 0.1 * value.grad
        steps.append({"output": array(y), "gradients": gradients})
    layer_.eval()
    return {"kind": kind, "options": options, "x": array(x), "state": state, "steps": steps, "last": array(layer_(x))}


def main():
    torch.manual_seed(0)
    _muon._zeropower_via_newtonschulz = orthogonal_in_f64
    optimizers = [
        optimizer_case(kind, shape, options, steps)
        for kind, shape, options, steps in [
            ("Adafactor", [2, 3], {"lr": 0.01}, 3),
            ("Adafactor", [3], {"lr": 0.01}, 3),
            ("Adafactor", [], {"lr": 0.1}, 3),
            ("Adafactor", [2, 2], {"lr": 0.01, "maximize": True}, 3),
            ("Adafactor", [5, 7], {"lr": 0.1}, 30),
            ("Adafactor", [3, 3], {"lr": 0.1, "weight_decay": 0.1, "d": 2.0}, 10),
            ("Adafactor", [2, 2, 3], {"lr": 0.5, "weight_decay": 0.1, "beta2_decay": -0.5, "d": 1.5, "eps": [1e-3, 1e-2]}, 5),
            ("Muon", [2, 3], {"lr": 0.1}, 3),
            ("Muon", [3, 2], {"lr": 0.1, "nesterov": False, "momentum": 0.8, "weight_decay": 0.0}, 3),
            ("Muon", [4, 2], {"lr": 0.1, "adjust_lr_fn": "match_rms_adamw", "ns_steps": 3}, 3),
            ("Muon", [5, 7], {"lr": 0.02}, 30),
            ("Muon", [1, 4], {"lr": 0.05, "momentum": 0.0, "eps": 1e-3}, 5),
        ]
    ]
    weight = torch.rand([4, 6], dtype=DOUBLE) * 2 - 1
    norms = [norm_case("weight_norm", weight, {"dim": dim}) for dim in [0, 1, None]]
    norms += [norm_case("spectral_norm", weight, {"n_power_iterations": number}) for number in [1, 3]]
    entries = {"torch": torch.__version__.split("+")[0], "optimizers": optimizers, "norms": norms}
    text = json.dumps(entries, indent=None, separators=(",", ":"))
    OUT.write_text(text.replace('{"kind"', '\n{"kind"') + "\n")


if __name__ == "__main__":
    main()
