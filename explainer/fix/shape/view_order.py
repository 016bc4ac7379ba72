"""In which order a `view` takes the axes of a tensor whose sizes have names: `b, c, t, h, w = clips.shape`, `clips.view(b * t, c, h, w)`."""

from __future__ import annotations

import ast

from explainer.source.file import SourceFile
from explainer.source.name import dotted_name
from explainer.source.program import Program
from explainer.source.value.lineage import binds, scope_of, statements_of


def order_of_view(view: ast.Call, file: SourceFile, program: Program) -> tuple[int, ...] | None:
    """The axes of the tensor in the order in which a view names their sizes; None where they have no names, or others.

    Any other order than that of the axes mixes them up, by whatever copy: the axes have to be moved first.
    """
    assert isinstance(view.func, ast.Attribute)
    name = dotted_name(view.func.value)
    axes = _named_axes(name, view, file, program) if name is not None else []
    given = view.args[0].elts if len(view.args) == 1 and isinstance(view.args[0], (ast.Tuple, ast.List)) else view.args
    taken = [_factors(one) for one in given]
    if not axes or any(one is None for one in taken):
        return None
    named = [each for one in taken for each in one or ()]
    rest = [one for one in axes if one not in named]
    is_open = sum(not one for one in taken)
    if is_open > 1 or (rest and not is_open):
        return None
    order = [each for one in taken for each in one or rest]
    return tuple(axes.index(one) for one in order) if sorted(order) == sorted(axes) else None


def _named_axes(name: str, view: ast.Call, file: SourceFile, program: Program) -> list[str]:
    """The names of a tensor's sizes, where the scope takes its shape apart and the tensor is the same since."""
    scope, found = scope_of(view, file, program), list[str]()
    statement = file.statement(view)
    for one in statements_of(scope) if scope is not None else ():
        if one.lineno >= statement.lineno:
            break
        if isinstance(one, ast.Assign) and _shape_of(one.value) == name and isinstance(one.targets[0], ast.Tuple):
            parts = one.targets[0].elts
            texts = [f"{at}" if getattr(part, "id", "_") == "_" else ast.unparse(part) for at, part in enumerate(parts)]
            found = texts if all(isinstance(part, ast.Name) for part in parts) and len(set(texts)) == len(texts) else []
        elif name in binds(one) or set(found) & set(binds(one)):
            found = []
    return found


def _shape_of(node: ast.expr) -> str | None:
    """The tensor whose shape an expression is."""
    if (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr == "size"
        and not node.args
    ):
        return dotted_name(node.func.value)
    return dotted_name(node.value) if isinstance(node, ast.Attribute) and node.attr == "shape" else None


def _factors(node: ast.expr) -> list[str] | None:
    """The names of a product of sizes; [] of -1, which takes what is left; None of anything else."""
    if isinstance(node, ast.Name):
        return [node.id]
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult):
        left, right = _factors(node.left), _factors(node.right)
        return left + right if left and right else None
    is_open = (
        isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub) and getattr(node.operand, "value", None) == 1
    )
    return [] if is_open else None
