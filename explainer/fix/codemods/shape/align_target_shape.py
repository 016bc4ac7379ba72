"""A prediction gets the shape of its target: `model(x)` of shape [n, 1] becomes `model(x).squeeze(-1)` for targets of [n].

By the shapes that the message or warning names, or by the comparison of n with n values that the tracer saw. A language model's predictions are cut to the targets that were shifted by
one; a target of shape [n, 1] for class indices loses its last dimension; images that meet rows of as many values are
flattened. Other differences are left alone.
"""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

from explainer.fix.clue.blame import crash_frames, is_file
from explainer.fix.clue.seen import seen
from explainer.fix.codemod import Context, Proposal, culprit_of
from explainer.fix.text.rewrite import put_method
from explainer.model.trace import CROSSED, TracedLine
from explainer.source.file import SourceFile
from explainer.source.loss.loss import Loss, find_losses, loss_at
from explainer.source.place import place_of
from explainer.source.tree import walk
from explainer.source.value.binding import Value
from explainer.source.value.lineage import Scope, scope_of
from explainer.source.value.resolve import resolver_of
from explainer.source.value.sign import definition_of

_SHAPE = re.compile(r"\d+")
_SUBTRACTIONS = ("sub", "__sub__", "subtract")
_PRODUCTS = ("mul", "__mul__", "__rmul__", "multiply")
_FLATTENS = ("view", "reshape", "flatten")
_SQUEEZED = "a dimension of 1 holds nothing"


def propose(context: Context) -> Iterator[Proposal]:
    """An edit for each loss on the lines that the traceback or the warning names."""
    if not context.has_failed:
        return
    predicted, target = _shape(context, "input_shape"), _shape(context, "target_shape")
    said = context.incident.exceptions[-1].message if context.incident.exceptions else ""
    yield from _crossed(context)
    for loss in find_losses(context.program):
        near = _nearness(loss, context)
        if near is None:
            continue
        if predicted and target and predicted == [*target, 1]:
            yield from _squeezed(loss, loss.prediction, "[n, 1] values meet targets of shape [n]", near)
        elif predicted and target and [*predicted, 1] == target:
            yield from _squeezed(loss, loss.target, "targets of shape [n, 1] meet values of shape [n]", near)
        elif not loss.takes_classes and _is_flat(predicted, target):
            yield from _flattened(
                loss, loss.target, f"{predicted[1]} values a sample meet targets of {target[1:]}", near
            )
        elif not loss.takes_classes and _is_flat(target, predicted):
            yield from _flattened(
                loss, loss.prediction, f"targets of {target[1]} values meet {predicted[1:]} a sample", near
            )
        elif loss.takes_classes and len(target) == 2 and target[-1] == 1:
            yield from _squeezed(loss, loss.target, "class indices stand in a column", near)
        elif loss.takes_classes and ("multi-target" in said or "spatial targets" in said):
            yield from _one_class_each(loss, context, near)
        else:
            yield from _shifted(loss, context, near)
            yield from _shifted_back(loss, context, near)


def _is_flat(flat: list[int], other: list[int]) -> bool:
    """Whether a shape of rows holds as many values a sample as another of more axes: [6, 64] of [6, 1, 8, 8]."""
    return len(flat) == 2 < len(other) and flat == [other[0], math.prod(other[1:])]


def _flattened(loss: Loss, node: ast.expr, why: str, near: float) -> Iterator[Proposal]:
    if isinstance(node, ast.Call) and getattr(node.func, "attr", "") == "flatten":
        return
    yield Proposal(
        edits=(put_method(loss.file, node, ".flatten(1)"),),
        culprit=culprit_of(loss.file, loss.call, why),
        belief=near,
        because="the same values in the same order, each beside its own",
    )


def _one_class_each(loss: Loss, context: Context, near: float) -> Iterator[Proposal]:
    """Class indices with a dimension too many lose it where it is 1; one-hot rows become the indices of their ones."""
    target, prediction = seen(loss.target, context), seen(loss.prediction, context)
    if target is None:
        why, given = "the targets have a dimension too many", str(context.fields.get("target_dimensions", ""))
        shape = [int(one) for one in _SHAPE.findall(given)] if "[" in given else []
        if len(shape) < 2 or shape[1] == 1:
            because = "if the targets' dimension 1 holds nothing; of one-hot targets take `.argmax(1)`"
            yield from _squeezed(loss, loss.target, why, near, dimension=1, unsure=because)
    elif len(target.shape) > 1 and target.shape[1] == 1:
        yield from _squeezed(
            loss, loss.target, f"targets of shape {list(target.shape)} name one class each", near, dimension=1
        )
    elif target.is_integer and prediction is not None and target.shape == prediction.shape:
        yield Proposal(
            edits=(put_method(loss.file, loss.target, ".argmax(dim=1)"),),
            culprit=culprit_of(loss.file, loss.call, "takes class indices, and is given rows of the logits' own shape"),
            belief=near, applicability="unsafe", because="if each row holds a single 1",
        )  # fmt: skip


