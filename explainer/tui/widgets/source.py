"""The user's own lines with the guilty expression marked."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from textual.content import Content, Span
from textual.widgets import Static

from explainer.render.visible import visible
from explainer.source.excerpt import MAX_SOURCE

if TYPE_CHECKING:
    from explainer.model.finding import Culprit

MAX_COLUMNS = 300


class SourceView(Static):
    """Lines around a culprit, read from its file; from the report where the file is not here."""

    DEFAULT_CSS = """
    SourceView { height: auto; text-wrap: nowrap; text-overflow: ellipsis; background: $surface; padding: 0 1; }
    """

    def __init__(self, culprit: Culprit, root: str, *, around: int) -> None:
        super().__init__(source_of(culprit, root, around))


def source_of(culprit: Culprit, root: str, around: int) -> Content:
    """The lines, numbered; the guilty one with its expression marked."""
    lines, first = _lines(culprit, root, around)
    guilty = _code(culprit)
    code = _coloured("\n".join(lines), culprit.file)
    wide = len(str(first + len(lines)))
    shown: list[Content] = []
    for number, line in enumerate(code.split("\n", allow_blank=True), first):
        is_guilty = number == (culprit.line or first + len(culprit.before))
        gutter = f"{number if culprit.line else '':>{wide}} "
        if is_guilty:
            start, end = _mark(culprit, guilty, line.plain)
            line = line.stylize("$foreground on $guilty-back").stylize("bold underline $text-error", start, end)
            shown.append(Content.styled(f"{gutter}▌ ", "bold $text-error") + line)
        else:
            shown.append(Content.styled(f"{gutter}  ", "$quiet") + line)
    return Content("\n").join(shown)


def _code(culprit: Culprit) -> str:
    return visible((culprit.code or "").split("\n")[0]).rstrip()


def _lines(culprit: Culprit, root: str, around: int) -> tuple[list[str], int]:
    """The lines to show and the number of the first."""
    read = _read(culprit, root, around)
    if read is not None:
        return read
    lines = [*culprit.before, culprit.code or "", *culprit.after]
    shown = [visible(one.split("\n")[0].expandtabs(4))[:MAX_COLUMNS] for one in lines]
    return shown, max((culprit.line or 1) - len(culprit.before), 1)


def _read(culprit: Culprit, root: str, around: int) -> tuple[list[str], int] | None:
    path = os.path.join(root, culprit.file)
    try:
        if not culprit.line or not os.path.isfile(path) or os.path.getsize(path) > MAX_SOURCE:
            return None
        with open(path, encoding="utf-8", errors="replace") as file:
            text = file.read().split("\n")
    except (OSError, ValueError):
        return None
    at = culprit.line - 1
    if at >= len(text) or (culprit.code and culprit.code.split("\n")[0].strip() not in text[at]):
        return None  # another version of the file than the one that failed
    first = max(at - around, 0)
    window = [visible(one.expandtabs(4).rstrip("\r"))[:MAX_COLUMNS] for one in text[first : at + around + 1]]
    while len(window) > 1 and not window[-1].strip():
        window.pop()
    return window, first + 1


def _mark(culprit: Culprit, guilty: str, line: str) -> tuple[int, int]:
    """The columns of the guilty expression in the line as it is shown."""
    indent = len(line) - len(line.lstrip())
    shift = line.find(guilty.strip()) - (len(guilty) - len(guilty.lstrip())) if guilty.strip() in line else indent
    start, end = culprit.mark or (len(guilty) - len(guilty.lstrip()), len(guilty))
    return max(start + shift, indent), max(min(end + shift, len(line)), indent + 1)


def _coloured(text: str, file: str) -> Content:
    """The text with its syntax in the theme's colours; comments and strings only, so that the guilty part stands out."""
    if not file.endswith((".py", ".ipynb")):
        return Content(text)
    from pygments.lexers.python import PythonLexer
    from pygments.token import Comment, Keyword, Literal

    spans: list[Span] = []
    for at, kind, part in PythonLexer(stripnl=False, ensurenl=False).get_tokens_unprocessed(text):
        style = "$quiet" if kind in Comment else "$text-accent" if kind in Keyword else ""
        style = "$text-success" if kind in Literal.String else style
        if style:
            spans.append(Span(at, at + len(part), style))
    return Content(text, spans)
