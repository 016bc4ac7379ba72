"""A softmax that is written out: `exp(x) / exp(x).sum(-1, keepdim=True)`, also by the name of its exponentials."""

from __future__ import annotations

import ast

from explainer.fix.loss.log_space import argument_of, called_with, followed
from explainer.fix.text.rewrite import spell
from explainer.source.file import SourceFile
from explainer.source.program import Program


def softmax_written_out(node: ast.BinOp, file: SourceFile, program: Program) -> str | None:
    """The softmax that a quotient computes, as text; None where it computes something else, or sums along no one dimension."""
    names = program.names(file)
    top = called_with(followed(node.left, node, file, program), names, "exp")
    summed = argument_of(node.right, names, "sum") if isinstance(node.right, ast.Call) else None
    below = called_with(followed(summed, node, file, program), names, "exp") if summed is not None else None
    if top is None or below is None or ast.dump(below) != ast.dump(top) or not isinstance(node.right, ast.Call):
        return None
    dims = [file.segment(one) for one in node.right.args if one is not summed]
    dims += [file.segment(one.value) for one in node.right.keywords if one.arg in ("dim", "axis")]
    if len(dims) != 1 or not any(one.arg == "keepdim" for one in node.right.keywords):
        return None
    return f"{spell(names, 'torch.softmax')}({file.segment(top)}, dim={dims[0]})"
