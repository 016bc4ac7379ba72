"""A unified diff as a person reads it: in one column, or the old beside the new."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from textual.content import Content
from textual.widgets import Static

from explainer.render.visible import visible

_HUNK = re.compile(r"@@ -(\d+)(?:,\d+)? \+(\d+)(?:,\d+)? @@(.*)")
_STYLES = {
    "+": "$added on $added-back",
    "-": "$removed on $removed-back",
    " ": "",
    "@": "$quiet",
    "f": "bold $text-primary",
}


@dataclass(frozen=True, slots=True)
class Row:
    """One line: its kind ("+", "-", " ", "@" for a hunk, "f" for a file), its text, its numbers before and after."""

    kind: str
    text: str
    old: int | None = None
    new: int | None = None


def read_rows(diff: str) -> Iterator[Row]:
    """The lines of a unified diff with their numbers."""
    old = new = 0
    for line in diff.split("\n")[:-1]:
        text = visible(line.removesuffix("\r").expandtabs(4))
        if line.startswith("--- "):
            continue
        if line.startswith("+++ "):
            yield Row("f", text[4:].removeprefix("b/"))
        elif found := _HUNK.match(line):
            old, new = int(found[1]), int(found[2])
            yield Row("@", f"line {new}{found[3]}")
        elif line.startswith("\\"):
            yield Row("@", text[2:].lower())
        elif line.startswith("+"):
            yield Row("+", text[1:], None, new)
            new += 1
        elif line.startswith("-"):
            yield Row("-", text[1:], old, None)
            old += 1
        else:
            yield Row(" ", text[1:], old, new)
            old, new = old + 1, new + 1


def unified(diff: str, width: int) -> Content:
    """All in one column, each line with its number after the change, removed ones with theirs before it."""
    rows = list(read_rows(diff))
    wide = max((len(str(row.new or row.old)) for row in rows if row.new or row.old), default=1)
    return Content("\n").join([_unified_row(row, wide, width) for row in rows])


def _unified_row(row: Row, wide: int, width: int) -> Content:
    if row.kind in "f@":
        return Content.styled(row.text if row.kind == "f" else f"{'':>{wide}} {row.text}", _STYLES[row.kind])
    number = row.old if row.kind == "-" else row.new
    room = max(width - wide - 3, 10)
    parts = [row.text[at : at + room] for at in range(0, len(row.text), room)] or [""]
    lines = [
        Content.styled(f"{number:>{wide}} ", "$quiet") + _line(f"{row.kind} {parts[0]}", _STYLES[row.kind], room + 2)
    ]
    lines += [
        Content.styled(f"{'':>{wide}} ", "$quiet") + _line(f"  {part}", _STYLES[row.kind], room + 2)
        for part in parts[1:]
    ]
    return Content("\n").join(lines)


def side_by_side(diff: str, width: int) -> Content:
    """The old at the left, the new at the right."""
    rows = list(read_rows(diff))
    wide = max((len(str(row.new or row.old)) for row in rows if row.new or row.old), default=1)
    half = max((width - 3) // 2, 20)
    shown: list[Content] = []
    for left, right in _pairs(rows):
        if left is not None and left.kind in "f@":
            shown.append(_unified_row(left, wide, width))
            continue
        gap = Content.styled(" │ ", "$quiet")
        shown.append(
            _half(left, left.old if left else None, wide, half)
            + gap
            + _half(right, right.new if right else None, wide, half)
        )
    return Content("\n").join(shown)


def _half(row: Row | None, number: int | None, wide: int, width: int) -> Content:
    if row is None:
        return Content(" " * width)
    room = width - wide - 3
    text = f"{row.kind} {row.text}"
    text = text if len(text) <= room + 2 else text[: room + 1] + "…"
    return Content.styled(f"{number or '':>{wide}} ", "$quiet") + _line(text, _STYLES[row.kind], room + 2)


def _line(text: str, style: str, width: int) -> Content:
    padded = text.ljust(width) if " on " in style else text
    return Content.styled(padded, style) if style else Content(padded.ljust(width))


def _pairs(rows: list[Row]) -> Iterator[tuple[Row | None, Row | None]]:
    """Removed lines beside the added ones that follow them."""
    removed: list[Row] = []
    added: list[Row] = []

    def flush() -> Iterator[tuple[Row | None, Row | None]]:
        for at in range(max(len(removed), len(added))):
            yield removed[at] if at < len(removed) else None, added[at] if at < len(added) else None
        removed.clear()
        added.clear()

    for row in rows:
        if row.kind == "-":
            if added:
                yield from flush()
            removed.append(row)
        elif row.kind == "+":
            added.append(row)
        else:
            yield from flush()
            yield (row, row) if row.kind == " " else (row, None)
    yield from flush()


class DiffView(Static):
    """Shows a diff in the width that there is."""

    DEFAULT_CSS = """
    DiffView { height: auto; text-wrap: nowrap; }
    """

    SIDE = 96  # columns from which on two halves are readable

    def __init__(self, **keywords: str) -> None:
        super().__init__(**keywords)  # type: ignore[arg-type]
        self._diff = ""
        self.is_beside = False

    def show(self, diff: str, *, is_beside: bool) -> None:
        """Show another diff, or the same one in the other form."""
        self._diff, self.is_beside = diff, is_beside
        self._draw()

    def on_resize(self) -> None:
        """Draw for the new width."""
        self._draw()

    def _draw(self) -> None:
        width = max(self.size.width, 40)
        is_beside = self.is_beside and width >= self.SIDE
        self.update(side_by_side(self._diff, width) if is_beside else unified(self._diff, width))
