"""A fix as a person has changed it before accepting it: its files again as patches, checked as codemods' edits are."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace

from explainer.fix.splice import make_patch
from explainer.model.finding import Fix
from explainer.model.journal import Refused
from explainer.model.patch import Edit, FilePatch
from explainer.source.file import parse_source
from explainer.source.text import TextFile, Unreadable, make_text


def texts_of(fix: Fix) -> dict[str, str] | Refused:
    """The files of a fix by their paths, as they are once it is applied."""
    found: dict[str, str] = {}
    for one in fix.changes:
        file = _file(one, one.after)
        if isinstance(file, Refused):
            return file
        found[one.file] = file.text
    return found or Refused(reason=f"`{fix.id}` has no edit: {fix.title}")


def edit_fix(fix: Fix, texts: Mapping[str, str], root: str) -> Fix | Refused:
    """The fix with `texts` in its files instead of what was planned; why not, where one does not parse."""
    files: dict[str, TextFile] = {}
    edits: list[Edit] = []
    for one in fix.changes:
        file = _file(one, one.before)
        if isinstance(file, Refused):
            return file
        files[one.file] = file
        edits.append(Edit(file=one.file, start=0, end=len(file.text), new=texts[one.file]))
    patch = make_patch(edits, files, root)
    if isinstance(patch, str):
        return Refused(reason=patch)
    return replace(fix, patch=patch.diff, changes=patch.files)


def _file(patch: FilePatch, data: bytes) -> TextFile | Refused:
    name = os.path.basename(patch.file)
    if name.endswith(".ipynb"):
        return Refused(reason=f"{name}: a notebook is edited in its own editor")
    try:
        return parse_source(patch.file, data) if name.endswith(".py") else make_text(patch.file, data)
    except Unreadable as error:
        return Refused(reason=str(error))
