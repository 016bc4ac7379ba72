"""`tokens + self.positions[:, : ids.size(1)]` for `tokens + self.positions`: a table of positions is as long as the longest text.

Only where the sum was refused for one axis, in which what the module keeps is longer than what it is added to.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from explainer.fix.clue.crash import message_of, raised_at
from explainer.fix.clue.seen import seen
from explainer.fix.clue.seen_shape import REFUSED, Shape, seen_shape
from explainer.fix.codemod import Context, Proposal, culprit_of, edit_of
from explainer.source.file import SourceFile
from explainer.source.graph.operation import broadcast_sides
from explainer.source.name import dotted_name
from explainer.source.tree import walk

_POSITIONS = re.compile(r"pos|pe\b|emb|encod|time|step|sin|cos|rot", re.IGNORECASE)
_BEGINNING = "right where what comes is a beginning of what the table is for"


def propose(context: Context) -> Iterator[Proposal]:
    """An edit for the table on the line that raised."""
    refused = REFUSED.search(message_of(context))
    sizes, at = ({int(refused[1]), int(refused[2])}, int(refused[3])) if refused is not None else (set[int](), 0)
    for file, statement in list(raised_at(context))[:1] if sizes else ():
        for node in walk(statement):
            sides = broadcast_sides(node)
            for table, other in (sides, sides[::-1]) if sides is not None else ():
                cut = _cut(table, other, (sizes, at), file, context)
                if cut is not None:
                    axis, length = cut
                    index = ", ".join([*[":"] * axis, f": {length}"])
                    yield Proposal(
                        edits=(edit_of(file, table, f"{file.segment(table)}[{index}]"),),
                        culprit=culprit_of(file, table, "is as long as the longest text, and this one is shorter"),
                        belief=2.4,
                        applicability=None if _POSITIONS.search(file.segment(table)) else "unsafe",
                        because=None if _POSITIONS.search(file.segment(table)) else _BEGINNING,
                    )


def _cut(
    table: ast.expr, other: ast.expr, refused: tuple[set[int], int], file: SourceFile, context: Context
) -> tuple[int, str] | None:
    """The axis in which a module's own table is longer than the other side, and the text of the length that it is to have."""
    kept = seen(table, context)
    shape = seen_shape(other, file, context)
    if (
        kept is None
        or shape is None
        or not (dotted_name(table) or "").startswith("self.")
        or len(kept.shape) > len(shape)
    ):
        return None
    start = len(shape) - len(kept.shape)
    longer = [at for at, size in enumerate(kept.shape) if size != 1 and _is_shorter(shape[start + at], size)]
    fits = all(
        size in (1, shape[start + at]) or shape[start + at] is None or at in longer
        for at, size in enumerate(kept.shape)
    )
    if (
        len(longer) != 1
        or not fits
        or refused != ({kept.shape[longer[0]], shape[start + longer[0]]}, start + longer[0])
    ):
        return None
    length = _length(other, start + longer[0], shape, file, context)
    return (longer[0], length) if length is not None else None


def _is_shorter(size: int | None, than: int) -> bool:
    return size is not None and 1 < size < than


def _length(other: ast.expr, axis: int, shape: Shape, file: SourceFile, context: Context) -> str | None:
    """`x.size(1)` of a tensor in the other side that has the size at the same axis."""
    for one in walk(other):
        if isinstance(one, (ast.Name, ast.Attribute)) and isinstance(one.ctx, ast.Load):
            tensor = seen(one, context)
            if tensor is not None and axis < len(tensor.shape) and tensor.shape[axis] == shape[axis]:
                return f"{file.segment(one)}.size({axis})"
    return None
