"""Leaves as a program writes them, and the text that makes a leaf of a result: the flag set last, the parameter made last."""

from __future__ import annotations

import ast

from explainer.fix.codemod import edit_of
from explainer.fix.text.rewrite import operand
from explainer.model.patch import Edit
from explainer.source.file import SourceFile
from explainer.source.graph.cut import asks_for
from explainer.source.name import Names, dotted_name
from explainer.source.network.anew import PARAMETER

_MOVES = frozenset(
    {"to", "cuda", "cpu", "double", "float", "half", "bfloat16", "type", "view", "reshape", "t", "unsqueeze", "squeeze"}
    | {
        "mul",
        "div",
        "add",
        "sub",
        "clone",
        "contiguous",
        "expand",
        "repeat",
        "transpose",
        "normal_",
        "uniform_",
        "clamp",
    }
)


def flags(statement: ast.stmt, name: str) -> bool:
    """`w.requires_grad_(True)` or `w.requires_grad = True`."""
    if isinstance(statement, ast.Assign):
        return dotted_name(statement.targets[0]) == f"{name}.requires_grad"
    call = statement.value if isinstance(statement, ast.Expr) else None
    return isinstance(call, ast.Call) and dotted_name(call.func) == f"{name}.requires_grad_"


def inner_leaf(node: ast.expr, names: Names) -> ast.Call | None:
    """The leaf under scalings, casts and moves."""
    while True:
        if isinstance(node, ast.BinOp):
            found = [one for one in (node.left, node.right) if inner_leaf(one, names) is not None]
            if len(found) != 1:
                return None
            node = found[0]
        elif isinstance(node, ast.Call) and is_leaf_call(node, names):
            return node
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _MOVES:
            node = node.func.value
        else:
            return None


def is_leaf_call(node: ast.Call, names: Names) -> bool:
    """Whether a call makes a leaf: a parameter, a tensor made with the flag, one that is flagged."""
    called = names.qualified(node.func) or ""
    if called in PARAMETER:
        return True
    if called.startswith("torch.") and asks_for(node, "requires_grad", value=True):
        return True
    is_flag = isinstance(node.func, ast.Attribute) and node.func.attr == "requires_grad_"
    return is_flag and (not node.args or (isinstance(node.args[0], ast.Constant) and node.args[0].value is True))


def leaf_last(whole: ast.expr, leaf: ast.Call, file: SourceFile, names: Names) -> tuple[Edit, ...] | None:
    """The edit that makes a leaf of all that is computed from one; None where its flag cannot be taken out."""
    if names.is_call(leaf, *PARAMETER):
        return _parameter_last(whole, leaf, file)
    return _flag_last(whole, leaf, file)


def _flag_last(whole: ast.expr, leaf: ast.Call, file: SourceFile) -> tuple[Edit, ...] | None:
    start, end = file.span(whole)
    text = file.text[start:end]
    low, high = file.span(leaf)
    inner = without_flag(leaf, file)
    if inner is None:
        return None
    new = text[: low - start] + inner + text[high - start :]
    new = f"({new})" if isinstance(whole, (ast.BinOp, ast.UnaryOp)) else new
    return (edit_of(file, whole, f"{new}.requires_grad_(True)"),)


def without_flag(leaf: ast.Call, file: SourceFile) -> str | None:
    """A leaf's call without its flag; None where it cannot be taken out."""
    if isinstance(leaf.func, ast.Attribute) and leaf.func.attr == "requires_grad_":
        return operand(file, leaf.func.value)
    start, _ = file.span(leaf)
    text = file.segment(leaf)
    (flag,) = [one for one in leaf.keywords if one.arg == "requires_grad"]
    low, high = file.span(flag)
    before, after = text[: low - start].rstrip(), text[high - start :]
    if before.endswith(","):
        return before[:-1] + after
    return before + after.lstrip(", ") if before.endswith("(") else None


def _parameter_last(whole: ast.expr, leaf: ast.Call, file: SourceFile) -> tuple[Edit, ...] | None:
    if len(leaf.args) != 1 or leaf.keywords:
        return None
    start, end = file.span(whole)
    low, high = file.span(leaf)
    text = file.text
    inner = operand(file, leaf.args[0]) if isinstance(leaf.args[0], ast.BinOp) else file.segment(leaf.args[0])
    new = f"{file.segment(leaf.func)}({text[start:low]}{inner}{text[high:end]})"
    return (edit_of(file, whole, new),)
