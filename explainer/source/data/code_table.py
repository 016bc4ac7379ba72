"""Tables of codes that a program writes by hand: `STAGES = {"wake": 0, "light": 1, "movement": 5}`, by which it numbers what it reads."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from explainer.source.file import SourceFile
from explainer.source.name import bound_names, dotted_name
from explainer.source.program import Program

_FEWEST = 2  # entries, or it is no table
_READS = frozenset({"get", "map", "replace"})


@dataclass(frozen=True, slots=True)
class Code:
    """One entry of such a table: what it numbers, as written, and the number."""

    file: SourceFile
    table: str
    key: ast.expr
    value: ast.expr


def find_codes(number: int, program: Program) -> list[Code]:
    """The entries that give a code which the program's tables know as their highest, where they count from 0."""
    return [one for file in program.parsed() for one in _codes(number, file) if is_looked_up(one.table, program)]


def _codes(number: int, file: SourceFile) -> Iterator[Code]:
    for statement in file.walk():
        if not isinstance(statement, (ast.Assign, ast.AnnAssign)) or not isinstance(statement.value, ast.Dict):
            continue
        table, names = statement.value, list(bound_names(statement))
        codes = [_number(one) for one in table.values]
        if len(names) != 1 or len(codes) < _FEWEST or None in codes or None in table.keys:
            continue
        if min(codes) == 0 and max(codes) == number:  # type: ignore[type-var]
            for key, value, code in zip(table.keys, table.values, codes, strict=True):
                if code == number and key is not None:
                    yield Code(file, names[0].rpartition(".")[2], key, value)


def _number(node: ast.expr) -> int | None:
    is_one = isinstance(node, ast.Constant) and isinstance(node.value, int) and not isinstance(node.value, bool)
    return node.value if is_one and isinstance(node, ast.Constant) else None  # type: ignore[return-value]


def is_looked_up(table: str, program: Program) -> bool:
    """Whether the program asks the table for codes of what it reads, by a name that is no constant."""
    for file in program.parsed():
        for node in file.walk():
            if (
                isinstance(node, ast.Subscript)
                and not isinstance(node.slice, ast.Constant)
                and _last(node.value) == table
            ):
                return True
            is_read = isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _READS
            if is_read and table in {_last(one) for one in (node.func.value, *node.args)}:  # type: ignore[attr-defined]
                return True
    return False


def _last(node: ast.expr) -> str:
    return (dotted_name(node) or "").rpartition(".")[2]
