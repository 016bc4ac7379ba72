"""Puts edits into files: splices, parses again, shows the difference. What was not edited stays byte for byte."""

from __future__ import annotations

import difflib
import os
from collections.abc import Iterable, Mapping, Sequence

from explainer.model.patch import Edit, FilePatch, Patch
from explainer.source.file import SourceFile, parse_text

CONTEXT = 3


def make_patch(edits: Sequence[Edit], files: Mapping[str, SourceFile], root: str) -> Patch | str:
    """The patch of some edits, or, as a string, why there is none: they overlap, change nothing, or break the syntax."""
    changed: list[FilePatch] = []
    diffs: list[str] = []
    for path in dict.fromkeys(edit.file for edit in edits):
        file = files[path]
        text = splice(file.text, [edit for edit in edits if edit.file == path])
        if text is None:
            return "two edits overlap"
        if text == file.text:
            continue
        fault = parse_text(text)[1] if path.endswith(".py") else None
        if fault:
            return f"{os.path.relpath(path, root)}: the result {fault}"
        try:
            after = file.encode(text)
        except UnicodeEncodeError:
            return f"{os.path.relpath(path, root)}: the result does not fit its {file.encoding} encoding"
        changed.append(FilePatch(file=path, before=file.data, after=after))
        diffs.append(unified_diff(file.text, text, os.path.relpath(path, root)))
    if not changed:
        return "nothing changes"
    return Patch(files=tuple(changed), diff="".join(diffs))


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
