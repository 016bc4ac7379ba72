"""`cross_entropy(logits, labels)` becomes `cross_entropy(logits, labels - 1)` where the labels count from 1.

Only where the source shows the labels: a list of constants from 1 up to the number of classes, `randint(1, n + 1, ...)`, months.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from explainer.fix.clue.blame import is_in_crash
from explainer.fix.clue.seen import seen
from explainer.fix.codemod import Context, Proposal, culprit_of, edit_of
from explainer.fix.text.rewrite import operand
from explainer.source.data.code_table import find_codes
from explainer.source.data.data_row import Column, find_columns
from explainer.source.data.stranger import find_strangers
from explainer.source.loss.loss import Loss, find_losses
from explainer.source.name import Names
from explainer.source.program import Program
from explainer.source.tree import walk
from explainer.source.value.binding import Value
from explainer.source.value.integer import span_of
from explainer.source.value.number import number_of
from explainer.source.value.origin import origins

_ONLY_IF = (
    "right where the labels count from 1, as stars and months do; where they count from 0 the model lacks a class"
)


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
            yield from _shifted(loss, made, context)


def _shifted(loss: Loss, made: Sequence[Value], context: Context) -> Iterator[Proposal]:
    """Labels less one where the data set makes them, whatever else takes them then; else in the call of the loss."""
    top, program = int(str(context.fields.get("target"))), context.program
    spans = _spans_in_data(made[0], program) if len(made) == 1 else set()
    if any(low == 0 for low, _ in spans):
        return
    is_shown = spans == {(1, top)}
    belief = 1.5 if is_shown else 0.5
    because = None if is_shown else _ONLY_IF
    applicability = "safe" if is_shown else "unsafe"
    for one in made if len(made) == 1 and made[0].pick is None and isinstance(made[0].node, ast.expr) else ():
        function = program.names(one.file).function_of(one.node)
        if function is not None and function.name == "__getitem__":
            yield Proposal(
                edits=(edit_of(one.file, one.node, f"{operand(one.file, one.node)} - 1"),),
                culprit=culprit_of(one.file, one.node, f"hands out labels from 1 to {top} where the model has classes from 0"),
                belief=belief + 0.1, applicability=applicability, because=because,
                title='Count the labels from 0 where the data set makes them: `int(row["label"]) - 1`',
            )  # fmt: skip
    yield Proposal(
        edits=(edit_of(loss.file, loss.target, f"{operand(loss.file, loss.target)} - 1"),),
        culprit=culprit_of(loss.file, loss.call, "is given a label that is one beyond the model's classes"),
        belief=belief, applicability=applicability, because=because,
    )  # fmt: skip


def _spans_in_data(value: Value, program: Program) -> set[tuple[int, int]]:
    """The lowest and highest number of each column of whole numbers, in data files, that labels are read from by its name."""
    keys = {one.value for one in walk(value.node) if isinstance(one, ast.Constant)}
    return {span for one in find_columns(program) if one.key in keys and (span := _span(one)) is not None}


def _span(column: Column) -> tuple[int, int] | None:
    """The lowest and highest number of a column; None where it holds anything else."""
    texts = [one.text for one in column.cells]
    numbers = [int(one) for one in texts if one.isdecimal()]
    return (min(numbers), max(numbers)) if numbers and len(numbers) == len(texts) else None


def _is_one_beyond(loss: Loss, context: Context) -> bool:
    """Whether the label that was refused is the number of classes that the live program's logits had.

    Where there is a label 0 too they count from 0, and where a name in the data is a stranger to as many others, it is that one's.
    """
    top, logits = context.fields.get("target"), seen(loss.prediction, context)
    live = context.incident.fact("live_refused_index")
    if top is None or (live is not None and live.value.endswith(" from 0")):
        return False
    classes = logits.shape[1] if logits is not None and len(logits.shape) > 1 else None
    if classes != int(str(top)) and (live is None or live.value != f"{top} of {top}, from 1"):
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
