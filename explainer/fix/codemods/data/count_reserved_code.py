"""`nn.Embedding(len(vocabulary) + 1, d)`: codes that begin at 1 leave 0 for padding or for what is unknown, and the last is `len`.

So it is with more codes that are kept free, `len(vocabulary) + len(SPECIAL)`. The one length of such a vocabulary is what
counts the rows; of several the one that makes a table.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from explainer.fix.clue.crash import raised_at
from explainer.fix.codemod import Context, Proposal, culprit_of, edit_of
from explainer.source.data.vocabulary import Length, find_lengths
from explainer.source.file import SourceFile
from explainer.source.name import bound_names, dotted_name
from explainer.source.program import Program
from explainer.source.tree import walk
from explainer.source.value.binding import Value
from explainer.source.value.lookup import lookup_at
from explainer.source.value.resolve import resolver_of

_TABLES = ("torch.nn.Embedding", "torch.nn.EmbeddingBag")
_DEPTH = 8


def propose(context: Context) -> Iterator[Proposal]:
    """An edit for the length that gives a table too few rows."""
    if not context.has_failed:
        return
    lengths = list(find_lengths(context.program))
    right = {one.name for one in lengths if one.is_added_to}
    found = [one for one in lengths if one.name not in right]
    rows, is_added = _rows_of_table(context)
    if is_added:
        return  # the table has the row: what asks for one more counts the codes from 1 twice
    meant = [one for one in found if id(one.node) in rows or _makes_table(one, context.program)] or found
    if len(meant) != 1:
        return
    (one,) = meant
    yield Proposal(
        edits=(edit_of(one.file, one.node, f"{one.file.segment(one.node)} + {_free(one)}"),),
        culprit=culprit_of(
            one.file, one.node, f"counts the codes, which begin at {one.first}, and not the rows before them"
        ),
        belief=1.6,
        is_origin=id(one.node) in rows,
    )


def _makes_table(one: Length, program: Program) -> bool:
    above = one.file.enclosing(one.node, ast.Call)
    return isinstance(above, ast.Call) and program.names(one.file).is_call(above, *_TABLES)


def _rows_of_table(context: Context) -> tuple[frozenset[int], bool]:
    """What the rows come from of the tables that the failing statement looks up, and whether a number is added on the way."""
    resolver = resolver_of(context.program)
    found: set[int] = set()
    added: list[ast.expr] = []

    def follow(value: Value, depth: int) -> None:
        if depth < _DEPTH and id(value.node) not in found:
            found.add(id(value.node))
            if isinstance(value.node, ast.BinOp) and isinstance(value.node.op, ast.Add):
                added.extend([value.node] if isinstance(value.node.right, ast.Constant) else [])
            for one in resolver.behind(value):
                follow(one, depth + 1)

    for file, statement in list(raised_at(context))[:1]:
        for node in walk(statement):
            lookup = lookup_at(node, file, context.program)
            if lookup is not None:
                follow(Value(lookup.rows, lookup.made.file, lookup.made.arguments), 0)
    return frozenset(found), bool(added)


def _free(one: Length) -> str:
    """The number of codes that are kept free, by its name where that is known in the length's file too."""
    node = one.shift.node if one.shift is not None else None
    named = node.args[0] if isinstance(node, ast.Call) and dotted_name(node.func) == "len" else node
    if one.shift is None or node is None or not isinstance(named, ast.Name):
        return str(one.first)
    return one.shift.file.segment(node) if named.id in _known(one.file) & _known(one.shift.file) else str(one.first)


def _known(file: SourceFile) -> set[str]:
    """What a module binds or imports at its top."""
    found: set[str] = set()
    for one in file.tree.body if file.tree is not None else ():
        if isinstance(one, (ast.Import, ast.ImportFrom)):
            found |= {each.asname or each.name.partition(".")[0] for each in one.names}
        else:
            found |= set(bound_names(one))
    return found
