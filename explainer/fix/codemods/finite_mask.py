"""`scores.masked_fill(mask, float("-inf"))` becomes `torch.finfo(scores.dtype).min`: a row that is masked throughout stays finite.

A softmax over nothing but -inf is 0/0. With the dtype's smallest number such a row is uniform, and every other row is as before.
Also `-math.inf`, `-float("inf")`, `-torch.inf`, `torch.where(mask, scores, -inf)` and a constant that float16 cannot hold.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from explainer.fix.blame import anomaly_node, nearness
from explainer.fix.codemod import Context, Proposal, culprit_of, edit_of
from explainer.fix.rewrite import operand, spell
from explainer.source.file import SourceFile
from explainer.source.flow import Reach, flow_of
from explainer.source.name import Names
from explainer.source.precision import find_halves

_HALF_MAX = 65504.0


def propose(context: Context) -> Iterator[Proposal]:
    """An edit for each mask of -inf that a softmax may read."""
    if not context.has_failed:
        return
    by_range = bool(context.options.get("by_range"))
    if by_range and not any(True for _ in find_halves(context.program)):
        return
    flow = flow_of(context.program)
    node_name = anomaly_node(context)
    for file in context.program.parsed():
        names = context.program.names(file)
        for node in file.walk():
            filled = _filled(node, names) if isinstance(node, ast.Call) else None
            if filled is None or not isinstance(node, ast.expr):
                continue
            scores, value = filled
            reach = flow.reach_of(scores, file)
            if not reach or not _is_too_low(value, names, by_range=by_range):
                continue
            belief = (0.8 if reach == Reach.SURE else 0.0) + (
                1.5 if "Softmax" in node_name else -0.5 if node_name else 0.0
            )
            yield Proposal(
                edits=(edit_of(file, value, _least(file, scores, names)),),
                culprit=culprit_of(file, node, f"masks with `{file.segment(value)}`, of which a whole row may consist"),
                belief=belief + nearness(file, node, context),
            )


def _least(file: SourceFile, scores: ast.expr, names: Names) -> str:
    return f"{spell(names, 'torch.finfo')}({operand(file, scores)}.dtype).min"


def _filled(node: ast.Call, names: Names) -> tuple[ast.expr, ast.expr] | None:
    """The scores and the value that a call puts in their masked places."""
    called = names.qualified(node.func) or ""
    if called in ("torch.where", "torch.masked_fill") and len(node.args) == 3:
        if called == "torch.masked_fill":
            return node.args[0], node.args[2]
        value = next((one for one in node.args[1:] if _infinite(one, names)), None)
        return (next(one for one in node.args[1:] if one is not value), value) if value is not None else None
    method = node.func.attr if isinstance(node.func, ast.Attribute) else ""
    if method in ("masked_fill", "masked_fill_") and isinstance(node.func, ast.Attribute) and len(node.args) == 2:
        return node.func.value, node.args[1]
    return None


def _is_too_low(value: ast.expr, names: Names, *, by_range: bool) -> bool:
    """Whether a mask's value is -inf, or with `by_range` a number that float16 has not."""
    if not by_range:
        return _infinite(value, names)
    number = value.operand if isinstance(value, ast.UnaryOp) and isinstance(value.op, ast.USub) else None
    return isinstance(number, ast.Constant) and isinstance(number.value, (int, float)) and number.value > _HALF_MAX


def _infinite(node: ast.expr, names: Names) -> bool:
    """Whether an expression is minus infinity, however it is spelled."""
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        inner = node.operand
        if names.qualified(inner) in ("math.inf", "torch.inf", "numpy.inf"):
            return True
        return _is_float(inner, "inf", "infinity")
    return _is_float(node, "-inf", "-infinity")


def _is_float(node: ast.expr, *words: str) -> bool:
    if (
        not isinstance(node, ast.Call)
        or not isinstance(node.func, ast.Name)
        or node.func.id != "float"
        or not node.args
    ):
        return False
    text = node.args[0]
    return isinstance(text, ast.Constant) and isinstance(text.value, str) and text.value.lower() in words
