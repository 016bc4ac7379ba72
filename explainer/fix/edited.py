"""A fix as a person has changed it before accepting it: its files again as patches, checked as codemods' edits are.

A notebook is shown by the cells that the fix changes: `NOTEBOOK Cell In[3]`.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from typing import NamedTuple

from explainer.fix.splice import make_patch
from explainer.model.finding import Fix
from explainer.model.journal import Refused
from explainer.model.patch import Edit, FilePatch
from explainer.source.cell import Misshapen
from explainer.source.file import parse_source
from explainer.source.notebook import Notebook, cell_name, parse_notebook
from explainer.source.text import TextFile, Unreadable, make_text


class _Part(NamedTuple):
    """What a person edits as one text: a file, or a cell of a notebook."""

    before: str
    after: str
    cell: int | None = None


def texts_of(fix: Fix) -> dict[str, str] | Refused:
    """The files of a fix by their paths, and the cells of notebooks, as they are once it is applied."""
    found: dict[str, str] = {}
    for one in fix.changes:
        parts = _parts(one)
        if isinstance(parts, Refused):
            return parts
        found.update({name: part.after for name, part in parts.items()})
    return found or Refused(reason=f"`{fix.id}` has no edit: {fix.title}")


def lines_of(fix: Fix) -> dict[str, int]:
    """The number of the first line that a fix changes, by the names of `texts_of`."""
    found: dict[str, int] = {}
    for one in fix.changes:
        parts = _parts(one)
        for name, part in {} if isinstance(parts, Refused) else parts.items():
            found[name] = first_change(part.before, part.after)
    return found


def edit_fix(fix: Fix, texts: Mapping[str, str], root: str) -> Fix | Refused:
    """The fix with `texts` in its files and cells instead of what was planned; why not, where one does not parse."""
    files: dict[str, TextFile] = {}
    edits: list[Edit] = []
    for one in fix.changes:
        file, parts = _file(one, one.before), _parts(one)
        if isinstance(file, Refused):
            return file
        if isinstance(parts, Refused):
            return parts
        files[one.file] = file
        edits += [
            Edit(file=one.file, start=0, end=len(part.before), new=texts[name], cell=part.cell)
            for name, part in parts.items()
        ]
    patch = make_patch(edits, files, root)
    if isinstance(patch, str):
        return Refused(reason=patch)
    return replace(fix, patch=patch.diff, changes=patch.files)


def first_change(before: str, after: str) -> int:
    """The number, from 1, of the first line that differs; the last one of the shorter text where none does."""
    old, new = before.split("\n"), after.split("\n")
    alike = min(len(old), len(new))
    return next((at for at, (one, other) in enumerate(zip(old, new, strict=False), 1) if one != other), alike)


def _parts(patch: FilePatch) -> dict[str, _Part] | Refused:
    """What of a file is edited: all of it, or the cells that the fix changes."""
    before, after = _file(patch, patch.before), _file(patch, patch.after)
    if isinstance(before, Refused):
        return before
    if isinstance(after, Refused):
        return after
    if not isinstance(before, Notebook) or not isinstance(after, Notebook):
        return {patch.file: _Part(before.text, after.text)}
    return {
        f"{patch.file} {cell_name(old)}": _Part(old.text, new.text, old.index)
        for old, new in zip(before.cells, after.cells, strict=True)
        if old.text != new.text
    }


def _file(patch: FilePatch, data: bytes) -> TextFile | Refused:
    try:
        if patch.file.endswith(".ipynb"):
            return parse_notebook(patch.file, data)
        return parse_source(patch.file, data) if patch.file.endswith(".py") else make_text(patch.file, data)
    except Unreadable as error:
        return Refused(reason=str(error))
    except (Misshapen, UnicodeDecodeError) as error:
        return Refused(reason=f"{os.path.basename(patch.file)}: {error}")
