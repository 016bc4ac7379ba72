"""Tracebacks in IPython's layout, as Jupyter, Colab, VS Code and Databricks show them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from typing import NamedTuple

from explainer.ingest.chain import Chain, link_of
from explainer.ingest.library import own
from explainer.ingest.traceback import Stops, exception_line, read_message
from explainer.model.incident import ExceptionRecord, Frame

_NEAR = 14


class Location(NamedTuple):
    """Where a frame of this layout says that it is; the line may only show at the arrow below."""

    file: str
    line: int | None
    function: str | None


@cache
def _title() -> re.Pattern[str]:
    return re.compile(r"(?P<type>[A-Za-z_][\w.]*)\s+Traceback \(most recent call last\):?\s*$")


@cache
def _locations() -> tuple[re.Pattern[str], ...]:
    return (
        re.compile(r"\s*(?P<file>(?:Cell|Input) In ?\[\d+\])(?:, line (?P<line>\d+))?(?:,? in (?P<function>.+))?\s*$"),
        re.compile(r"\[(?P<file>[^\]\s]+)\]\([^)\s]*\)(?: in (?P<function>.*))?\s*$"),
        re.compile(r"(?P<file><ipython-input-\d+-\w+>) in (?P<function>.*)$"),
        re.compile(r"File (?P<file>(?:[A-Za-z]:)?[^:\"]+):(?P<line>\d+)(?:, in (?P<function>.+))?\s*$"),
        re.compile(r"(?:File )?(?P<file>(?:[~/.]|[A-Za-z]:\\)[^\s:]*\.(?:pyx?|ipynb)) in (?P<function>.*)$"),
    )


@cache
def _arrow() -> re.Pattern[str]:
    return re.compile(r"\s{0,3}[-\u2013\u2014]{1,8}> ?(?P<line>\d+)(?: (?P<code>.*))?$")


@cache
def _source() -> re.Pattern[str]:
    return re.compile(r"\s*(?:\d+(?: .*)?|\(\.\.\.\)|\[\.\.\. .*\]|\d+ frames|[~^ ]+)\s*$")


def location_of(text: str) -> Location | None:
    """The location that `text` names, where it is a frame's first line."""
    if not text or (text[0] not in " CIF[<~/." and text[1:2] != ":"):
        return None
    for pattern in _locations():
        found = pattern.match(text)
        if found:
            parts = found.groupdict()
            line = parts.get("line")
            return Location(parts["file"], int(line) if line else None, _bare_name(parts.get("function")))
    return None


def starts_ipython(texts: Sequence[str], index: int) -> bool:
    """Whether a traceback of this layout begins at `index`, with its title or, cut, with a location and its arrow."""
    if _title().match(texts[index]):
        return True
    if location_of(texts[index]) is None:
        return False
    return any(_arrow().match(text) for text in texts[index + 1 : index + _NEAR])


def read_ipython(texts: Sequence[str], start: int, stops: Stops) -> Chain | None:
    """The chain of exceptions that begins at `start`; None where no traceback of this layout does."""
    records: list[ExceptionRecord] = []
    index, link = start, None
    while index < len(texts) and starts_ipython(texts, index):
        record, index = _read_one(texts, index, link, stops)
        records.append(record)
        after = index
        while after < len(texts) and not texts[after].strip():
            after += 1
        link = link_of(texts[after]) if after < len(texts) else None
        if link is None:
            break
        after += 1
        while after < len(texts) and (not texts[after].strip() or set(texts[after].strip()) == {"-"}):
            after += 1
        index = after
    return Chain(tuple(records), index) if records else None


def _read_one(texts: Sequence[str], start: int, link: str | None, stops: Stops) -> tuple[ExceptionRecord, int]:
    titled = _title().match(texts[start])
    index = start + 1 if titled else start
    frames: list[Frame] = []
    while index < len(texts):
        text = texts[index]
        location = location_of(text)
        if location:
            frame, index = _read_frame(texts, index, location)
            frames.append(own(frame))
            continue
        ending = exception_line().match(text)
        if ending and not ending["indent"]:
            message, end = read_message(texts, index, ending["message"] or "", stops)
            return ExceptionRecord(type=ending["type"], message=message, frames=tuple(frames), link=link), end
        if text.strip() and not text.startswith("        ") and not _source().match(text) and not _arrow().match(text):
            if titled and frames and not text.startswith(" "):  # the message without its type
                message, end = read_message(texts, index, text, stops)
                return ExceptionRecord(type=titled["type"], message=message, frames=tuple(frames), link=link), end
            break
        index += 1
    kind = titled["type"] if titled else ""
    return ExceptionRecord(type=kind, frames=tuple(frames), link=link, is_complete=False), max(index, start + 1)


def _read_frame(texts: Sequence[str], index: int, location: Location) -> tuple[Frame, int]:
    """The frame at `index`: its lines reach to the next blank line, location or exception."""
    line, code = location.line, None
    index += 1
    while index < len(texts):
        text = texts[index]
        arrow = _arrow().match(text)
        if arrow:
            if code is None:
                line, code = int(arrow["line"]), (arrow["code"] or "").strip()
        elif location_of(text) or (not _source().match(text) and not text.startswith(" ")):
            break
        index += 1
    return Frame(file=location.file, line=line, function=location.function, code=code or None), index


def _bare_name(function: str | None) -> str | None:
    """`backward(self, gradient)` as `backward`; `<cell line: 1>()` as `<cell line: 1>`."""
    if function is None:
        return None
    return function.partition("(")[0].strip() or None
