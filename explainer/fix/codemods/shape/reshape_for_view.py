"""`h.transpose(1, 2).reshape(n, -1)` for `.view(n, -1)`: what a transposition left out of order has no view of that shape.

Where the view names the tensor's own sizes in another order, `clips.view(b * t, c, h, w)` of `b, c, t, h, w = clips.shape`, the axes
are moved into that order first: a copy in the old one would mix them up. Where the leading axes of a loss's predictions fall
together, `out.view(-1, classes)` beside `y.view(-1)`, both sides must have these axes in one order, or each prediction meets another's
target: targets of the other order are transposed. Where the order does not show there is no edit.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from explainer.fix.clue.crash import message_of, raised_at
from explainer.fix.clue.seen import seen
from explainer.fix.clue.seen_shape import seen_shape
from explainer.fix.codemod import Context, Proposal, culprit_of
from explainer.fix.shape.view_order import order_of_view
from explainer.fix.text.rewrite import replace_whole
from explainer.model.patch import Edit
from explainer.source.file import SourceFile
from explainer.source.loss.loss import Loss, find_losses, unflattened
from explainer.source.name import dotted_name
from explainer.source.tree import walk
from explainer.source.value.binding import Value
from explainer.source.value.layout import batch_axis
from explainer.source.value.number import number_of

_REFUSED = "view size is not compatible with input tensor's size and stride"


def propose(context: Context) -> Iterator[Proposal]:
    """One edit for the views of the line that raised."""
    if _REFUSED not in message_of(context):
        return
    for file, statement in list(raised_at(context))[:1]:
        views = [
            one
            for one in walk(statement)
            if isinstance(one, ast.Call)
            and isinstance(one.func, ast.Attribute)
            and one.func.attr == "view"
            and one.args
        ]
        if not views:
            continue
        edits: dict[Edit, None] = {}
        turned = [_beside(one, statement, file, context) for one in views]
        for view, (is_known, edit) in zip(views, turned, strict=True):
            end = file.span(view.func)[1]
            edits[
                Edit(file=file.path, start=end - len("view"), end=end, new=f"{_moved(view, file, context)}reshape")
            ] = None
            if not is_known:
                return
            if edit is not None:
                edits[edit] = None
        outer = [one for _, one in turned if one is not None]
        kept = [one for one in edits if not any(two is not one and two.start <= one.start < two.end for two in outer)]
        yield Proposal(
            edits=tuple(kept),
            culprit=culprit_of(file, views[0].func, "asks for a view of values that do not lie in that order"),
            belief=2.0,
        )


def _moved(view: ast.Call, file: SourceFile, context: Context) -> str:
    """What moves the axes into the order in which a view names them; nothing where they lie in it, or have no names."""
    order = order_of_view(view, file, context.program)
    if order is None or order == tuple(range(len(order))):
        return ""
    apart = [at for at, axis in enumerate(order) if at != axis]
    return f"transpose({apart[0]}, {apart[1]})." if len(apart) == 2 else f"permute({', '.join(map(str, order))})."


def _beside(view: ast.Call, statement: ast.stmt, file: SourceFile, context: Context) -> tuple[bool, Edit | None]:
    """Whether a view of all leading axes as one meets targets of the same order, and the edit of those of the other one."""
    assert isinstance(view.func, ast.Attribute)
    shape = seen_shape(view.func.value, file, context)
    is_collapsed = number_of(view.args[0], context.program.names(file)) == -1 and len(view.args) == 2
    loss = _loss_of(view, statement, file, context)
    if loss is None or not is_collapsed or (shape is not None and len(shape) < 3):
        return True, None
    whole = unflattened(loss.target)
    target = seen(whole, context)
    axes = [batch_axis(Value(one, loss.file), context.program) for one in (view.func.value, whole)]
    if target is None or len(target.shape) != 2:
        return len(set(axes)) == 1 and axes[0] is not None, None
    leading = shape[:2] if shape is not None else (None, None)
    if leading == target.shape and leading[0] != leading[1]:
        return True, None
    if leading == target.shape[::-1] and leading[0] != leading[1]:
        text = f"{file.segment(whole)}.t().reshape(-1)"
        return True, replace_whole(loss.file, loss.target, text)
    return len(set(axes)) == 1 and axes[0] is not None, None


def _loss_of(view: ast.Call, statement: ast.stmt, file: SourceFile, context: Context) -> Loss | None:
    """The loss that takes a view for its prediction: in the same statement, or by the name that the view gets."""
    target = statement.targets[0] if isinstance(statement, ast.Assign) else None
    name = dotted_name(target)
    scope = context.program.names(file).function_of(statement)
    for loss in find_losses(context.program):
        inside = set(walk(loss.prediction))
        is_named = name is not None and name in {dotted_name(one) for one in inside}
        is_near = loss.file is file and context.program.names(file).function_of(loss.call) is scope
        if view in inside or (is_near and is_named):
            return loss
    return None
