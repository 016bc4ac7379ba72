"""A small line plot of braille dots: two columns and four rows of dots in each cell."""

from __future__ import annotations

import math
from collections.abc import Sequence

from textual.content import Content
from textual.widgets import Static

_DOTS = ((0x01, 0x02, 0x04, 0x40), (0x08, 0x10, 0x20, 0x80))
_LABEL = 9


def draw(values: Sequence[float], width: int, height: int) -> tuple[list[str], list[int]]:
    """The lines of a plot of `width` by `height` cells, and the cells of the columns in which a value is not finite."""
    columns, rows = width * 2, height * 4
    finite = [value for value in values if math.isfinite(value)]
    low, high = (min(finite), max(finite)) if finite else (0.0, 0.0)
    cells = [[0] * width for _ in range(height)]
    bad: list[int] = []
    last: tuple[int, int] | None = None
    for at, value in enumerate(values):
        x = round(at * (columns - 1) / max(len(values) - 1, 1))
        if not math.isfinite(value):
            bad.append(x // 2)
            last = None
            continue
        share = (value - low) / (high - low) if high > low else 0.5
        y = round((1 - share) * (rows - 1))
        for dot_x, dot_y in _segment(last or (x, y), (x, y)):
            cells[dot_y // 4][dot_x // 2] |= _DOTS[dot_x % 2][dot_y % 4]
        last = (x, y)
    return ["".join(chr(0x2800 + cell) for cell in row) for row in cells], sorted(set(bad))


def _segment(start: tuple[int, int], end: tuple[int, int]) -> list[tuple[int, int]]:
    """The dots between two dots, both included."""
    (x0, y0), (x1, y1) = start, end
    count = max(abs(x1 - x0), abs(y1 - y0), 1)
    return [(round(x0 + (x1 - x0) * at / count), round(y0 + (y1 - y0) * at / count)) for at in range(count + 1)]


class Plot(Static):
    """Values over the steps, with their range at the left and the last one in the title."""

    DEFAULT_CSS = """
    Plot { height: 7; width: 1fr; text-wrap: nowrap; padding: 0 1; }
    """

    def __init__(self, title: str, empty: str, **keywords: str) -> None:
        super().__init__(**keywords)  # type: ignore[arg-type]
        self._title = title
        self._empty = empty
        self._values: list[float] = []
        self._of = 0

    def show(self, values: Sequence[float], *, empty: str, of: int = 0) -> None:
        """Show other values, nan and inf as crosses, `of` so many steps where not all were looked at; `empty` without any."""
        self._values, self._empty, self._of = list(values), empty, of
        self._draw()

    def on_resize(self) -> None:
        """Draw for the new size."""
        self._draw()

    def _draw(self) -> None:
        width = max(self.size.width - _LABEL - 1, 4)
        height = max(self.size.height - 1, 2)
        if not self._values:
            self.update(Content.assemble((self._title, "bold"), ("  " + self._empty, "$quiet")))
            return
        lines, bad = draw(self._values, width, height)
        last = self._values[-1]
        style = "$text-primary" if math.isfinite(last) else "bold $text-error"
        head = Content.assemble(
            (self._title, "bold"), (f"  {last:.4g}", style), (f"  {_steps(len(self._values), self._of)}", "$quiet")
        )
        finite = [value for value in self._values if math.isfinite(value)]
        labels = [""] * height
        if finite:
            labels[0], labels[-1] = f"{max(finite):.3g}", f"{min(finite):.3g}" if min(finite) != max(finite) else ""
        shown = [head]
        for at, line in enumerate(lines):
            text = Content.styled(f"{labels[at]:>{_LABEL - 1}} ", "$quiet") + Content.styled(line, "$text-primary")
            if at == 0:
                for cell in bad:
                    text = _crossed(text, _LABEL + min(cell, width - 1))
            shown.append(text)
        self.update(Content("\n").join(shown))


def _crossed(text: Content, at: int) -> Content:
    return text[:at] + Content.styled("×", "bold $text-error") + text[at + 1 :]


def _steps(count: int, of: int) -> str:
    if count < of:
        return f"{count} of {of} steps"
    return f"{count} step" if count == 1 else f"{count} steps"
