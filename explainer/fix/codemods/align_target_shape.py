"""A prediction gets the shape of its target: `model(x)` of shape [n, 1] becomes `model(x).squeeze(-1)` for targets of [n].

By the shapes that the message or warning names. A language model's predictions are cut to the targets that were shifted by
one; a target of shape [n, 1] for class indices loses its last dimension. Other differences are left alone.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from explainer.fix.blame import crash_frames, is_file
from explainer.fix.codemod import Context, Proposal, culprit_of
from explainer.fix.rewrite import put_method
from explainer.model.trace import CROSSED, TracedLine
from explainer.source.file import SourceFile
from explainer.source.loss import Loss, find_losses
from explainer.source.name import dotted_name
from explainer.source.place import place_of
from explainer.source.sign import definition_of

_SHAPE = re.compile(r"\d+")
_SQUEEZED = "a trailing dimension of 1 holds nothing"


def propose(context: Context) -> Iterator[Proposal]:
    """An edit for each loss on the lines that the traceback or the warning names."""
    if not context.has_failed:
        return
    predicted, target = _shape(context, "input_shape"), _shape(context, "target_shape")
    yield from _crossed(context)
    for loss in find_losses(context.program):
        near = _nearness(loss, context)
        if near is None:
            continue
        if predicted and target and predicted == [*target, 1]:
            yield from _squeezed(loss, loss.prediction, "[n, 1] values meet targets of shape [n]", near)
        elif predicted and target and [*predicted, 1] == target:
            yield from _squeezed(loss, loss.target, "targets of shape [n, 1] meet values of shape [n]", near)
        elif loss.takes_classes and len(target) == 2 and target[-1] == 1:
            yield from _squeezed(loss, loss.target, "class indices stand in a column", near)
        else:
            yield from _shifted(loss, context, near)


def _crossed(context: Context) -> Iterator[Proposal]:
    """The difference that the tracer saw between [n] and [n, 1]: the column loses its dimension."""
    for one in context.incident.traced:
        if one.kind != CROSSED:
            continue
        for file, node in _differences(one, context):
            left, right = (node.left, node.right) if isinstance(node, ast.BinOp) else node.args[:2]
            column = left if "[n, 1] first" in one.says else right
            if isinstance(column, (ast.Name, ast.Attribute, ast.Call, ast.Subscript)):
                yield Proposal(
                    edits=(put_method(file, column, ".squeeze(-1)"),),
                    culprit=culprit_of(file, node, "compares each of n values with each of n others"),
                    belief=2.0,
                    because=_SQUEEZED,
                )


def _differences(one: TracedLine, context: Context) -> list[tuple[SourceFile, ast.BinOp | ast.Call]]:
    """The one subtraction, or call of a loss, on a traced line; none where there are several."""
    path = place_of(one.file, context.program.root)
    file = context.program.files.get(path) if path else None
    if file is None:
        return []
    found = [
        node
        for node in file.walk()
        if getattr(node, "lineno", None) == one.line
        and (
            (isinstance(node, ast.BinOp) and isinstance(node.op, ast.Sub) and not _has_constant(node))
            or (
                isinstance(node, ast.Call)
                and len(node.args) >= 2
                and (dotted_name(node.func) or "").endswith(f".{one.operation}")
            )
        )
    ]
    return [(file, node) for node in found] if len(found) == 1 else []


def _has_constant(node: ast.BinOp) -> bool:
    return isinstance(node.left, ast.Constant) or isinstance(node.right, ast.Constant)


def _shape(context: Context, name: str) -> list[int]:
    return [int(one) for one in _SHAPE.findall(str(context.fields.get(name, "")))]


def _nearness(loss: Loss, context: Context) -> float | None:
    """How near a loss is to the line that is named; None where another one is."""
    lines = range(loss.call.lineno, (loss.call.end_lineno or loss.call.lineno) + 1)
    if any(line in crash_frames(loss.file, context) for line in lines):
        return 1.5
    warned = [one for one in context.incident.warnings if "target size" in one.message and one.file]
    if any(is_file(one.file or "", loss.file) and one.line in lines for one in warned):
        return 1.5
    return 0.5 if warned and not context.incident.exceptions else None


def _squeezed(loss: Loss, node: ast.expr, why: str, near: float) -> Iterator[Proposal]:
    """The squeeze, where the value has not been squeezed already."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in ("squeeze", "flatten"):
        return
    yield Proposal(
        edits=(put_method(loss.file, node, ".squeeze(-1)"),),
        culprit=culprit_of(loss.file, loss.call, why),
        belief=near,
        because=_SQUEEZED,
    )


def _shifted(loss: Loss, context: Context, near: float) -> Iterator[Proposal]:
    """`ids[:, 1:]` as targets: the predictions lose their last position."""
    left, right = (str(context.fields.get(name, "")) for name in ("left", "right"))
    target, source = _base(loss.target), _base(loss.prediction)
    if not left.isdigit() or not right.isdigit() or int(left) <= int(right) or source is None or target is None:
        return
    shifted = target if isinstance(target, ast.Subscript) else definition_of(target, loss.file, context.program)
    if not isinstance(shifted, ast.Subscript) or "1:" not in loss.file.segment(shifted.slice).replace(" ", ""):
        return
    made = definition_of(source, loss.file, context.program) if isinstance(source, ast.Name) else source
    if made is None or isinstance(made, ast.Subscript):
        return
    yield Proposal(
        edits=(put_method(loss.file, made, "[:, :-1]"),),
        culprit=culprit_of(
            loss.file, loss.file.statement(made), "predicts a token for the last position, which has no target"
        ),
        belief=near,
    )


def _base(node: ast.expr) -> ast.expr | None:
    """What is reshaped for the loss: `logits` of `logits.view(-1, n)`."""
    while (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr in ("view", "reshape", "flatten", "contiguous")
    ):
        node = node.func.value
    return node if isinstance(node, (ast.Name, ast.Call, ast.Subscript)) else None
