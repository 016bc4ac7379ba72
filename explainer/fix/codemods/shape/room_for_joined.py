"""`nn.Parameter(torch.randn(1, patches + 1, dim))` for `patches`: a table of positions has room for the token that is joined.

Only where the sum of the joined tokens and what the module keeps was refused for as many as one joined part has.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from explainer.fix.clue.crash import message_of, raised_at
from explainer.fix.clue.seen import seen
from explainer.fix.clue.seen_shape import REFUSED, seen_shape
from explainer.fix.codemod import Context, Proposal, culprit_of, edit_of
from explainer.fix.text.rewrite import operand
from explainer.model.patch import Edit
from explainer.source.file import SourceFile
from explainer.source.graph.operation import broadcast_sides
from explainer.source.name import dotted_name
from explainer.source.tree import walk
from explainer.source.value.binding import Value
from explainer.source.value.number import number_of
from explainer.source.value.resolve import resolver_of

_JOINS = ("torch.cat", "torch.concat", "torch.concatenate")
_MAKERS = tuple(f"torch.{name}" for name in ("zeros", "ones", "randn", "rand", "empty"))


def propose(context: Context) -> Iterator[Proposal]:
    """An edit for the table on the line that raised."""
    refused = REFUSED.search(message_of(context))
    if refused is None:
        return
    sizes, axis = {int(refused[1]), int(refused[2])}, int(refused[3])
    more = max(sizes) - min(sizes)
    for file, statement in list(raised_at(context))[:1]:
        for node in walk(statement):
            sides = broadcast_sides(node)
            for table, other in (sides, sides[::-1]) if sides is not None else ():
                kept = seen(table, context)
                is_short = kept is not None and axis < len(kept.shape) and kept.shape[axis] == min(sizes)
                if not is_short or not (dotted_name(table) or "").startswith("self."):
                    continue
                edit = (
                    _roomier(table, axis, more, file, context) if _is_joined(other, axis, more, file, context) else None
                )
                if edit is not None:
                    yield Proposal(
                        edits=(edit[1],),
                        culprit=culprit_of(
                            edit[0], edit[2], f"has no room for the {more} that are joined to what it is added to"
                        ),
                        belief=2.2,
                    )


def _is_joined(node: ast.expr, axis: int, more: int, file: SourceFile, context: Context) -> bool:
    """Whether an expression is, or a name is bound to, tensors that are joined along an axis, one of them of some size there."""
    behind = [one.node for one in resolver_of(context.program).behind(Value(node, file))]
    for one in (node, *behind):
        if not isinstance(one, ast.Call) or not context.program.names(file).is_call(one, *_JOINS) or not one.args:
            continue
        along = [*one.args[1:2], *(given.value for given in one.keywords if given.arg in ("dim", "axis"))]
        parts = one.args[0].elts if isinstance(one.args[0], (ast.List, ast.Tuple)) else []
        shapes = [seen_shape(part, file, context) for part in parts]
        is_along = bool(along) and number_of(along[0], context.program.names(file)) == axis
        if is_along and any(shape is not None and len(shape) > axis and shape[axis] == more for shape in shapes):
            return True
    return False


def _roomier(
    table: ast.expr, axis: int, more: int, file: SourceFile, context: Context
) -> tuple[SourceFile, Edit, ast.expr] | None:
    """The edit of the size by which a table is made, with its file and what is edited; None where it is not read."""
    made = resolver_of(context.program).constructors_of(Value(table, file))
    if len(made) != 1:
        return None
    where, names = made[0].file, context.program.names(made[0].file)
    makers = [one for one in walk(made[0].node) if isinstance(one, ast.Call) and names.is_call(one, *_MAKERS)]
    if len(makers) != 1:
        return None
    sizes = makers[0].args
    if len(sizes) == 1 and isinstance(sizes[0], (ast.Tuple, ast.List)):
        sizes = sizes[0].elts
    if axis >= len(sizes) or any(isinstance(one, ast.Starred) for one in sizes):
        return None
    size = sizes[axis]
    is_sum = isinstance(size, ast.BinOp) and isinstance(size.op, ast.Add)
    text = (
        where.segment(size)
        if is_sum or (isinstance(size, ast.BinOp) and isinstance(size.op, ast.Mult))
        else operand(where, size)
    )
    new = str(size.value + more) if isinstance(size, ast.Constant) and type(size.value) is int else f"{text} + {more}"
    return where, edit_of(where, size, new), size
