"""The code cells of a notebook as one source file, in which the names of all cells are known to all.

Cells stand in the order of the notebook, two line ends between them. Magics and cells that do not parse are blanked, for
the parser alone, so that every offset stays.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TypeVar

from explainer.model.finding import Culprit, Evidence, Finding
from explainer.model.incident import Frame, Incident
from explainer.model.patch import Edit
from explainer.source.cell import Cell, read_cells
from explainer.source.file import SourceFile, parse_text
from explainer.source.place import is_inside
from explainer.source.text import Unreadable, read_bytes

MAX_NOTEBOOK = 64 << 20
_NUMBERED = re.compile(r"(?:Cell|Input) In ?\[(\d+)\]|ipython-input-(\d+)-")
Place = TypeVar("Place", Culprit, Evidence)
_BETWEEN = "\n\n"
_MAGIC = re.compile(r"(?P<indent>\s*)(?:[%!?]|(?P<name>[\w, .]+=\s*)[%!]|[\w.]+\?\??\s*$)")
_KEEPS_CODE = re.compile(r"%%(?:time|timeit|capture|prun|memit|skip)\b")
_LINE = re.compile(r".*(?:\n|$)")


@dataclass(frozen=True)
class Notebook(SourceFile):
    """A notebook: `data` are the bytes of the file, `text` the source of its code cells."""

    cells: tuple[Cell, ...] = field(default=(), kw_only=True)

    @cached_property
    def starts(self) -> tuple[int, ...]:
        """The offset at which each cell begins."""
        found, at = [], 0
        for cell in self.cells:
            found.append(at)
            at += len(cell.text) + len(_BETWEEN)
        return tuple(found)

    def place(self, line: int) -> tuple[Cell, int]:
        """The cell that holds a line of the text, and the line (from 1) in it."""
        offset = self.line_start(line)
        number = max((at for at, start in enumerate(self.starts) if start <= offset), default=0)
        return self.cells[number], line - self.line_of(self.starts[number]) + 1

    def line_in(self, cell: Cell, line: int) -> int:
        """The line of the text at which line `line` (from 1) of a cell stands."""
        return self.line_of(self.starts[self.cells.index(cell)]) + line - 1

    def name_cells(self, finding: Finding) -> Finding:
        """The finding with its lines of this text named as IPython names them: by cell and line in it."""

        def named(one: Place) -> Place:
            if one.file != self.path or one.line is None:
                return one
            cell, line = self.place(one.line)
            return replace(one, file=cell_name(cell), line=line)

        culprits = {(one.file, one.line): one for one in reversed([named(one) for one in finding.culprits])}
        return replace(
            finding,
            culprits=tuple(reversed(culprits.values())),
            evidence=tuple(_renamed(one, named(one)) for one in finding.evidence),
        )

    def in_cells(self, edits: Sequence[Edit]) -> list[Edit] | None:
        """The edits as edits of cells; None where one reaches over a cell's end."""
        placed = [edit if edit.cell is not None else self._in_cell(edit) for edit in edits]
        return [edit for edit in placed if edit is not None] if None not in placed else None

    def _in_cell(self, edit: Edit) -> Edit | None:
        for cell, start in zip(self.cells, self.starts, strict=True):
            first, last, size = edit.start - start, edit.end - start, len(cell.text)
            if not 0 <= first <= size + 1:
                continue
            if first == last == size + 1:  # after the last line, which has no end of its own
                return Edit(file=edit.file, start=size, end=size, new=f"\n{edit.new.rstrip()}", cell=cell.index)
            if first <= size and last <= size + 1:
                return Edit(file=edit.file, start=first, end=min(last, size), new=edit.new, cell=cell.index)
        return None

    def written(self, edits: Sequence[Edit]) -> bytes:
        """The bytes of the file with edits of cells in it, which do not overlap."""
        document = self.data.decode("utf-8-sig")
        parts, done = [], 0
        for cell in self.cells:
            own = sorted((one.start, one.end, one.new) for one in edits if one.cell == cell.index)
            if own:
                start, end, new = cell.rewritten(own)
                parts += [document[done:start], new]
                done = end
        return self.encode("".join([*parts, document[done:]]))


def read_notebook(path: str) -> Notebook:
    """Read the code cells of a notebook.

    Raises:
        Unreadable: no regular file, too large, not UTF-8, or no notebook of the form that Jupyter writes.
    """
    try:
        return parse_notebook(path, read_bytes(path, MAX_NOTEBOOK))
    except ValueError as error:
        raise Unreadable(f"{path}: is no notebook: {error}") from error


