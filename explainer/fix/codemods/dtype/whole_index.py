"""An index becomes int64 where torch picks or writes by it: `q.gather(1, action.long())`, `h[edges.long()]`, `F.one_hot(y.long(), 3)`.

Which integers a function takes differs: `gather` and `index_select` take int32 too, `one_hot` and `index_copy` do not, a uint8
selects as a mask. The values of integers stay; an index of floats has to hold whole numbers.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import replace

from explainer.fix.clue.crash import message_of, raised_at
from explainer.fix.clue.seen import seen
from explainer.fix.codemod import Context, Proposal, culprit_of
from explainer.fix.text.rewrite import put_method
from explainer.source.file import SourceFile
from explainer.source.tree import walk
from explainer.source.value.binding import Value
from explainer.source.value.resolve import resolver_of

_REFUSED = re.compile(
    r"Expected dtype int\S* (?:or int64 )?for index|Expected a long tensor for index|dtype of indices should be Long"
    r"|one_hot is only applicable to index tensor|tensors used as indices must be|expected scalar type Long but found "
)
_IDS = re.compile(r"argument #1 'indices' to have one of the following scalar types: Long")
# Where each function takes its index, behind the tensor.
_PLACES = {
    **dict.fromkeys(
        ("gather", "scatter", "scatter_add", "scatter_reduce", "index_add", "index_select", "index_copy", "index_fill"),
        1,
    ),
    **dict.fromkeys(("take", "take_along_dim", "one_hot"), 0),
}
_WHOLE = "right where the values are whole numbers: `.long()` cuts fractions off"
_KEYWORDS = ("index", "indices")


def propose(context: Context) -> Iterator[Proposal]:
    """An edit for each index on the line that raised, and for what tables of embeddings are asked for."""
    message = message_of(context)
    is_index, are_ids = _REFUSED.search(message) is not None, _IDS.search(message) is not None
    for file, statement in list(raised_at(context))[:1]:
        if are_ids:
            yield from _asked(statement, file, context)
        for node in walk(statement) if is_index else ():
            index = _index(node, file, context)
            told = seen(index, context) if index is not None else None
            if index is None or (told is not None and told.dtype in ("int64", "bool")):
                continue
            are_integers = told is not None and told.is_integer
            kind = f"picks or writes by {told.dtype}" if told is not None else "picks or writes by what is not int64"
            yield Proposal(
                edits=(put_method(file, index, ".long()"),),
                culprit=culprit_of(file, node, kind),
                belief=2.0,
                applicability=None if are_integers else "unsafe",
                because=None if are_integers else _WHOLE,
            )


def _index(node: ast.AST, file: SourceFile, context: Context) -> ast.expr | None:
    """What a call or a subscript picks by."""
    if isinstance(node, ast.Subscript):
        is_tensor = (told := seen(node.slice, context)) is not None and len(told.shape) > 0
        return node.slice if is_tensor and isinstance(node.slice, ast.expr) else None
    if not isinstance(node, ast.Call):
        return None
    called = context.program.names(file).qualified(node.func) or ""
    is_function = called.startswith("torch.")
    name = called.rpartition(".")[2] if is_function else getattr(node.func, "attr", "")
    at = _PLACES.get(name.removesuffix("_"))
    if at is None:
        return None
    at += is_function and name != "one_hot"
    given = next((one.value for one in node.keywords if one.arg in _KEYWORDS), None)
    return given or (node.args[at] if len(node.args) > at else None)


def _asked(statement: ast.stmt, file: SourceFile, context: Context) -> Iterator[Proposal]:
    """What tables of embeddings are asked for by floats that were seen; of several in one statement all that are such tables."""
    found: list[tuple[bool, Proposal]] = []
    for call in (one for one in walk(statement) if isinstance(one, ast.Call) and one.args):
        tensor = seen(call.args[0], context)
        if tensor is not None and tensor.dtype.startswith("float"):
            culprit = culprit_of(file, call, f"asks a table for rows by {tensor.dtype}")
            edits = (put_method(file, call.args[0], ".long()"),)
            found.append((_is_table(call, file, context), Proposal(edits=edits, culprit=culprit, belief=2.2)))
    tables = [one for is_table, one in found if is_table]
    if len(tables) > 1:
        every = tuple(dict.fromkeys(edit for one in tables for edit in one.edits))
        yield replace(tables[0], edits=every, belief=2.3)
    yield from (one for _, one in found)


def _is_table(call: ast.Call, file: SourceFile, context: Context) -> bool:
    made = resolver_of(context.program).constructors_of(Value(call.func, file))
    called = [
        context.program.names(one.file).qualified(one.node.func) or "" for one in made if isinstance(one.node, ast.Call)
    ]
    return bool(called) and all(one.startswith("torch.nn.Embedding") for one in called)
