"""Puts edits into files: splices, parses again, shows the difference. What was not edited stays byte for byte."""

from __future__ import annotations

import bisect
import difflib
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from explainer.model.patch import Edit, FilePatch, Patch
from explainer.source.file import SourceFile, parse_text
from explainer.source.notebook import Notebook, cell_name, is_python
from explainer.source.setting.setting import kind_of, read_document
from explainer.source.text import TextFile, make_text

CONTEXT = 3
LONG = 50_000  # characters from which on only the statements that were touched are parsed again
NOTHING = "nothing changes"


def make_patch(edits: Sequence[Edit], files: Mapping[str, TextFile], root: str) -> Patch | str:
    """The patch of some edits, or, as a string, why there is none: they overlap, change nothing, or break the syntax."""
    changed: list[FilePatch] = []
    diffs: list[str] = []
    for path in dict.fromkeys(edit.file for edit in edits):
        file = files[path]
        if isinstance(file, Notebook):
            found = patch_cells(file, [edit for edit in edits if edit.file == path], os.path.relpath(path, root))
            if found == NOTHING:
                continue
            if isinstance(found, str):
                return found
            changed += found.files
            diffs.append(found.diff)
            continue
        own = [edit for edit in edits if edit.file == path]
        text = splice(file.text, own)
        if text is None:
            return "two edits overlap"
        if text == file.text:
            continue
        try:
            after = file.encode(text)
        except UnicodeEncodeError:
            return f"{os.path.relpath(path, root)}: the result does not fit its {file.encoding} encoding"
        fault = _fault(file, own, text, after)
        if fault:
            return f"{os.path.relpath(path, root)}: the result {fault}"
        changed.append(FilePatch(file=path, before=file.data, after=after))
        diffs.append(unified_diff(file.text, text, os.path.relpath(path, root)))
    if not changed:
        return NOTHING
    return Patch(files=tuple(changed), diff="".join(diffs))


def patch_cells(notebook: Notebook, edits: Sequence[Edit], name: str) -> Patch | str:
    """The patch of the cells of a notebook, shown as their source; why there is none, as a string."""
    edits = notebook.in_cells(edits) or ()
    changed: list[Edit] = []
    diffs: list[str] = []
    for cell in notebook.cells:
        own = [edit for edit in edits if edit.cell == cell.index]
        text = splice(cell.text, own)
        if text is None:
            return "two edits overlap"
        if text == cell.text:
            continue
        if is_python(cell.text) and not is_python(text):
            return f"{name}: the result of {cell_name(cell)} does not parse"
        changed += own
        before, after = (f"{one.rstrip()}\n" for one in (cell.text, text))  # the last line of a cell has no end to show
        diffs.append(unified_diff(before, after, f"{name} {cell_name(cell)}"))
    if not edits:
        return f"{name}: an edit reaches over the end of a cell"
    if not changed:
        return NOTHING
    file = FilePatch(file=notebook.path, before=notebook.data, after=notebook.written(changed))
    return Patch(files=(file,), diff="".join(diffs))


def _fault(file: TextFile, edits: Sequence[Edit], text: str, data: bytes) -> str | None:
    """Why a file would not parse any more; None for one that does, or that nobody here can parse."""
    if file.path.endswith(".py"):
        return parse_text(_touched(file, edits) or text)[1]
    return read_document(make_text(file.path, data)).fault if kind_of(file.path) else None


def _touched(file: TextFile, edits: Sequence[Edit]) -> str | None:
    """The statements at the top of a file that edits lie in, as they are afterwards: the others parse as they did.

    None where an edit lies between such statements, or a part of the file can say how another is read.
    """
    tree = file.tree if isinstance(file, SourceFile) else None
    if tree is None or len(file.text) < LONG:
        return None
    start, end = min(edit.start for edit in edits), max(edit.end for edit in edits)
    starts = [
        file.line_start(min([one.lineno, *(each.lineno for each in getattr(one, "decorator_list", ()))]))
        for one in tree.body
    ]
    ends = [file.line_start((one.end_lineno or one.lineno) + 1) for one in tree.body]
    first = bisect.bisect_right(starts, start) - 1
    last = bisect.bisect_left(ends, end)
    if first < 0 or last >= len(ends) or ends[first] < start or starts[last] > end:
        return None
    begin, stop = starts[first], ends[last]
    moved = [replace(edit, start=edit.start - begin, end=edit.end - begin) for edit in edits]
    return splice(file.text[begin:stop], moved)


def splice(text: str, edits: Iterable[Edit]) -> str | None:
    """`text` with the edits in it; None where two of them overlap or reach outside."""
    parts: list[str] = []
    done = 0
    for edit in sorted(edits, key=lambda one: (one.start, one.end)):
        if edit.start < done or edit.end < edit.start or edit.end > len(text):
            return None
        parts += [text[done : edit.start], edit.new]
        done = edit.end
    return "".join([*parts, text[done:]])


def unified_diff(before: str, after: str, name: str) -> str:
    """The unified diff of one file, as `patch` reads it; line ends as they are, a missing last one marked."""
    old, new = _keep_ends(before), _keep_ends(after)
    lines = difflib.unified_diff(old, new, f"a/{name}", f"b/{name}", n=CONTEXT)
    return "".join(line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines)


def _keep_ends(text: str) -> list[str]:
    """Lines with their ends, split at line feeds only: other separators belong to the line."""
    lines = text.split("\n")
    return [f"{line}\n" for line in lines[:-1]] + ([lines[-1]] if lines[-1] else [])
