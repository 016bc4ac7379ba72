"""Tracebacks that rich draws in a box, as typer, LLaMA-Factory, accelerate and textual programs print them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache

from explainer.ingest.chain import Chain, link_of
from explainer.ingest.library import own
from explainer.ingest.traceback import HEADER_WORDS, Stops, exception_line, read_message
from explainer.model.incident import ExceptionRecord, Frame

_SIDES = "│|"
_CORNERS = "╭╰┌└+"
_GAP = 4
_MAX_FOLDED = 4096


def starts_box(texts: Sequence[str], index: int) -> bool:
    """Whether a boxed traceback begins at `index`: its title, or, cut, the inside of a box."""
    text = texts[index].lstrip()
    if text[:1] in ("╭", "┌", "+"):
        return HEADER_WORDS in text
    return text[:1] == "│" and (text.rstrip().endswith("│") or "❱" in text)


def read_box(texts: Sequence[str], start: int, stops: Stops) -> Chain | None:
    """The chain of boxed exceptions that begins at `start`."""
    records: list[ExceptionRecord] = []
    index, link = start, None
    while index < len(texts) and starts_box(texts, index):
        record, index = _read_one(texts, index, link, stops)
        records.append(record)
        after = _skip_blank(texts, index)
        link = link_of(texts[after]) if after < len(texts) else None
        if link is None:
            break
        index = _skip_blank(texts, after + 1)
    return Chain(tuple(records), index) if records else None


def _read_one(texts: Sequence[str], start: int, link: str | None, stops: Stops) -> tuple[ExceptionRecord, int]:
    index = start
    inside: list[str] = []
    while index < len(texts) and texts[index].strip() and texts[index].lstrip()[0] in _SIDES + _CORNERS:
        if index > start and HEADER_WORDS in texts[index]:
            break
        if texts[index].lstrip()[0] in _SIDES:
            inside.append(_content(texts[index]))
        index += 1
    frames = tuple(own(frame) for frame in _read_frames(inside))
    ending = exception_line().match(texts[_skip_noise(texts, index)]) if index < len(texts) else None
    if ending is None:
        return ExceptionRecord(type="", frames=frames, link=link, is_complete=False), max(index, start + 1)
    at = _skip_noise(texts, index)
    message, end = read_message(texts, at, ending["message"] or "", stops)
    return ExceptionRecord(type=ending["type"], message=message, frames=frames, link=link), end


def _skip_blank(texts: Sequence[str], index: int) -> int:
    while index < len(texts) and not texts[index].strip():
        index += 1
    return index


def _skip_noise(texts: Sequence[str], index: int) -> int:
    """The line after a box that names the exception; blank or stray lines may stand between."""
    for at in range(index, min(index + _GAP, len(texts))):
        if texts[at].strip() and exception_line().match(texts[at]):
            return at
    return min(index, len(texts) - 1)


def _content(text: str) -> str:
    """What stands between the sides of a box."""
    inner = text.strip()[1:]
    inner = inner.removeprefix(" ")
    if inner.rstrip().endswith(("│", "|")):
        inner = inner.rstrip()[:-1]
    return inner.rstrip()


@cache
def _place() -> re.Pattern[str]:
    return re.compile(
        r"(?P<file>\S.*?)?:(?P<line>\d+) in (?P<function>\S+)$|.*?in (?P<cell><[^>]+>):(?P<cell_line>\d+)$"
    )


@cache
def _source() -> re.Pattern[str]:
    return re.compile(r"\s*(?P<arrow>[❱>])?\s*(?P<line>\d+)(?P<code>\s.*)?$")


def _read_frames(inside: Sequence[str]) -> list[Frame]:
    """The frames inside a box. A path longer than the box is folded over several of its lines."""
    from dataclasses import replace

    frames: list[Frame] = []
    folded = ""
    for text in inside:
        source = _source().match(text)
        if source and not folded:
            if source["arrow"] and frames and source["code"]:
                frames[-1] = replace(frames[-1], code=source["code"].strip(" │|"))
            continue
        if not text.strip() or text.lstrip()[:1] in "╭╰│":
            folded = ""
            continue
        folded += text.strip() if folded else text.lstrip()
        place = _place().match(folded[:_MAX_FOLDED])
        if place:
            file = place["file"] or place["cell"] or ""
            line = int(place["line"] or place["cell_line"])
            frames.append(Frame(file=file, line=line, function=place["function"] or place["cell"]))
            folded = ""
    return frames
