#!/usr/bin/env python3
"""Counts the code lines of the ports in examples/ports and of the originals, without pictures.

    tools/port_lines.py FOLDER      # FOLDER: the examples of HIPS/autograd

Code lines hold more than white space, comments and documentation. Rust: the functions `picture` do not count. Python: statements that
mention matplotlib's objects or values that only a picture needs do not count. Ports may be 120 columns wide, the originals are 110.
"""

import argparse
import ast
import re
from pathlib import Path

from sources import ROOT, blanked

NAMES = ["gaussian_process", "gmm", "ica", "gplvm", "mixture_variational_inference"]
# Matplotlib's objects, functions that draw, and values that only a picture needs.
PICTURES = re.compile(
    r"\b(matplotlib|plt|cm|fig\d?|ax|ax_\w+|\w+_ax|plot_\w+|color_scatter|marg_std|sampled_funcs|pred_mean, pred_cov = predict\(params"
    r"|num_plotting_samples|target_distribution|var_distribution|variational_sampler\(|npr.RandomState\(0\)\n +(sampled|samples))"
)


def rust_lines(text):
    """Returns the code lines of a program, without its function `picture`."""
    text = re.sub(r"\nfn picture\(.*?\n}\n", "\n", text, flags=re.DOTALL)
    return sum(1 for line in blanked(text, keep_comments=False).splitlines() if line.strip())


def python_lines(text):
    """Returns the code lines of a program, without documentation and statements about pictures."""
    lines = text.splitlines()
    counted = set()

    def visit(statements):
        """Collects the lines of a block. Returns true if one was counted."""
        before = len(counted)
        for statement in statements:
            if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant):
                continue
            blocks = [getattr(statement, name) for name in ("body", "orelse") if getattr(statement, name, None)]
            if isinstance(statement, ast.FunctionDef) and PICTURES.search(f"def {statement.name}"):
                continue
            if blocks:
                if any([visit(block) for block in blocks]):
                    counted.update(range(statement.lineno, statement.body[0].lineno))
            elif not PICTURES.search("\n".join(lines[statement.lineno - 1 : statement.end_lineno])):
                counted.update(range(statement.lineno, statement.end_lineno + 1))
        return len(counted) > before

    visit(ast.parse(text).body)
    return sum(1 for number in counted if lines[number - 1].strip() and not lines[number - 1].strip().startswith("#"))


def main():
    """Prints a row for each program."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    folder = Path(parser.add_argument("folder") and parser.parse_args().folder)
    for name in NAMES:
        port = rust_lines((ROOT / f"examples/ports/{name}.rs").read_text(encoding="utf-8"))
        original = python_lines((folder / f"{name}.py").read_text(encoding="utf-8"))
        print(f"{name:32} port {port:3}   original {original:3}   {port / original:.2f}")


if __name__ == "__main__":
    main()
