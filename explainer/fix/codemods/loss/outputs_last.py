"""Lets the model's outputs win where a mapping merges them with the batch: `{**batch, **outputs}` for `{**outputs, **batch}`.

Only where a trace saw a term of the loss that compares data with data, the line takes one side from what is merged so, and the other
side from elsewhere: a target that is read from the merged mapping too would become the prediction.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import NamedTuple

from explainer.fix.clue.trace import traced_statements
from explainer.fix.codemod import Context, Proposal, culprit_of, edit_of
from explainer.model.trace import DATA_TERM
from explainer.source.file import SourceFile
from explainer.source.program import Program
from explainer.source.tree import walk
from explainer.source.value.binding import Value
from explainer.source.value.provenance import provenance_of
from explainer.source.value.resolve import Resolver, resolver_of

_DEPTH = 3


class _Merge(NamedTuple):
    """A mapping that is made of two, of which the second overwrites the first."""

    file: SourceFile
    node: ast.expr
    first: ast.expr
    second: ast.expr


def propose(context: Context) -> Iterator[Proposal]:
    """An edit for each merge behind one side of a traced line, whose first mapping the model gives and whose second it does not."""
    provenance = provenance_of(context.program)
    for _, file, statement in traced_statements(DATA_TERM, context):
        for one in _behind_one_side(statement, file, context.program):
            if (
                not provenance.trace(Value(one.first, one.file)).live
                or provenance.trace(Value(one.second, one.file)).live
            ):
                continue
            names = [one.file.segment(each) for each in (one.first, one.second)]
            edits = tuple(
                edit_of(one.file, node, name)
                for node, name in zip((one.first, one.second), reversed(names), strict=True)
            )
            why = f"`{names[1]}` overwrites what the model gave under the same name: the loss compares data with itself"
            yield Proposal(edits=edits, culprit=culprit_of(one.file, one.node, why), belief=2.0, is_origin=True)


def _behind_one_side(statement: ast.stmt, file: SourceFile, program: Program) -> list[_Merge]:
    """The merges behind what one side of a comparison is looked up in, where the other is looked up in something else."""
    for node in walk(statement):
        sides: list[ast.expr] = []
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Sub):
            sides = [node.left, node.right]
        elif isinstance(node, ast.Call) and len(node.args) == 2:
            sides = node.args
        merges = [list(_merges(one, file, program)) for one in sides]
        found = [one for one in merges if one]
        if len(found) == 1 and all(_is_looked_up(one) for one in sides):
            return found[0]
    return []


def _is_looked_up(node: ast.expr) -> bool:
    return any(isinstance(one, (ast.Subscript, ast.Attribute)) for one in walk(node))


def _merges(side: ast.expr, file: SourceFile, program: Program) -> Iterator[_Merge]:
    """The merges that a side of a comparison looks something up in."""
    resolver = resolver_of(program)
    for one in walk(side):
        if isinstance(one, ast.Subscript):
            yield from _made(Value(one.value, file), resolver, 0)


def _made(value: Value, resolver: Resolver, depth: int) -> Iterator[_Merge]:
    """The merge that an expression stands for, also one that a function returns."""
    node = value.node
    found = _merge(node, value.file)
    if found is not None:
        yield found
    elif depth < _DEPTH and isinstance(node, (ast.Name, ast.Attribute)):
        for one in resolver.behind(value):
            if one.pick is None and not one.is_element and one.key is None:
                yield from _made(one, resolver, depth + 1)
    elif depth < _DEPTH and isinstance(node, ast.Call):
        target = resolver.function_of(node, value)
        for one in resolver.returns_of(target, node, value) if target is not None else ():
            yield from _made(one, resolver, depth + 1)


def _merge(node: ast.expr, file: SourceFile) -> _Merge | None:
    """`{**a, **b}`, `a | b`, `dict(a, **b)`."""
    if isinstance(node, ast.Dict) and node.keys == [None, None]:
        return _Merge(file, node, *node.values)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr):
        return _Merge(file, node, node.left, node.right)
    is_dict = isinstance(node, ast.Call) and getattr(node.func, "id", "") == "dict"
    if (
        is_dict
        and isinstance(node, ast.Call)
        and len(node.args) == len(node.keywords) == 1
        and node.keywords[0].arg is None
    ):
        return _Merge(file, node, node.args[0], node.keywords[0].value)
    return None
