#!/usr/bin/env python3
"""Checks the ONNX files of `crates/onnx` with ONNX's checker, and compares their outputs with ours.

    WENGERT_ONNX_FOLDER=FOLDER cargo test -p wengert-onnx --test files -- --ignored write_the_files
    python3 tools/onnx_check.py FOLDER

It needs the packages onnx and onnxruntime. ONNX Runtime computes each model. If it has no kernel for an element type (it lacks several
of f64), ONNX's reference evaluator computes the model. The outputs must agree within 1e-5 in f32 and 1e-12 in f64, relative to the
largest number of an output. `--verbose` prints the error of each model.
"""

import argparse
import math
import sys
from pathlib import Path

import numpy
import onnx
import onnx.reference
import onnxruntime
from onnx.reference.op_run import OpRun

BOUNDS = {"f32": 1e-5, "f64": 1e-12}


class Erf(OpRun):
    """The operator in f64: the reference evaluator's has errors of 1e-8."""

    op_domain = ""

    def _run(self, x):
        return (numpy.vectorize(math.erf, otypes=[x.dtype])(x),)


class ConvTranspose(OpRun):
    """The operator with groups, which the reference evaluator lacks: each input element adds the kernel to the output."""

    op_domain = ""

    def _run(self, x, w, b=None, dilations=None, group=1, output_padding=None, pads=None, strides=None, **_):
        rank, per_group = x.ndim - 2, w.shape[1]
        sizes = [
            strides[k] * (x.shape[2 + k] - 1) + dilations[k] * (w.shape[2 + k] - 1) + 1 + output_padding[k]
            for k in range(rank)
        ]
        y = numpy.zeros((x.shape[0], per_group * group, *sizes), x.dtype)
        for place in numpy.ndindex(*x.shape[2:]):
            for tap in numpy.ndindex(*w.shape[2:]):
                at = tuple(place[k] * strides[k] + tap[k] * dilations[k] for k in range(rank))
                for number in range(group):
                    channels = slice(number * x.shape[1] // group, (number + 1) * x.shape[1] // group)
                    result = slice(number * per_group, (number + 1) * per_group)
                    y[(slice(None), result, *at)] += x[(slice(None), channels, *place)] @ w[(channels, slice(None), *tap)]
        inner = tuple(slice(pads[k], sizes[k] - pads[rank + k]) for k in range(rank))
        return (y[(slice(None), slice(None), *inner)],)


def outputs_of(path, inputs, names):
    """Returns the outputs of the model, and the name of the program that computed them."""
    try:
        session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
        return session.run(names, inputs), "runtime"
    except onnxruntime.capi.onnxruntime_pybind11_state.NotImplemented:
        if "f64" not in path.parts:
            raise
        evaluator = onnx.reference.ReferenceEvaluator(str(path), new_ops=[Erf, ConvTranspose])
        return evaluator.run(names, inputs), "reference"


def arrays(folder, kind):
    return {path.name[len(kind) + 1 : -4]: numpy.load(path) for path in sorted(folder.glob(f"{kind}.*.npy"))}


def error_of(got, expected):
    """Returns the largest difference, relative to the largest finite number of the output."""
    if got.shape != expected.shape or got.dtype != expected.dtype:
        return numpy.inf
    same = (got == expected) | (numpy.isnan(got) & numpy.isnan(expected))
    if same.all():
        return 0.0
    finite = numpy.abs(expected[numpy.isfinite(expected)])
    scale = finite.max() if finite.size else 1.0
    with numpy.errstate(invalid="ignore"):
        difference = numpy.where(same, 0.0, numpy.abs(got - expected))
    difference = numpy.where(numpy.isnan(difference), numpy.inf, difference)
    return float(difference.max() / max(scale, 1e-30))


def check(folder):
    """Returns the largest error of the runs of a model, and the program that computed it."""
    path = folder / "model.onnx"
    onnx.checker.check_model(str(path), full_check=True)
    worst, program = 0.0, ""
    for run in sorted(folder.iterdir()):
        if not run.is_dir():
            continue
        expected = arrays(run, "out")
        got, program = outputs_of(path, arrays(run, "in"), list(expected))
        worst = max([worst, *(error_of(y, expected[name]) for y, name in zip(got, expected))])
    return worst, program


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--verbose", action="store_true")
    options = parser.parse_args()
    onnxruntime.set_default_logger_severity(4)
    failed = []
    for kind, bound in BOUNDS.items():
        counts, largest = {}, 0.0
        for folder in sorted((options.folder / kind).iterdir()):
            try:
                error, program = check(folder)
            except Exception as problem:  # The checker and the runtime raise many types.
                failed.append(f"{kind} {folder.name}: {str(problem).strip().splitlines()[0]}")
                continue
            counts[program] = counts.get(program, 0) + 1
            largest = max(largest, error)
            if options.verbose:
                print(f"{kind} {folder.name}: {error:.1e} ({program})")
            if not error <= bound:
                failed.append(f"{kind} {folder.name}: error {error:.1e} ({program})")
        print(f"{kind}: {sum(counts.values())} models {counts}, largest error {largest:.1e}, bound {bound:.0e}")
    for line in failed:
        print("FAILED", line)
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