def _crossed(context: Context) -> Iterator[Proposal]:
    """The difference that the tracer saw between [n] and [n, 1]: the column loses its dimension, there and beside it."""
    for one in context.incident.traced:
        found = list(_differences(one, context)) if one.kind == CROSSED else []
        if not found or len({_text(each) for each in found}) > 1:
            continue
        first = found[0]
        is_first = "[n, 1] first" in one.says
        column, row = first.sides if is_first else first.sides[::-1]
        scope = scope_of(first.node, first.file, context.program)
        others = [each for each in _inside(scope, first.file, context) if _text(each) == _text(first)]
        columns = {each.sides[0 if is_first else 1]: None for each in (*found, *others)}
        if isinstance(column, (ast.Starred, ast.Constant)) or ast.unparse(column) == ast.unparse(row):
            continue
        # What the products meet next has the form that they are meant to have.
        is_lifted = one.says.endswith("meets a column")
        rows = {each.sides[1 if is_first else 0]: None for each in found}
        yield Proposal(
            edits=tuple(
                put_method(first.file, each, ".unsqueeze(-1)" if is_lifted else ".squeeze(-1)")
                for each in (rows if is_lifted else columns)
            ),
            culprit=culprit_of(first.file, first.node, "compares each of n values with each of n others"),
            belief=2.0,
            because=_SQUEEZED,
        )


@dataclass(frozen=True, slots=True)
class _Difference:
    """Two values that are compared element by element: by `-`, or by a loss."""

    file: SourceFile
    node: ast.expr
    sides: tuple[ast.expr, ast.expr]


def _text(one: _Difference) -> tuple[str, str]:
    return ast.unparse(one.sides[0]), ast.unparse(one.sides[1])


def _differences(one: TracedLine, context: Context) -> Iterator[_Difference]:
    """What on a traced line ran the operation that was seen: a subtraction, a loss, or the one call that may be one."""
    path = place_of(one.file, context.program.root)
    file = context.program.files.get(path) if path else None
    statement = context.program.at(path, one.line) if path else None
    if file is None or statement is None:
        return
    nodes = [node for node in walk(statement) if isinstance(node, ast.expr)]
    here = [node for node in nodes if node.lineno == one.line] or nodes
    found = [each for node in here if (each := _difference(node, file, one.operation, context)) is not None]
    if not found and one.operation.endswith("_loss"):
        calls = [each for node in here if (each := _unknown_call(node, file, context)) is not None]
        inner = {node for each in calls for side in each.sides for node in walk(side)}
        outer = [each for each in calls if each.node not in inner]
        found = outer if len(outer) == 1 else []
    yield from found


def _difference(node: ast.expr, file: SourceFile, operation: str, context: Context) -> _Difference | None:
    if isinstance(node, ast.BinOp):
        meant = _PRODUCTS if isinstance(node.op, ast.Mult) else _SUBTRACTIONS if isinstance(node.op, ast.Sub) else ()
        is_it = operation in meant and not _has_constant(node)
        return _Difference(file, node, (node.left, node.right)) if is_it else None
    if not isinstance(node, ast.Call):
        return None
    loss = loss_at(node, file, context.program)
    if loss is not None:
        is_it = loss.name.replace("Loss", "_loss").replace("_", "").lower() == operation.replace("_", "")
        return _Difference(file, node, (loss.prediction, loss.target)) if is_it else None
    alike = next((names for names in (_SUBTRACTIONS, _PRODUCTS) if operation in names), (operation,))
    if not isinstance(node.func, ast.Attribute) or node.func.attr not in alike:
        return None
    is_method = len(node.args) == 1 and alike != (operation,)
    given = [node.func.value, *node.args] if is_method else node.args
    return _Difference(file, node, (given[0], given[1])) if len(given) == 2 else None


def _unknown_call(node: ast.expr, file: SourceFile, context: Context) -> _Difference | None:
    """A call of what the program does not define, with a prediction and a target: a criterion that was chosen by a setting."""
    if not isinstance(node, ast.Call) or loss_at(node, file, context.program) is not None:
        return None
    value, resolver = Value(node, file), resolver_of(context.program)
    if resolver.function_of(node, value) is not None or resolver.classes_of(replace(value, node=node.func)):
        return None
    given = {one.arg: one.value for one in node.keywords}
    sides = [*node.args, *(given[name] for name in ("input", "target") if name in given)]
    is_pair = len(sides) == 2 and not any(isinstance(one, ast.Starred) for one in sides)
    return _Difference(file, node, (sides[0], sides[1])) if is_pair else None


