"""Texts as the screens show them: prose with code in it, labelled paragraphs."""

from __future__ import annotations

import re

from textual.app import ComposeResult
from textual.containers import Horizontal
from textual.content import Content
from textual.widgets import Static

from explainer.render.visible import visible

_CODE = re.compile(r"`([^`\n]+)`")
_INSTALLED = re.compile(r"[\w./\\~-]*/(?:site|dist)-packages/")


def styled(text: str, style: str = "") -> Content:
    """A text of others, made harmless, in one style."""
    return Content.styled(visible(text), style) if style else Content(visible(text))


def prose(text: str, style: str = "") -> Content:
    """A sentence in which what stands in backticks is shown as code."""
    parts: list[Content] = []
    end = 0
    for found in _CODE.finditer(text):
        parts += [styled(text[end : found.start()], style), styled(found[1], "bold $text-primary")]
        end = found.end()
    parts.append(styled(text[end:], style))
    return Content.assemble(*parts)


def short(text: str) -> str:
    """A text in which installed files are named from their package on."""
    return _INSTALLED.sub("", text)


class Item(Horizontal):
    """A paragraph with a label in the left margin, and a mark before its lines."""

    DEFAULT_CSS = """
    Item { height: auto; }
    Item > .label { width: 7; color: $quiet; }
    Item > .mark { width: 2; }
    Item > .text { width: 1fr; }
    Item.-gap { margin-top: 1; }
    """

    def __init__(self, label: str, text: Content, *, mark: Content | None = None, gap: bool = False) -> None:
        super().__init__(classes="-gap" if gap else "")
        self._label = label
        self._mark = mark
        self._text = text

    def compose(self) -> ComposeResult:
        """The label and the text."""
        yield Static(self._label, classes="label", markup=False)
        if self._mark is not None:
            yield Static(self._mark, classes="mark")
        yield Static(self._text, classes="text")
