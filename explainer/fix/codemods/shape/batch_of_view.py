"""`x.view(x.size(0), -1)` for a view that does not take its batch from the tensor: `x.view(self.batch_size, -1)`, `x.view(-1, 400)`.

The last batch of an epoch is smaller; features that were counted wrongly shift rows from sample to sample, where they divide.
Only where the sizes that were seen, or those of the layer which refused the result, say so.
"""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Iterator

from explainer.fix.clue.crash import message_of, raised_at
from explainer.fix.clue.seen import seen
from explainer.fix.codemod import Context, Proposal, culprit_of, edit_of
from explainer.fix.shape.layer_input import Told, read_told
from explainer.model.patch import Edit
from explainer.source.file import SourceFile
from explainer.source.name import dotted_name
from explainer.source.tree import walk
from explainer.source.value.lineage import definitions, scope_of
from explainer.source.value.number import number_of

_INVALID = re.compile(r"shape '\[([-\d, ]+)\]' is invalid for input of size (\d+)")
_ROWS = re.compile(r"cannot be multiplied \((\d+)x\d+ and")
_VIEWS = frozenset({"view", "reshape"})
_OF_A_TENSOR = re.compile(r"\.(size|shape|numel)\b|\blen\(")


def propose(context: Context) -> Iterator[Proposal]:
    """An edit for the view that raised, or for the one whose result a layer refused."""
    message = message_of(context)
    invalid, told, rows = _INVALID.search(message), read_told(message), _ROWS.search(message)
    for file, statement in list(raised_at(context))[:1]:
        if invalid is not None:
            wanted = [int(one) for one in invalid[1].split(",")]
            yield from _refused(wanted, int(invalid[2]), statement, file, context)
        elif told is not None and rows is not None:
            yield from _refused_later(told, int(rows[1]), statement, file, context)


def _refused(
    wanted: list[int], size: int, statement: ast.stmt, file: SourceFile, context: Context
) -> Iterator[Proposal]:
    """The view that has not that many elements: of another batch, or of other features than the tensor has."""
    for call in _views(statement):
        assert isinstance(call.func, ast.Attribute)
        tensor = seen(call.func.value, context)
        name = dotted_name(call.func.value)
        if tensor is None or name is None or len(call.args) != len(wanted) or math.prod(tensor.shape) != size:
            continue
        batch, rest = tensor.shape[0] if tensor.shape else 0, [one for one in wanted[1:] if one != -1]
        is_free = -1 in wanted[1:]
        if not batch or wanted[0] == batch:
            continue
        left, over = divmod(size, batch * math.prod(rest))
        if wanted[0] > 0 and not over and (left == 1 or is_free):
            why = f"takes the batch for {wanted[0]} samples, and it has {batch}"
            yield _proposal((edit_of(file, call.args[0], f"{name}.size(0)"),), call, file, why)
        elif wanted[0] == -1 and len(wanted) == 2 and len(tensor.shape) > 2:
            why = f"counts {wanted[1]} features a sample, and there are {size // batch}"
            yield _proposal(_flattened(call, name, file), call, file, why)


def _refused_later(
    told: Told, rows: int, statement: ast.stmt, file: SourceFile, context: Context
) -> Iterator[Proposal]:
    """A view of a fixed batch whose rows a layer refused: as many values in all fill whole rows of another batch."""
    size = told.size or 0
    if (rows * size) % told.wanted or rows * size == rows * told.wanted:
        return
    scope = scope_of(statement, file, context.program)
    names = {one.id for one in walk(statement) if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Load)}
    made = [one for name in names for one in (definitions(name, statement, scope) if scope is not None else [])]
    for call in (view for one in (statement, *made) for view in _views(one)):
        assert isinstance(call.func, ast.Attribute)
        name = dotted_name(call.func.value)
        is_fixed = len(call.args) == 2 and number_of(call.args[1], context.program.names(file)) == -1
        if name is not None and is_fixed and not _OF_A_TENSOR.search(ast.unparse(call.args[0])):
            why = f"takes the batch for {rows} samples, and it has {rows * size // told.wanted}"
            yield _proposal((edit_of(file, call.args[0], f"{name}.size(0)"),), call, file, why)


def _views(statement: ast.stmt) -> Iterator[ast.Call]:
    for one in walk(statement):
        if isinstance(one, ast.Call) and isinstance(one.func, ast.Attribute) and one.func.attr in _VIEWS and one.args:
            yield one


def _flattened(call: ast.Call, name: str, file: SourceFile) -> tuple[Edit, ...]:
    first, last = call.args[0], call.args[-1]
    return (edit_of(file, first, f"{name}.size(0)"), edit_of(file, last, "-1"))


def _proposal(edits: tuple[Edit, ...], call: ast.Call, file: SourceFile, why: str) -> Proposal:
    return Proposal(edits=edits, culprit=culprit_of(file, call, why), belief=2.2)
