"""The columns of data that lies beside a program: tables, lines of words, JSON lines and lists; and the names that it lists."""

from __future__ import annotations

import ast
import csv
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from explainer.source.data.table import PLAIN, SUFFIXES, find_tables
from explainer.source.program import Program
from explainer.source.setting.setting import JSON, read_document
from explainer.source.text import TextFile

_LINES = (".jsonl", ".ndjson")
_OBJECTS = ".json"
_MAX_OBJECTS = 1 << 20  # characters of a JSON file, which is read with the place of every value
_MAX_NAMES = 5000
_LEAST_NAMES = 2


class Cell(NamedTuple):
    """What a row holds in a column, and the line at which that row begins."""

    text: str
    line: int


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Column:
    """One column of a data file; `key` is its head, or its place and the number of columns."""

    file: TextFile
    key: str
    cells: Sequence[Cell]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Names:
    """Names that are listed somewhere: the lines of a file, a list in a configuration file or in Python."""

    path: str
    words: frozenset[str]


def find_columns(program: Program) -> Iterator[Column]:
    """The columns of the data files under a program's root, as far as these are small enough to be read."""
    texts = [file.text.lower() for file in program.parsed()]
    for file in find_tables(program.root, texts, (*SUFFIXES, *_LINES, _OBJECTS)):
        path = file.path.lower()
        if path.endswith(_OBJECTS):
            yield from _of_objects(file)
        elif path.endswith(_LINES):
            yield from _of_lines(file)
        else:
            yield from _of_table(file)


def find_names(program: Program) -> Iterator[Names]:
    """The lists of names that a program has: in text files that it names, in configuration files, in Python."""
    texts = [file.text.lower() for file in program.parsed()]
    for file in find_tables(program.root, texts, ()):
        lines = [one.strip() for one in file.text.splitlines() if one.strip()]
        yield from _names(file.path, lines)
        yield from _names(file.path, file.text.split()) if any(" " in one for one in lines) else ()
    for document in program.documents():
        held: dict[tuple[object, ...], list[str]] = {}
        for one in document.settings:
            if one.path and one.path[-1].isdigit() and isinstance(one.value, str):
                held.setdefault((one.group, *one.path[:-1]), []).append(one.value)
            elif one.path and isinstance(one.value, int):
                held.setdefault((one.group, *one.path[:-1], "keys"), []).append(one.path[-1])
        for words in held.values():
            yield from _names(document.file.path, words)
    for source in program.parsed():
        for node in source.walk():
            parts = (
                node.elts
                if isinstance(node, (ast.List, ast.Tuple, ast.Set))
                else node.keys
                if isinstance(node, ast.Dict)
                else []
            )
            written = [one.value for one in parts if isinstance(one, ast.Constant) and isinstance(one.value, str)]
            yield from _names(source.path, written) if len(written) == len(parts) else ()


def _names(path: str, words: Sequence[str]) -> Iterator[Names]:
    if _LEAST_NAMES <= len(words) <= _MAX_NAMES:
        yield Names(path=path, words=frozenset(words))


def _of_table(file: TextFile) -> Iterator[Column]:
    """The columns of a file whose rows have one length; a head is a first row without numbers whose words do not come again."""
    rows = [one for one in _rows(file) if one[1]]
    if len(rows) < 2 or len({len(cells) for _, cells in rows}) != 1:
        return
    first = rows[0][1]
    columns = list(zip(*(cells for _, cells in rows), strict=True))
    has_head = not any(_is_number(one) for one in first) and all(
        head not in column[1:] for head, column in zip(first, columns, strict=True)
    )
    lines = [line for line, _ in rows]
    for at, column in enumerate(columns):
        key = first[at] if has_head else f"{at + 1} of {len(first)}"
        cells = [Cell(text, line) for text, line in zip(column, lines, strict=True)]
        yield Column(file=file, key=key, cells=cells[has_head:])


def _rows(file: TextFile) -> Iterator[tuple[int, list[str]]]:
    """The rows with the line at which each begins; a quoted cell may go over several."""
    if file.path.lower().endswith(PLAIN) and "\t" not in file.text:
        yield from ((number, line.split()) for number, line in enumerate(file.text.splitlines(), 1))
        return
    head = file.line(1)
    delimiter = max("\t,;|", key=head.count)
    # A cell that is longer than csv takes is no table's.
    reader, begins = csv.reader(file.text.splitlines(keepends=True), delimiter=delimiter), 1
    try:
        for row in reader:
            yield begins, [one.strip() for one in row]
            begins = reader.line_num + 1
    except csv.Error:
        return


def _of_lines(file: TextFile) -> Iterator[Column]:
    found: dict[str, list[Cell]] = {}
    for number, line in enumerate(file.text.splitlines(), 1):
        try:
            row = json.loads(line) if line.strip() else {}
        except ValueError:
            return
        for key, value in row.items() if isinstance(row, dict) else ():
            if isinstance(value, (str, int)) and not isinstance(value, bool):
                found.setdefault(key, []).append(Cell(str(value), number))
    yield from (Column(file=file, key=key, cells=cells) for key, cells in found.items())


def _of_objects(file: TextFile) -> Iterator[Column]:
    """The keys of a list of objects in JSON."""
    if len(file.text) > _MAX_OBJECTS:
        return
    found: dict[str, list[Cell]] = {}
    document = read_document(file)
    for one in document.settings if document.kind == JSON else ():
        is_row = len(one.path) > 1 and one.path[-2].isdigit()
        if is_row and isinstance(one.value, (str, int)) and not isinstance(one.value, bool):
            found.setdefault(one.name, []).append(Cell(str(one.value), one.line))
    yield from (Column(file=file, key=key, cells=cells) for key, cells in found.items())


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
