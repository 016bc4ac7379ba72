"""Terms of a sum that are numbers which were read of tensors: `beta * sum(levels)` of `rec + beta * sum(levels)`."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from explainer.source.file import SourceFile
from explainer.source.loss.read_number import Lines, Term, Walk
from explainer.source.program import Program
from explainer.source.tree import walk
from explainer.source.value.binding import reaching


def terms_of(statement: ast.stmt, file: SourceFile, program: Program, lines: Lines) -> Iterator[Term]:
    """The parts of the sums of a statement that are made of what is read on some lines, each beside one that is not."""
    for parts, is_beside in _sums(statement, file):
        walks = [(Walk(program, lines, Term(one, file)), one) for one in parts]
        made = [walked.number(one, file, 0) for walked, one in walks]
        if is_beside or None in made:
            yield from (walked.term for (walked, _), one in zip(walks, made, strict=True) if one)


def _sums(statement: ast.stmt, file: SourceFile) -> Iterator[tuple[list[ast.expr], bool]]:
    """The parts of each sum of a statement, and whether they are added to something else."""
    if isinstance(statement, ast.AugAssign) and isinstance(statement.op, ast.Add):
        yield list(_flat(statement.value)), True
    for node in walk(statement):
        above = file.parents.get(node)
        if _is_sum(node) and not _is_sum(above) and not (above is statement and isinstance(statement, ast.AugAssign)):
            yield list(_flat(node)), False
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "sum" and node.args:
            yield _listed(node.args[0], file), False


def _is_sum(node: ast.AST | None) -> bool:
    return isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add)


def _flat(node: ast.AST) -> Iterator[ast.expr]:
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        yield from _flat(node.left)
        yield from _flat(node.right)
    elif isinstance(node, ast.expr):
        yield node


def _listed(node: ast.expr, file: SourceFile) -> list[ast.expr]:
    """The elements of a list or a table that is written out, also by a name, and what is appended to it."""
    if isinstance(node, (ast.List, ast.Tuple)):
        return [one.value if isinstance(one, ast.Starred) else one for one in node.elts]
    if isinstance(node, ast.Dict):
        return list(node.values)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "values":
        node = node.func.value
    bounds = reaching(node.id, node, file) if isinstance(node, ast.Name) else []
    return [part for one in bounds for part in ([one.node] if one.fills else _listed(one.node, file))]
