"""The first of some items that follow each other goes behind the last of them, with the comments that are its own.

Items are entries of a list, of a configuration file, or statements: anything that stands at known places of a text.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence

from explainer.fix.setting.check import check_edit
from explainer.model.patch import Edit
from explainer.source.setting.setting import YAML, Setting, Span, read_document
from explainer.source.text import TextFile

_TAIL = re.compile(r"((?:[ \t]*,)?)([ \t]*(?:#[^\r\n]*)?)")
_GAP = re.compile(r"(?:[ \t]*(?:\r\n|\r|\n))*")


def move_behind(file: TextFile, spans: Sequence[Span], *, leads: bool) -> Edit | None:
    """The edit that puts what stands at the first of `spans` behind the last; None where comments stand in its way.

    A comment above the first item that `leads` the list may speak of all of it, and stays, unless others have theirs.
    """
    text = file.text
    if all(_has_own_lines(file, one) for one in spans):
        return _move_lines(file, spans, leads=leads)
    between = [text[one[1] : other[0]] for one, other in itertools.pairwise(spans)]
    if any("#" in one for one in between):
        return None
    texts = [text[start:end] for start, end in (*spans[1:], spans[0])]
    new = "".join(f"{one}{behind}" for one, behind in zip(texts, (*between, ""), strict=True))
    return Edit(file=file.path, start=spans[0][0], end=spans[-1][1], new=new)


def move_setting(settings: Sequence[Setting], *, leads: bool) -> Edit | str:
    """The edit that puts the first of some entries of a configuration file's list behind the last, or why there is none.

    Example: `- schedule` and `- optimize` change places in `hooks:`.
    """
    first, last = settings[0], settings[-1]
    fault = read_document(first.file).fault
    spans = [_span(one) for one in settings]
    edit = move_behind(first.file, spans, leads=leads) if fault is None else None
    if edit is None:
        return (
            fault or f"the order of `{'.'.join(first.path[:-1])}` cannot be changed: comments stand between its entries"
        )
    return check_edit(first, edit, ("move", first.path, last.path[-1]))


def _span(setting: Setting) -> Span:
    """Where an entry stands; that of a block of YAML begins with its dash, that of a mapping with its key."""
    start, end = setting.key[0] if setting.key else setting.span[0], setting.span[1]
    if setting.kind == YAML and not setting.is_flow and setting.key is None:
        begin = setting.file.line_start(setting.line)
        lead = setting.file.text[begin:start]
        start = begin + lead.index("-") if lead.strip() == "-" else start
    return start, end


def _has_own_lines(file: TextFile, span: Span) -> bool:
    behind = file.text[_tail(file, span).end() :][:1]
    return not file.text[file.line_start(file.line_of(span[0])) : span[0]].strip() and behind in ("", "\r", "\n")


def _tail(file: TextFile, span: Span) -> re.Match[str]:
    """The comma and the comment behind an item."""
    found = _TAIL.match(file.text, span[1])
    assert found is not None  # both may be empty
    return found


def _move_lines(file: TextFile, spans: Sequence[Span], *, leads: bool) -> Edit:
    lasts = [file.line_of(max(end - 1, start)) for start, end in spans]
    firsts = [file.line_of(spans[0][0]), *(one + 1 for one in lasts[:-1])]
    above = [file.text[file.line_start(first) : span[0]] for first, span in zip(firsts[1:], spans[1:], strict=True)]
    while (not leads or any("#" in one for one in above)) and file.line(firsts[0] - 1).lstrip().startswith("#"):
        firsts[0] -= 1
    chunks = [_chunk(file, *one) for one in zip(spans, firsts, lasts, strict=True)]
    if _tail(file, spans[0])[1] and not _tail(file, spans[-1])[1]:
        chunks[0] = _chunk(file, spans[0], firsts[0], lasts[0], "")
        chunks[-1] = _chunk(file, spans[-1], firsts[-1], lasts[-1], ",")
    if not chunks[-1].endswith(("\n", "\r")):  # the file ends without a line end, and goes on to
        chunks[-1] += file.newline
        chunks[0] = chunks[0].rstrip("\r\n")
    gaps = [found.group() for one in chunks[1:] if (found := _GAP.match(one))]
    moved = [*(one[len(gap) :] for one, gap in zip(chunks[1:], gaps, strict=True)), chunks[0]]
    new = "".join(f"{one}{gap}" for one, gap in zip(moved, (*gaps, ""), strict=True))
    return Edit(file=file.path, start=file.line_start(firsts[0]), end=file.line_start(lasts[-1] + 1), new=new)


def _chunk(file: TextFile, span: Span, first: int, last: int, comma: str | None = None) -> str:
    """The lines of an item with those above it, with another comma where one is given."""
    start, end, tail = file.line_start(first), file.line_start(last + 1), _tail(file, span)
    return f"{file.text[start : span[1]]}{tail[1] if comma is None else comma}{file.text[tail.start(2) : end]}"
