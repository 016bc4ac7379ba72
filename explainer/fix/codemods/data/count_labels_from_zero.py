"""`cross_entropy(logits, labels)` becomes `cross_entropy(logits, labels - 1)` where the labels count from 1.

Only where the source shows the labels: a list of constants from 1 up to the number of classes, `randint(1, n + 1, ...)`, months.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from explainer.fix.blame import is_in_crash
from explainer.fix.codemod import Context, Proposal, culprit_of, edit_of
from explainer.fix.rewrite import operand
from explainer.fix.seen import seen
from explainer.source.data.code_table import find_codes
from explainer.source.data.stranger import find_strangers
from explainer.source.loss.loss import Loss, find_losses
from explainer.source.name import Names
from explainer.source.tree import walk
from explainer.source.value.binding import Value
from explainer.source.value.integer import span_of
from explainer.source.value.number import number_of
from explainer.source.value.origin import origins


def propose(context: Context) -> Iterator[Proposal]:
    """An edit for the loss that the traceback names."""
    if not context.has_failed:
        return
    for loss in find_losses(context.program):
        if not loss.takes_classes or not is_in_crash(loss.call, loss.file, context):
            continue
        made = list(origins(Value(node=loss.target, file=loss.file), context.program))
        if made and all(_counts_from_one(one, context.program.names(one.file), context) for one in made):
            yield Proposal(
                edits=(edit_of(loss.file, loss.target, f"{operand(loss.file, loss.target)} - 1"),),
                culprit=culprit_of(loss.file, loss.call, "takes classes from 0, and the labels count from 1"),
                belief=1.5,
            )
        elif _is_one_beyond(loss, context):
            yield Proposal(
                edits=(edit_of(loss.file, loss.target, f"{operand(loss.file, loss.target)} - 1"),),
                culprit=culprit_of(loss.file, loss.call, "is given a label that is one beyond the model's classes"),
                belief=0.5,
                applicability="unsafe",
                because="right where the labels count from 1, as stars and months do; where they count from 0 the model lacks a class",
            )


def _is_one_beyond(loss: Loss, context: Context) -> bool:
    """Whether the label that was refused is the number of classes that the live program's logits had.

    Where there is a label 0 too they count from 0, and where a name in the data is a stranger to as many others, it is that one's.
    """
    top, logits = context.fields.get("target"), seen(loss.prediction, context)
    is_known = top is not None and logits is not None and len(logits.shape) > 1
    if not is_known or logits.shape[1] != int(str(top)):  # type: ignore[union-attr]
        return False
    live = context.incident.fact("live_refused_index")
    if live is not None and live.value.endswith(" from 0"):
        return False
    if find_codes(int(str(top)), context.program):  # a table of the program's own begins at 0
        return False
    found = find_strangers(int(str(top)), None, context.program, is_table=False)
    return found is None or not found.is_name


def _counts_from_one(value: Value, names: Names, context: Context) -> bool:
    node = value.node
    top = context.fields.get("target") or context.fields.get("index")
    if not isinstance(node, ast.Call) or not node.args or value.pick is not None:
        return _goes_from_one(value, top, context)
    called = names.qualified(node.func) or ""
    if called in ("torch.tensor", "torch.as_tensor", "torch.LongTensor"):
        labels = [number_of(one, names) for one in walk(node.args[0]) if isinstance(one, ast.Constant)]
        known = [one for one in labels if one is not None]
        return bool(known) and min(known) == 1 and (top is None or max(known) == float(str(top)))
    if called == "torch.randint" and len(node.args) > 2:
        return number_of(node.args[0], names) == 1
    return _goes_from_one(value, top, context)


def _goes_from_one(value: Value, top: object, context: Context) -> bool:
    """Whether the source shows numbers from 1 to the label that was refused."""
    span = span_of(value, context.program)
    return span is not None and span.low == 1 and (top is None or span.high == int(str(top)))
