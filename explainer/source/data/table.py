"""Tables of data that lie beside a program: the cells without a number in columns of numbers."""

from __future__ import annotations

import csv
import math
import os
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from explainer.source.text import TextFile, Unreadable, read_text

SUFFIXES = (".csv", ".tsv")
PLAIN = (".txt", ".vec", ".dat")  # columns between blanks: word vectors, measurements
MAX_FLOAT32 = 3.4028235e38
MAX_BYTES = 4 << 20
MAX_FILES = 20
MAX_DEPTH = 3
# Of the cells that hold anything, how many must be numbers for a column to be one of numbers.
_MOSTLY = 0.8
_LEAST_ROWS = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Gap:
    """A cell that holds no finite number where its column holds numbers; `column` is its head, or its place from 1."""

    file: TextFile
    line: int
    column: str
    cell: str
    span: tuple[int, int]


def find_tables(root: str, texts: Sequence[str] = (), suffixes: tuple[str, ...] = SUFFIXES) -> Iterator[TextFile]:
    """The tables under a folder that are small enough to be read, by name; plain text only where one of some texts names the file."""
    found = 0
    for folder, folders, names in os.walk(root):
        depth = os.path.relpath(folder, root).count(os.sep) + 1
        folders[:] = sorted(one for one in folders if not one.startswith((".", "_")) and depth < MAX_DEPTH)
        for name in sorted(names):
            is_named = name.lower().endswith(PLAIN) and any(name.lower() in text for text in texts)
            if not (is_named or name.lower().endswith(suffixes)) or found >= MAX_FILES:
                continue
            found += 1
            try:
                yield read_text(os.path.join(folder, name), MAX_BYTES)
            except Unreadable:
                continue


def gaps(file: TextFile) -> Iterator[Gap]:
    """The cells without a finite number in a table's columns of numbers, in the order of its lines.

    A table with quoted cells over several lines, or with rows of several lengths, is left alone.
    """
    rows = [one for one in _rows(file) if one.cells]
    if len(rows) < _LEAST_ROWS or '"' in file.text:
        return
    is_plain = file.path.lower().endswith(PLAIN)
    width = Counter(len(one.cells) for one in rows).most_common(1)[0][0] if is_plain else len(rows[0].cells)
    body = [one for one in rows[1:] if len(one.cells) == width]
    if len(body) < len(rows) - 1:
        return
    numeric = [at for at in range(width) if _is_numeric([one.cells[at].text for one in body])]
    first = rows[0].cells if len(rows[0].cells) == width else ()  # else the counts of a table of vectors
    if is_plain and first and sum(_number(first[at].text) is not None for at in numeric) > len(numeric) // 2:
        body, first = rows, ()
    for row in body:
        for at in numeric:
            cell = row.cells[at]
            if _number(cell.text) is None:
                head = first[at].text.strip() if first and _number(first[at].text) is None else str(at + 1)
                span = (cell.start, cell.start + len(cell.text))
                yield Gap(file=file, line=row.line, column=head, cell=cell.text.strip(), span=span)


class _Cell(NamedTuple):
    text: str
    start: int


class _Row(NamedTuple):
    line: int
    cells: Sequence[_Cell]


def _rows(file: TextFile) -> Iterator[_Row]:
    """The lines of a table with their cells; a line of blanks has none."""
    path = file.path.lower()
    delimiter = "\t" if path.endswith(".tsv") else "" if path.endswith(PLAIN) else _delimiter(file.line(1))
    for number, line in enumerate(file.text.splitlines(), 1):
        start, cells = file.line_start(number), []
        if delimiter and line.strip():
            at = 0
            for text in line.split(delimiter):
                cells.append(_Cell(text, start + at))
                at += len(text) + 1
        elif not delimiter:
            cells = [_Cell(one[0], start + one.start()) for one in re.finditer(r"\S+", line)]
        yield _Row(number, cells)


def _delimiter(head: str) -> str:
    try:
        return csv.Sniffer().sniff(head, ",;\t|").delimiter
    except csv.Error:
        return ","


def _is_numeric(cells: list[str]) -> bool:
    held = [one for one in cells if one.strip()]
    numbers = sum(_number(one) is not None for one in held)
    return numbers >= _LEAST_ROWS and numbers >= _MOSTLY * len(held)


def _number(cell: str) -> float | None:
    """The number that a cell holds, if float32 has it."""
    if re.fullmatch(r"\s*[-+]?[\d.,]*(?:[eE][-+]?\d+)?\s*", cell) is None or not cell.strip():
        return None
    try:
        value = float(cell.replace(",", "."))
    except ValueError:
        return None
    return value if math.isfinite(value) and abs(value) <= MAX_FLOAT32 else None