def _inside(scope: Scope | None, file: SourceFile, context: Context) -> Iterator[_Difference]:
    """The subtractions and losses of a function, not those of a function in it."""
    for node in walk(scope) if scope is not None else ():
        if isinstance(node, (ast.BinOp, ast.Call)) and scope_of(node, file, context.program) is scope:
            loss = loss_at(node, file, context.program) if isinstance(node, ast.Call) else None
            if loss is not None:
                yield _Difference(file, loss.call, (loss.prediction, loss.target))
            elif isinstance(node, ast.BinOp) and (found := _difference(node, file, "sub", context)) is not None:
                yield found


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


def _squeezed(
    loss: Loss, node: ast.expr, why: str, near: float, *, dimension: int = -1, unsure: str | None = None
) -> Iterator[Proposal]:
    """The squeeze, where the value has not been squeezed already."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in ("squeeze", "flatten"):
        return
    yield Proposal(
        edits=(put_method(loss.file, node, f".squeeze({dimension})"),),
        culprit=culprit_of(loss.file, loss.call, why),
        belief=near,
        applicability="unsafe" if unsure else None,
        because=unsure or _SQUEEZED,
    )


def _shifted(loss: Loss, context: Context, near: float) -> Iterator[Proposal]:
    """`ids[:, 1:]` as targets: the predictions lose their last position."""
    left, right = (str(context.fields.get(name, "")) for name in ("left", "right"))
    target, source = _base(loss.target), _base(loss.prediction)
    if not left.isdigit() or not right.isdigit() or int(left) <= int(right) or source is None or target is None:
        return
    shifted = target if isinstance(target, ast.Subscript) else definition_of(target, loss.file, context.program)
    shifted = _base(shifted) if shifted is not None else None
    if not isinstance(shifted, ast.Subscript) or "1:" not in loss.file.segment(shifted.slice).replace(" ", ""):
        return
    made = definition_of(source, loss.file, context.program) if isinstance(source, ast.Name) else source
    made = _unflattened(made) if made is not None else None
    if made is None or isinstance(made, ast.Subscript):
        return
    yield Proposal(
        edits=(put_method(loss.file, made, _viewed("[:, :-1]", made, loss.file)),),
        culprit=culprit_of(
            loss.file, loss.file.statement(made), "predicts a token for the last position, which has no target"
        ),
        belief=near,
    )


def _shifted_back(loss: Loss, context: Context, near: float) -> Iterator[Proposal]:
    """`logits[:, :-1]` as predictions: the targets lose their first position."""
    left, right = (str(context.fields.get(name, "")) for name in ("left", "right"))
    target, source = _base(loss.target), _base(loss.prediction)
    if not left.isdigit() or not right.isdigit() or int(left) >= int(right) or source is None or target is None:
        return
    cut = definition_of(source, loss.file, context.program) if isinstance(source, ast.Name) else source
    while isinstance(cut, ast.Call) and isinstance(cut.func, ast.Attribute):
        cut = cut.func.value
    whole = definition_of(target, loss.file, context.program) if isinstance(target, ast.Name) else target
    flat = _unflattened(whole) if whole is not None else None
    if flat is not None and flat is not whole:
        target, whole = flat, definition_of(flat, loss.file, context.program) if isinstance(flat, ast.Name) else flat
    if not isinstance(cut, ast.Subscript) or isinstance(target, ast.Subscript) or _is_cut(whole):
        return
    parts = loss.file.segment(cut.slice).replace(" ", "").strip("()").split(",")
    if parts[-2:] != [":-1", ":"] and parts != [":", ":-1"]:
        return
    yield Proposal(
        edits=(put_method(loss.file, target, _viewed("[..., 1:]", target, loss.file)),),
        culprit=culprit_of(
            loss.file,
            target,
            "keeps the first token, which no prediction is for: the predictions lack the last position",
        ),
        belief=near,
    )


def _unflattened(node: ast.expr) -> ast.expr:
    """What is laid out in rows for a loss: `logits` of `logits.view(-1, n)`; the node itself where it is not."""
    return (_base(node) or node) if isinstance(node, ast.Call) and getattr(node.func, "attr", "") in _FLATTENS else node


def _viewed(cut: str, node: ast.expr, file: SourceFile) -> str:
    """A cut, made contiguous where a view follows."""
    above = file.parents.get(node)
    return f"{cut}.contiguous()" if isinstance(above, ast.Attribute) and above.attr == "view" else cut


def _is_cut(node: ast.expr | None) -> bool:
    """Whether a value is a part of another: `ids[:, 1:]`."""
    while isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        node = node.func.value
    return isinstance(node, ast.Subscript) and isinstance(node.slice, (ast.Slice, ast.Tuple))


def _base(node: ast.expr) -> ast.expr | None:
    """What is reshaped for the loss: `logits` of `logits.view(-1, n)`."""
    while (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr in (*_FLATTENS, "contiguous")
    ):
        node = node.func.value
    return node if isinstance(node, (ast.Name, ast.Call, ast.Subscript)) else None
