"""Where the source of each code cell stands in the text of a notebook, and new source put there.

A character of a cell is kept as it is written in the JSON, escapes included: what is not edited comes back as it was.
"""

from __future__ import annotations

import json
import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from typing import Any

_UNIT = re.compile(r"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|\\u[0-9a-fA-F]{4}|\\.|[^\\]", re.DOTALL)
_SPACE = re.compile(r"[ \t\r\n]*")
_decode = json.JSONDecoder(strict=False).raw_decode


class Misshapen(ValueError):
    """The JSON is not that of a notebook; the text says in which way."""


@dataclass(frozen=True)
class Cell:
    """A code cell. `literals` are the spans of the JSON strings that make its source, quotes included.

    `index` counts all cells from 0, `count` is the execution count, `is_list` whether the source is a list of lines.
    """

    index: int
    count: int | None
    document: str
    literals: tuple[tuple[int, int], ...]
    is_list: bool

    @cached_property
    def lines(self) -> tuple[tuple[str, ...], ...]:
        """The written form of each character, string by string."""
        return tuple(tuple(_UNIT.findall(self.document[start + 1 : end - 1])) for start, end in self.literals)

    @cached_property
    def text(self) -> str:
        """The source."""
        return "".join(json.loads(self.document[start:end], strict=False) for start, end in self.literals)

    def rewritten(self, edits: Sequence[tuple[int, int, str]]) -> tuple[int, int, str]:
        """The span of the document that changes, and what stands there after edits (sorted, apart) of the source.

        Of a list, only the strings that an edit touches change.
        """
        ends = list(accumulate(len(line) for line in self.lines))
        first = min(bisect_right(ends, edits[0][0]), len(ends) - 1)
        last = max(min(bisect_left(ends, edits[-1][1]), len(ends) - 1), first)
        units = [unit for line in self.lines for unit in line]
        for start, end, new in reversed(edits):
            units[start:end] = [_written(one, self.document) for one in new]
        if not self.is_list:
            return (*self.literals[0], _literal(units))
        before, after = (ends[first - 1] if first else 0), ends[-1] - ends[last]
        touched = units[before : len(units) - after]
        lines = [_literal(line) for line in _split(touched)]
        if not lines:
            return self._without(first, last + 1)
        return self.literals[first][0], self.literals[last][1], self._comma().join(lines)

    def _without(self, first: int, last: int) -> tuple[int, int, str]:
        """The span of strings with the comma that parts them from the next, or from the one before."""
        if last < len(self.literals):
            return self.literals[first][0], self.literals[last][0], ""
        start = self.literals[first - 1][1] if first else self.literals[0][0]
        return start, self.literals[last - 1][1], ""

    def _comma(self) -> str:
        """What parts two strings of the list."""
        if len(self.literals) > 1:
            return self.document[self.literals[0][1] : self.literals[1][0]]
        start = self.literals[0][0]
        return "," + self.document[self.document.rindex("[", 0, start) + 1 : start]


def read_cells(document: str) -> list[Cell]:
    """The code cells of a notebook in the order in which they stand.

    Raises:
        Misshapen: this is no notebook of the form that Jupyter writes.
    """
    try:
        return _read_cells(document)
    except (ValueError, IndexError, TypeError, KeyError, RecursionError) as error:
        raise Misshapen(str(error) or type(error).__name__) from error


def _read_cells(document: str) -> list[Cell]:
    top = _members(document, _skip(document, 0))
    cells = []
    for index, (start, _) in enumerate(_elements(document, top["cells"][0])):
        members = _members(document, start)
        kind, count = _value(document, members, "cell_type"), _value(document, members, "execution_count")
        if kind != "code":
            continue
        at, end = members["source"]
        is_list = document[at] == "["
        literals = tuple(_elements(document, at)) if is_list else ((at, end),)
        if literals and all(document[first] == '"' for first, _ in literals):
            cells.append(Cell(index, count if isinstance(count, int) else None, document, literals, is_list))
    return cells


def _value(document: str, members: dict[str, tuple[int, int]], name: str) -> Any:
    return json.loads(document[slice(*members[name])]) if name in members else None


def _members(document: str, at: int) -> dict[str, tuple[int, int]]:
    """The spans of the values of the object that begins at `at`."""
    found: dict[str, tuple[int, int]] = {}
    if document[at] != "{":
        raise Misshapen("no object where one is expected")
    at = _skip(document, at + 1)
    while document[at] != "}":
        name, at = _decode(document, at)
        start = _skip(document, _skip(document, at) + 1)
        if name in found:
            raise Misshapen(f"{name!r} stands twice")
        _, end = _decode(document, start)
        found[name] = (start, end)
        at = _next(document, end)
    return found


def _elements(document: str, at: int) -> Iterator[tuple[int, int]]:
    """The spans of the elements of the array that begins at `at`."""
    if document[at] != "[":
        raise Misshapen("no list where one is expected")
    at = _skip(document, at + 1)
    while document[at] != "]":
        _, end = _decode(document, at)
        yield at, end
        at = _next(document, end)


def _next(document: str, end: int) -> int:
    at = _skip(document, end)
    return _skip(document, at + 1) if document[at] == "," else at


def _skip(document: str, at: int) -> int:
    found = _SPACE.match(document, at)
    return found.end() if found else at


def _written(character: str, document: str) -> str:
    return json.dumps(character, ensure_ascii=document.isascii())[1:-1]


def _literal(units: Sequence[str]) -> str:
    return '"' + "".join(units) + '"'


def _split(units: Sequence[str]) -> Iterator[Sequence[str]]:
    """The characters line by line, each line with its end, as Jupyter cuts a source."""
    start = 0
    for at, unit in enumerate(units):
        if unit in ("\\n", "\\u000a", "\\u000A"):
            yield units[start : at + 1]
            start = at + 1
    if start < len(units):
        yield units[start:]
