"""`{"labels": row["stars"]}` becomes `{"labels": row["stars"] - 1}` where a library's model takes the labels, and they count from 1.

Where the program computes the loss itself, its call is changed, or the table that numbers the classes. Here the live labels
have to say it: the highest is the number of the classes, and there is no 0. What the source shows to begin with 0 stays.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from explainer.fix.clue.blame import is_in_crash
from explainer.fix.codemod import Context, Proposal, culprit_of, edit_of
from explainer.fix.text.rewrite import operand
from explainer.model.patch import Edit
from explainer.source.data.code_table import find_codes
from explainer.source.data.label_put import LABEL_KEYS, LabelPut, label_puts
from explainer.source.data.stranger import find_strangers
from explainer.source.loss.loss import find_losses
from explainer.source.program import Program
from explainer.source.tree import walk
from explainer.source.value.binding import Value, bounds_of, scope_of
from explainer.source.value.integer import span_of
from explainer.source.value.origin import origins

_DEPTH = 4
_BECAUSE = (
    "right where the labels count from 1, as stars and months do; where they count from 0 the model lacks a class"
)


def propose(context: Context) -> Iterator[Proposal]:
    """One edit for the one place that puts labels into what the model gets."""
    live = context.incident.fact("live_refused_index")
    target, program = str(context.fields.get("target") or ""), context.program
    is_of_model = target.isdigit() and live is not None and live.value == f"{target} of {target}, from 1"
    if not context.has_failed or not is_of_model or _is_own_loss(context) or find_codes(int(target), program):
        return
    stranger = find_strangers(int(target), None, program, is_table=False)
    if stranger is not None and stranger.is_name:
        return
    puts = [one for one in label_puts(program) if not _reads_label(one.node)]
    lows = {_low(one, program) for one in puts}
    if len(puts) != 1 or 0 in lows:
        return
    (put,) = puts
    edit = _shifted(put.node, put, _DEPTH)
    if edit is not None:
        is_shown = lows == {1}
        yield Proposal(
            edits=(edit,), culprit=culprit_of(put.file, put.node, f"puts labels from 1 to {target} where the model takes 0 to {int(target) - 1}"),
            belief=1.5 if is_shown else 0.5, applicability="safe" if is_shown else "unsafe", because=_BECAUSE,
        )  # fmt: skip


def _is_own_loss(context: Context) -> bool:
    """Whether the traceback goes through a loss that the program computes."""
    losses = (one for one in find_losses(context.program) if one.takes_classes)
    return any(is_in_crash(one.call, one.file, context) for one in losses)


def _reads_label(node: ast.expr) -> bool:
    """Whether what is put under the key is read under one: a collator hands on what the rows have."""
    return any(isinstance(one, ast.Subscript) and getattr(one.slice, "value", None) in LABEL_KEYS for one in walk(node))


def _low(put: LabelPut, program: Program) -> int | None:
    """The lowest label that the source shows; None where it does not."""
    found = [span_of(one, program) for one in origins(Value(node=put.node, file=put.file), program)]
    known = [one.low for one in found if one is not None]
    return min(known) if known and len(known) == len(found) else None


def _shifted(node: ast.expr, put: LabelPut, depth: int) -> Edit | None:
    """The edit that makes labels less one; what cannot be subtracted from fails where it is tried."""
    if isinstance(node, ast.Name) and depth:
        bounds = [one for one in bounds_of(scope_of(node, put.file)) if one.name == node.id]
        if len(bounds) == 1 and bounds[0].pick is None and not bounds[0].is_element and not bounds[0].fills:
            return _shifted(bounds[0].node, put, depth - 1)
    if isinstance(node, (ast.ListComp, ast.GeneratorExp)):
        return None if isinstance(node.elt, ast.List) else _less_one(node.elt, put)
    func = node.func if isinstance(node, ast.Call) else None
    if isinstance(func, ast.Attribute) and func.attr == "tolist":
        return edit_of(put.file, func.value, f"({operand(put.file, func.value)} - 1)")
    if isinstance(node, (ast.Constant, ast.List, ast.Dict, ast.IfExp, ast.BoolOp)):
        return None
    return _less_one(node, put)


def _less_one(node: ast.expr, put: LabelPut) -> Edit:
    return edit_of(put.file, node, f"{operand(put.file, node)} - 1")