def parse_notebook(path: str, data: bytes) -> Notebook:
    """The notebook at `path` whose content is `data`.

    Raises:
        Misshapen: it is none.
        UnicodeDecodeError: it is not UTF-8.
    """
    is_marked = data.startswith(b"\xef\xbb\xbf")
    cells = read_cells(data.decode("utf-8-sig"))
    text = "".join(cell.text + _BETWEEN for cell in cells)
    tree, fault = parse_text("".join(blank_magics(cell.text) + _BETWEEN for cell in cells))
    return Notebook(path, data, text, "utf-8", tree=tree, fault=fault, is_marked=is_marked, cells=tuple(cells))


def in_notebook(incident: Incident, root: str) -> tuple[Incident, Notebook | None]:
    """The incident with the frames of cells placed in the notebook that it was read from, and that notebook.

    A notebook outside of the project at `root`, a real path, or one that cannot be read, changes nothing.
    """
    path = os.path.realpath(incident.source or "")
    try:
        notebook = read_notebook(path) if is_inside(path, root) else None
    except Unreadable:
        notebook = None
    return (incident, None) if notebook is None else (place_frames(incident, notebook), notebook)


def place_frames(incident: Incident, notebook: Notebook) -> Incident:
    """The incident with the frames that name a cell naming the notebook, by the line of its text."""

    def placed(frame: Frame) -> Frame:
        line = _line_of(frame, notebook) if frame.library is None else None
        return replace(frame, file=notebook.path, line=line) if line else frame

    return replace(
        incident,
        exceptions=tuple(
            replace(one, frames=tuple(placed(frame) for frame in one.frames)) for one in incident.exceptions
        ),
        forward_frames=tuple(placed(frame) for frame in incident.forward_frames),
    )


def _line_of(frame: Frame, notebook: Notebook) -> int | None:
    """The line of the notebook's text that a frame means: by execution count, and where its code stands in one cell alone."""
    numbered = _NUMBERED.search(frame.file)
    if frame.line is None or not (numbered or "ipykernel" in frame.file or frame.file.endswith(".ipynb")):
        return None
    lines = [notebook.line_in(cell, frame.line) for cell in notebook.cells if cell.text.count("\n") + 1 >= frame.line]
    counted = [line for line in lines if numbered and notebook.place(line)[0].count == int(numbered[1] or numbered[2])]
    for found in (counted, lines):
        fitting = [line for line in found if not frame.code or notebook.line(line).strip() == frame.code.strip()]
        if len(fitting) == 1 and (frame.code or found is counted):
            return fitting[0]
    return None


def _renamed(evidence: Evidence, named: Evidence) -> Evidence:
    old, new = f"{os.path.basename(evidence.file or '')}:{evidence.line}", f"{named.file}, line {named.line}"
    return replace(named, says=evidence.says.replace(old, new)) if named is not evidence else named


def cell_name(cell: Cell) -> str:
    """A cell as IPython names it in a traceback; by its place in the notebook where it was not run."""
    return f"Cell In[{cell.count}]" if cell.count is not None else f"cell {cell.index + 1} of the notebook"


def blank_magics(text: str) -> str:
    """A cell's source as Python: of the same length, magics as `0`; only line ends where that does not parse either."""
    if parse_text(text)[1] is None:
        return text
    first = next((line for line in text.split("\n") if line.strip()), "")
    if not first.startswith("%%") or _KEEPS_CODE.match(first):
        blanked = "".join(_blank_lines(text))
        if parse_text(blanked)[1] is None:
            return blanked
    return re.sub(r"[^\n]", " ", text)


def is_python(text: str) -> bool:
    """Whether a cell's source is Python but for magics, or has none at all."""
    return parse_text(blank_magics(text))[1] is None and (bool(blank_magics(text).strip()) or not text.strip())


def _blank_lines(text: str) -> Iterator[str]:
    is_continued = False
    for found in _LINE.finditer(text):
        line = found.group()
        body = line.rstrip("\n")
        magic = _MAGIC.match(body)
        if is_continued:
            yield " " * len(body) + line[len(body) :]
        elif magic and not body.startswith("%%"):
            kept = magic["indent"] + (magic["name"] or "")
            yield f"{kept}0".ljust(len(body))[: len(body)] + line[len(body) :]
        else:
            yield (" " * len(body) if body.startswith("%%") else body) + line[len(body) :]
        is_continued = (is_continued or bool(magic)) and body.endswith("\\")
