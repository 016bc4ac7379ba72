"""The cells that a session has run, as the notebook that they would be: what the readers and codemods work on."""

from __future__ import annotations

import ast
import difflib
import json
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace

from explainer.model.finding import Fix
from explainer.model.incident import Frame, Incident
from explainer.source.file import parse_text
from explainer.source.notebook import Notebook, blank_magics, parse_notebook

LIKENESS = 0.7  # a later cell that is so much like an earlier one is that one, edited
MAX_CELLS = 400
_OWN = re.compile(r"\s*%(?:gradfix|load_ext\s+gradfix|reload_ext\s+gradfix)\b[^\n]*\n?\s*$")


@dataclass(frozen=True, slots=True, kw_only=True)
class Ran:
    """A cell that was run: its number (`In [number]`), its text, where the front end has one its id."""

    number: int
    text: str
    cell_id: str | None = None
    has_failed: bool = False


class Session:
    """Remembers the cells in the order in which they ran."""

    def __init__(self) -> None:
        self._ran: list[Ran] = []

    def add(self, cell: Ran) -> None:
        """Remember a cell; one of nothing but a command of ours is none."""
        if cell.text.strip() and not _OWN.match(cell.text):
            self._ran.append(cell)
            del self._ran[:-MAX_CELLS]

    def cells(self, failed: Ran) -> list[Ran]:
        """The cells that make the program of a failed one: without those that failed, or were run again in a later form."""
        ran = [one for one in self._ran if one.number < failed.number and not one.has_failed]
        kept: list[Ran] = []
        for one in [failed, *reversed(ran)]:
            if not any(_is_later_form(later, one) for later in kept):
                kept.append(one)
        return kept[::-1]


def _is_later_form(later: Ran, earlier: Ran) -> bool:
    if later.cell_id is not None and earlier.cell_id is not None:
        return later.cell_id == earlier.cell_id
    matcher = difflib.SequenceMatcher(None, earlier.text, later.text, autojunk=False)
    is_alike = matcher.real_quick_ratio() >= LIKENESS <= matcher.quick_ratio() and matcher.ratio() >= LIKENESS
    return is_alike and _bound(earlier.text) <= _bound(later.text)


def _bound(text: str) -> set[str]:
    """The names that a cell gives a value to, anywhere in it."""
    tree, _ = parse_text(blank_magics(text))
    found = set()
    for node in ast.walk(tree) if tree is not None else ():
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            found.add(node.id)
        elif isinstance(node, (ast.FunctionDef, ast.ClassDef, ast.AsyncFunctionDef)):
            found.add(node.name)
        elif isinstance(node, ast.alias):
            found.add((node.asname or node.name).partition(".")[0])
    return found


def as_notebook(cells: list[Ran], folder: str) -> Notebook:
    """The cells as a notebook file in `folder`."""
    document = {
        "cells": [
            {"cell_type": "code", "execution_count": one.number, "metadata": {}, "outputs": [], "source": one.text}
            for one in cells
        ],
        "metadata": {},
        "nbformat": 4,
        "nbformat_minor": 5,
    }
    path = os.path.join(os.path.realpath(folder), "notebook.ipynb")
    data = json.dumps(document).encode()
    with open(path, "wb") as file:
        file.write(data)
    return parse_notebook(path, data)


def placed(incident: Incident, notebook: Notebook, numbers: Mapping[str, int]) -> Incident:
    """The incident with the files that IPython makes up for cells named as its tracebacks name them.

    `numbers` are the cells' numbers by such a file. What a tracer saw is placed in the text of the whole notebook.
    """

    def named(frame: Frame) -> Frame:
        number = numbers.get(frame.file)
        return replace(frame, file=f"Cell In[{number}]", library=None) if number is not None else frame

    traced = []
    for one in incident.traced:
        cell = next((cell for cell in notebook.cells if cell.count == numbers.get(one.file, -1)), None)
        if cell is not None:
            one = replace(one, file=notebook.path, line=notebook.line_in(cell, one.line))
        traced.append(one)
    return replace(
        incident,
        source=notebook.path,
        traced=tuple(traced),
        exceptions=tuple(
            replace(one, frames=tuple(named(frame) for frame in one.frames)) for one in incident.exceptions
        ),
        forward_frames=tuple(named(frame) for frame in incident.forward_frames),
    )


def changed_cells(fix: Fix, notebook: Notebook) -> dict[int, str]:
    """The new text of each cell that a fix changes, by the cell's number."""
    for change in fix.changes:
        if change.file == notebook.path:
            after = parse_notebook(notebook.path, change.after)
            pairs = zip(notebook.cells, after.cells, strict=True)
            return {old.count: new.text for old, new in pairs if old.text != new.text and old.count is not None}
    return {}


def as_script(cells: list[Ran], changed: Mapping[int, str]) -> str:
    """The cells as one program, with new text for those that have one; magics and shell commands are left out."""
    texts = [changed.get(one.number, one.text) for one in cells]
    head = "from IPython.display import display\n" if any("display" in text for text in texts) else ""
    return head + "".join(
        f"# In[{one.number}]\n{blank_magics(text)}\n\n" for one, text in zip(cells, texts, strict=True)
    )
