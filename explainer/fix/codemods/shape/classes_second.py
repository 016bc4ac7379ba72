"""`cross_entropy(logits, labels)` becomes `cross_entropy(logits.transpose(1, 2), labels)` for a sequence of predictions.

The criterion reads dimension 1 as the classes. Of logits (batch, length, classes) and labels (batch, length) it says "Expected
target size [batch, classes], got [batch, length]". Logits that come time first, (length, batch, classes), are permuted for the same labels:
flattened with them each would meet the label of another sample. Where one of the two is flattened, the other one is as well.
"""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Iterator

from explainer.fix.clue.crash import ROWS, message_of, raised_at
from explainer.fix.clue.seen import seen
from explainer.fix.codemod import Context, Proposal, culprit_of
from explainer.fix.text.rewrite import put_method
from explainer.source.file import SourceFile
from explainer.source.program import Program
from explainer.source.tree import walk
from explainer.source.value.binding import Value
from explainer.source.value.integer import integer_of
from explainer.source.value.resolve import resolver_of

_FUNCTIONS = ("torch.nn.functional.cross_entropy", "torch.nn.functional.nll_loss")
_CRITERIA = ("torch.nn.CrossEntropyLoss", "torch.nn.NLLLoss")
_FLAT = frozenset({"flatten", "view", "reshape", "contiguous", "ravel", "long"})
_FLAT_ALREADY = "right where both have the samples first: what is flat already may have had its steps first"
_CUT = 2  # a sequence that is shorter by so much was cut at an end, and is no other dimension


def propose(context: Context) -> Iterator[Proposal]:
    """An edit for the criterion on the line that raised."""
    yield from _time_first(context)
    yield from _flattened(context)
    wanted, given = (_shape(context.fields.get(name)) for name in ("wanted_shape", "target_shape"))
    if len(wanted) != 2 or len(given) != 2 or wanted[0] != given[0]:
        return
    for file, statement in list(raised_at(context))[:1]:
        calls = [node for node in walk(statement) if _is_criterion(node, file, context.program)]
        for call in calls if len(calls) == 1 else ():
            assert isinstance(call, ast.Call)
            prediction = seen(call.args[0], context)
            is_seen = prediction is not None and prediction.shape == (*given, prediction.shape[-1])
            if not is_seen and abs(wanted[1] - given[1]) <= _CUT:
                continue
            is_shown = is_seen or _has_layer_of(wanted[1], context.program)
            yield Proposal(
                edits=(put_method(file, call.args[0], ".transpose(1, 2)"),),
                culprit=culprit_of(file, call, f"reads dimension 1 as the classes, of which there are {wanted[1]}"),
                belief=2.0 if is_shown else 1.0,
                applicability=None if is_shown else "unsafe",
                because=None
                if is_shown
                else f"right where {wanted[1]} is the number of classes, and not another length",
            )


def _time_first(context: Context) -> Iterator[Proposal]:
    """Logits (length, batch, classes) against labels (batch, length), as the live program had them."""
    for file, statement in list(raised_at(context))[:1]:
        calls = [node for node in walk(statement) if _is_criterion(node, file, context.program)]
        for call in calls if len(calls) == 1 else ():
            assert isinstance(call, ast.Call)
            named = next((one.value for one in call.keywords if one.arg == "target"), None)
            target = call.args[1] if len(call.args) > 1 else named
            scores, labels = seen(call.args[0], context), seen(target, context) if target is not None else None
            if scores is None or labels is None or len(scores.shape) != 3 or len(labels.shape) != 2:
                continue
            if scores.shape[:2] == labels.shape[::-1] and labels.shape[0] != labels.shape[1]:
                yield Proposal(
                    edits=(put_method(file, call.args[0], ".permute(1, 2, 0)"),),
                    culprit=culprit_of(file, call, "reads the batch first, then the classes, and gets time first"),
                    belief=2.5,
                    title="Put the batch first and the classes second: `F.cross_entropy(logits.permute(1, 2, 0), target)`",
                )


def _flattened(context: Context) -> Iterator[Proposal]:
    """Logits (batch, length, classes) against labels that are flattened, or flattened logits against labels (batch, length)."""
    rows = ROWS.search(message_of(context))
    for file, statement in list(raised_at(context))[:1] if rows is not None else ():
        calls = [node for node in walk(statement) if _is_criterion(node, file, context.program)]
        for call in calls if len(calls) == 1 else ():
            assert isinstance(call, ast.Call)
            named = next((one.value for one in call.keywords if one.arg == "target"), None)
            target = call.args[1] if len(call.args) > 1 else named
            scores, labels = seen(call.args[0], context), seen(_whole(target), context) if target is not None else None
            if target is None or rows is None:
                continue
            have, want = int(rows[1]), int(rows[2])
            steps = scores.shape[1] if scores is not None and len(scores.shape) == 3 and scores.shape[0] == have else 0
            rows_of_labels = labels.shape[0] if labels is not None and len(labels.shape) > 1 else None
            if steps and want == have * steps and rows_of_labels in (None, have):
                edits, is_known = (put_method(file, call.args[0], ".flatten(0, 1)"),), rows_of_labels == have
            elif rows_of_labels == want and labels is not None and math.prod(labels.shape) == have:
                edits, is_known = (put_method(file, target, ".flatten()"),), False
            else:
                continue
            yield Proposal(
                edits=edits,
                culprit=culprit_of(file, call, "compares rows for each step with what has a row for each sample"),
                belief=2.5,
                applicability=None if is_known else "unsafe",
                because=None if is_known else _FLAT_ALREADY,
                title="Flatten both sides of the loss: `F.cross_entropy(logits.flatten(0, 1), target.flatten())`",
            )


def _whole(target: ast.expr) -> ast.expr:
    """What a target is a part of, or was made flat of: `record` of `record[:, 1:].flatten()`."""
    while True:
        if isinstance(target, ast.Subscript):
            target = target.value
        elif isinstance(target, ast.Call) and isinstance(target.func, ast.Attribute) and target.func.attr in _FLAT:
            target = target.func.value
        else:
            return target


def _shape(field: object) -> tuple[int, ...]:
    return tuple(int(size) for size in re.findall(r"\d+", str(field or "")))


def _is_criterion(node: ast.AST, file: SourceFile, program: Program) -> bool:
    if not isinstance(node, ast.Call) or not node.args or isinstance(node.args[0], ast.Starred):
        return False
    if program.names(file).is_call(node, *_FUNCTIONS):
        return True
    made = [one for one in resolver_of(program).constructors_of(Value(node.func, file)) if one.node is not node]
    return bool(made) and all(program.names(one.file).is_call(one.node, *_CRITERIA) for one in made)


def _has_layer_of(size: int, program: Program) -> bool:
    """Whether a linear layer of the program, which puts its output last, gives so many values."""
    for file in program.parsed():
        for node in file.walk():
            if isinstance(node, ast.Call) and program.names(file).is_call(node, "torch.nn.Linear"):
                given = next((one.value for one in node.keywords if one.arg == "out_features"), None)
                given = given or (node.args[1] if len(node.args) > 1 else None)
                if given is not None and integer_of(Value(given, file), program) == size:
                    return True
    return False
