"""`q.gather(1, action.unsqueeze(1)).squeeze(1)` for `q.gather(1, action)`: the index has the axes of what it picks from.

Of token log-probabilities too: `logp.gather(-1, labels.unsqueeze(-1)).squeeze(-1)`; of `rows.scatter_(1, labels.unsqueeze(1), 1.0)`.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from explainer.fix.clue.crash import message_of, raised_at
from explainer.fix.clue.seen import seen
from explainer.fix.clue.seen_shape import seen_shape
from explainer.fix.codemod import Context, Proposal, culprit_of, edit_of
from explainer.fix.text.rewrite import operand, put_method
from explainer.source.file import SourceFile
from explainer.source.name import dotted_name
from explainer.source.program import Program
from explainer.source.tree import walk
from explainer.source.value.number import number_of

_FEWER = "Index tensor must have the same number of dimensions as input tensor"
_FEWER_WRITTEN = "Index tensor must have the same number of dimensions as self tensor"
_WRITES = frozenset({"scatter_", "scatter", "scatter_add_", "scatter_add"})
_DROPS = frozenset({"squeeze", "flatten", "view", "reshape"})


def propose(context: Context) -> Iterator[Proposal]:
    """An edit for each `gather` of the line that raised."""
    message = message_of(context)
    for file, statement in list(raised_at(context))[:1]:
        for call in (one for one in walk(statement) if isinstance(one, ast.Call)):
            if _FEWER_WRITTEN in message:
                yield from _written(call, file, context)
            told = _told(call, file, context.program)
            if told is not None and _FEWER in message:
                yield from _of_more_axes(call, told, statement, file, context)


def _written(call: ast.Call, file: SourceFile, context: Context) -> Iterator[Proposal]:
    """`rows.scatter_(1, labels, 1.0)`: the index, and the values that have its axes, get the axis that they are written along."""
    if not isinstance(call.func, ast.Attribute) or call.func.attr not in _WRITES or len(call.args) < 2:
        return
    axis, index = call.args[:2]
    tensor, rows = seen(index, context), seen(call.func.value, context)
    number = number_of(axis, context.program.names(file))
    if (
        tensor is None
        or number not in (len(tensor.shape), -1)
        or (rows is not None and len(rows.shape) != len(tensor.shape) + 1)
    ):
        return
    alike = [one for one in call.args[2:] if (told := seen(one, context)) is not None and told.shape == tensor.shape]
    why = f"writes by an index of {list(tensor.shape)}, which lacks the axis that it is written along"
    yield Proposal(
        edits=tuple(put_method(file, one, f".unsqueeze({file.segment(axis)})") for one in (index, *alike)),
        culprit=culprit_of(file, call, why),
        belief=2.0,
        title=f"Give the index the axis along which it is written: `{file.segment(index)}.unsqueeze({file.segment(axis)})`",
    )


def _told(call: ast.Call, file: SourceFile, program: Program) -> tuple[ast.expr, ast.expr, ast.expr] | None:
    """What a `gather` picks from, along which axis, by which index."""
    if not isinstance(call.func, ast.Attribute) or call.func.attr != "gather":
        return None
    given = [*call.args, *(one.value for one in call.keywords if one.arg in ("dim", "index"))]
    if not program.names(file).is_call(call, "torch.gather"):
        given = [call.func.value, *given]
    return (given[0], given[1], given[2]) if len(given) == 3 else None


def _of_more_axes(
    call: ast.Call, told: tuple[ast.expr, ast.expr, ast.expr], statement: ast.stmt, file: SourceFile, context: Context
) -> Iterator[Proposal]:
    """An index of one axis less than what it picks from, along the last of these."""
    source, axis, index = told
    shape, whole = seen_shape(index, file, context), seen_shape(source, file, context)
    number = number_of(axis, context.program.names(file))
    if shape is None or number not in (len(shape), -1) or (whole is not None and len(whole) != len(shape) + 1):
        return
    text = file.segment(axis)
    picked = [put_method(file, index, f".unsqueeze({text})")]
    above = file.parents.get(call)
    is_dropped = isinstance(above, ast.Attribute) and above.attr in _DROPS
    if (
        not is_dropped
        and not _is_dropped_later(call, statement, file)
        and not _meets_columns(call, statement, len(shape) + 1, file, context)
    ):
        inside = f"{operand(file, index)}.unsqueeze({text})"
        whole_text = file.segment(call)
        start = file.span(index)[0] - file.span(call)[0]
        end = file.span(index)[1] - file.span(call)[0]
        picked = [edit_of(file, call, f"{whole_text[:start]}{inside}{whole_text[end:]}.squeeze({text})")]
    yield Proposal(
        edits=tuple(picked),
        culprit=culprit_of(
            file, call, f"picks by an index of {len(shape)} axes, which lacks the one that it picks along"
        ),
        belief=2.0,
    )


def _is_dropped_later(call: ast.Call, statement: ast.stmt, file: SourceFile) -> bool:
    """Whether what is picked gets a name, and loses an axis where that is read: `chosen.squeeze(1)`."""
    target = statement.targets[0] if isinstance(statement, ast.Assign) and statement.value is call else None
    name = dotted_name(target) if target is not None else None
    return name is not None and any(
        isinstance(one, ast.Attribute) and one.attr == "squeeze" and dotted_name(one.value) == name
        for one in walk(file.enclosing(statement, ast.FunctionDef, ast.Module) or statement)
    )


def _meets_columns(call: ast.Call, statement: ast.stmt, rank: int, file: SourceFile, context: Context) -> bool:
    """Whether what is picked is combined with a tensor of as many axes as the index is to have: then it keeps its own."""
    target = statement.targets[0] if isinstance(statement, ast.Assign) and statement.value is call else None
    name = dotted_name(target) if target is not None else None
    function = context.program.names(file).function_of(statement) or file.tree
    for one in walk(function) if name is not None and function is not None else ():
        sides = (one.left, one.right) if isinstance(one, ast.BinOp) else one.args if isinstance(one, ast.Call) else ()
        if any(dotted_name(side) == name for side in sides):
            others = [seen(side, context) for side in sides if dotted_name(side) != name]
            if any(other is not None and len(other.shape) == rank and other.shape[-1] == 1 for other in others):
                return True
    return False
