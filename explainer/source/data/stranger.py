"""The rows of a program's data that a table of so many rows has no place for: a name that is in no list, a number beyond all others."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from explainer.source.data.data_row import Cell, Column, Names, find_columns, find_names
from explainer.source.program import Program
from explainer.source.text import TextFile

_SPECIALS = 2  # rows beside the names that a table keeps: for padding, for what is not known
_LEAST_SHARED = 2
_NUMBER = re.compile(r"\d{1,9}")
_MOSTLY = 0.9


@dataclass(frozen=True, slots=True, kw_only=True)
class Strangers:
    """The cells of one column that are strangers, in the order of the file; `share` of its cells they are, `is_name` if not numbers."""

    file: TextFile
    key: str
    cells: Sequence[Cell]
    share: float
    is_name: bool


def find_strangers(rows: int, index: int | None, program: Program, *, is_table: bool) -> Strangers | None:
    """The strangers to a table of `rows` rows, or to as many classes, of which one gave the index; None where that does not show.

    Names are strangers where the others in their column are just as many as the rows, in a list or in the same column of
    another file; numbers where they are the index, and the others in their column go up to the last row.
    """
    columns = [one for one in find_columns(program) if len(one.cells) > 1]
    named = list(_of_names(rows, columns, find_names(program), specials=_SPECIALS if is_table else 0))
    found = [one for _, one in sorted(named, key=lambda one: -one[0])[:1]]
    numbered = [] if found or index is None else list(_of_numbers(rows, index, columns))
    return found[0] if found else numbered[0] if len(numbered) == 1 else None


def _of_names(
    rows: int, columns: Sequence[Column], names: Iterator[Names], *, specials: int
) -> Iterator[tuple[int, Strangers]]:
    """The strangers of each column, with how many names it shares with those that are known."""
    held = {one: frozenset(cell.text for cell in one.cells) for one in columns}
    listed = [one for one in names if rows - specials <= len(one.words) <= rows]
    for column, words in held.items():
        others = [
            held[one]
            for one in columns
            if one.key == column.key and one.file is not column.file and rows - specials <= len(held[one]) <= rows
        ]
        for known in (*others, *(one.words for one in listed if one.path != column.file.path)):
            shared, strange = words & known, words - known
            is_of_names = not all(_NUMBER.fullmatch(one) for one in shared)
            if is_of_names and strange and len(shared) >= max(_LEAST_SHARED, len(strange)):
                yield len(shared), _strangers(column, strange, is_name=True)


def _of_numbers(rows: int, index: int, columns: Sequence[Column]) -> Iterator[Strangers]:
    """The strangers of each column of whole numbers that has the index, and is known up to the last row but for a few."""
    for column in columns:
        if index < rows or not all(_NUMBER.fullmatch(one.text) for one in column.cells):
            continue
        beyond = {one.text for one in column.cells if int(one.text) >= rows}
        alike = [column, *(one for one in columns if one.key == column.key and one.file is not column.file)]
        known = [
            int(one.text)
            for each in alike
            for one in each.cells
            if _NUMBER.fullmatch(one.text) and int(one.text) < rows
        ]
        own = sum(int(one.text) < rows for one in column.cells)
        if str(index) in beyond and known and max(known) == rows - 1 and own >= _MOSTLY * len(column.cells):
            yield _strangers(column, frozenset(beyond), is_name=False)


def _strangers(column: Column, words: frozenset[str] | set[str], *, is_name: bool) -> Strangers:
    cells = [one for one in column.cells if one.text in words]
    return Strangers(
        file=column.file, key=column.key, cells=cells, share=len(cells) / len(column.cells), is_name=is_name
    )
