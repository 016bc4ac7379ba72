"""Tables of data that lie beside a program: the cells without a number in columns of numbers."""

from __future__ import annotations

import csv
import math
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass

from explainer.source.text import TextFile, Unreadable, read_text

SUFFIXES = (".csv", ".tsv")
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


def find_tables(root: str) -> Iterator[TextFile]:
    """The tables under a folder that are small enough to be read, by name."""
    found = 0
    for folder, folders, names in os.walk(root):
        depth = os.path.relpath(folder, root).count(os.sep) + 1
        folders[:] = sorted(one for one in folders if not one.startswith((".", "_")) and depth < MAX_DEPTH)
        for name in sorted(names):
            if not name.lower().endswith(SUFFIXES) or found >= MAX_FILES:
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
    delimiter = "\t" if file.path.lower().endswith(".tsv") else _delimiter(file.line(1))
    lines = file.text.splitlines()
    if len(lines) < _LEAST_ROWS or '"' in file.text:
        return
    rows = [line.split(delimiter) for line in lines]
    width = len(rows[0])
    body = [(number, row) for number, row in enumerate(rows[1:], 2) if len(row) == width]
    if len(body) < sum(1 for row in rows[1:] if any(one.strip() for one in row)):
        return
    numeric = [at for at in range(width) if _is_numeric([row[at] for _, row in body])]
    for number, row in body:
        for at in numeric:
            if _number(row[at]) is None:
                start = file.line_start(number) + sum(len(one) + 1 for one in row[:at])
                head = rows[0][at].strip() if _number(rows[0][at]) is None else str(at + 1)
                yield Gap(file=file, line=number, column=head, cell=row[at].strip(), span=(start, start + len(row[at])))


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
    """The finite number that a cell holds."""
    if re.fullmatch(r"\s*[-+]?[\d.,]*(?:[eE][-+]?\d+)?\s*", cell) is None or not cell.strip():
        return None
    try:
        value = float(cell.replace(",", "."))
    except ValueError:
        return None
    return value if math.isfinite(value) else None
