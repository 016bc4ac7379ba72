"""One traceback as CPython prints it, also damaged: without its header, its end, its indentation, or with noise in it."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import cache
from typing import NamedTuple

from explainer.ingest.library import own
from explainer.model.incident import ExceptionRecord, Frame

HEADER_WORDS = "Traceback (most recent call last)"
MAX_FRAMES = 2000
MAX_MESSAGE_LINES = 400
_LOOK_AHEAD = 4


class Read(NamedTuple):
    """What was read, and the index of the first line after it."""

    record: ExceptionRecord
    end: int


Stops = Callable[[int], bool]


@cache
def header() -> re.Pattern[str]:
    """The line above the frames, also cut at its left end or of a worker's original traceback."""
    return re.compile(r"(?P<indent>\s*)(?:Original |Exception Group )?(?:T?r)?aceback \(most recent call last\):?\s*$")


@cache
def _frame() -> re.Pattern[str]:
    """CPython's frame line, and the one of IPython's plain mode, without quotes."""
    return re.compile(
        r'(?P<indent>\s*)File "(?P<file>.+?)", line (?P<line>\d+)(?:, in (?P<function>.+?))?\s*$|'
        r'(?P<indented>\s{2,})File (?P<bare>[^"]+?):(?P<at>\d+)(?: in (?P<inside>.+?))?\s*$'
    )


@cache
def _marker() -> re.Pattern[str]:
    return re.compile(r"\s*[~^][~^ ]*\s*$")


@cache
def exception_line() -> re.Pattern[str]:
    """`Type: message` or `Type`, where the last part of the dotted type is named like a class."""
    return re.compile(
        r"(?P<indent>\s*)(?P<type>(?:[A-Za-z_][\w<>]*\.)*(?:[A-Z_]\w*|timeout|error|gaierror))(?::(?: (?P<message>.*))?)?$"
    )


@cache
def named_exception() -> re.Pattern[str]:
    """A line that shows an exception outside any traceback: its type must end as exceptions do."""
    return re.compile(
        r"\s*(?:\*\*\* |E {2,}|❌ ?|ERROR: )?"
        r"(?P<type>(?:[A-Za-z_][\w<>]*\.)*(?:[A-Z]\w*(?:Error|Exception|Interrupt|Failure|Violation)|Exception|Unsupported|"
        r"RecompileLimitExceeded|StopIteration))(?: ?:\s(?P<message>.*)|:?\s*$)"
    )


def is_frame(text: str) -> bool:
    """Whether a line is a `File "...", line N` line."""
    return "File " in text and bool(_frame().match(text))


def read_exception(texts: Sequence[str], start: int, stops: Stops) -> Read | None:
    """The exception whose header, first frame or last line is at `start`; None where nothing of it is there.

    `stops` says of an index whether something else begins there (a metric row, another writer's line, a new traceback).
    """
    index, base = start, 0
    found = header().match(texts[start])
    if found:
        base, index = len(found["indent"]), start + 1
    frames, index = read_frames(texts, index, base)
    ending = exception_line().match(texts[index]) if index < len(texts) else None
    if ending is None or (index > start and stops(index) and not frames):
        if not frames and not found:
            return None
        kind, message = _raised(frames)
        record = ExceptionRecord(type=kind, message=message, frames=tuple(map(own, frames)), is_complete=False)
        return Read(record, max(index, start + 1))
    message, end = read_message(texts, index, ending["message"] or "", stops)
    record = ExceptionRecord(
        type=ending["type"], message=message, frames=tuple(map(own, frames)), from_traceback=bool(found or frames)
    )
    return Read(record, end)


def _raised(frames: Sequence[Frame]) -> tuple[str, str]:
    """What the last frame's own `raise` says, for a traceback that is cut before its last line."""
    code = frames[-1].code if frames else None
    found = re.match(
        r"""raise (?P<type>[A-Z]\w*)\(\s*(?:(?P<quote>["'])(?P<text>[^{}]*?)(?P=quote)\s*\)?)?""", code or ""
    )
    return (found["type"], found["text"] or "") if found and found["text"] else ("", "")


def read_message(texts: Sequence[str], index: int, first: str, stops: Stops) -> tuple[str, int]:
    """The message that begins with `first` on line `index`, with the lines that follow it, and where it ends."""
    lines, end = [first], index + 1
    while end < len(texts) and len(lines) < MAX_MESSAGE_LINES:
        if stops(end) or header().match(texts[end]) or _chains(texts, end):
            break
        lines.append(texts[end])
        end += 1
    while len(lines) > 1 and not lines[-1].strip():
        lines.pop()
    return "\n".join(lines), end


def _chains(texts: Sequence[str], index: int) -> bool:
    from explainer.ingest.chain import link_of

    return link_of(texts[index]) is not None


def read_frames(texts: Sequence[str], index: int, base: int = 0) -> tuple[list[Frame], int]:
    """The frames from `index` on, under a header that is indented by `base`, and the index of the line after them."""
    frames: list[Frame] = []
    frame_indent = base + 2
    while index < len(texts) and len(frames) < MAX_FRAMES:
        text = texts[index]
        found = _frame().match(text) if "File " in text else None
        if found is not None:
            indent = len(found["indent"] or found["indented"] or "")
            if not frames:
                frame_indent = indent
            frame = Frame(
                file=found["file"] or found["bare"],
                line=int(found["line"] or found["at"]),
                function=found["function"] or found["inside"],
            )
            code, index = _read_code(texts, index + 1, indent)
            frames.append(_with_code(frame, code))
            continue
        if _is_end(text, frame_indent) or text.lstrip().startswith("(Triggered internally"):
            break
        if not _resumes(texts, index) or (header().match(text) and frames):
            break
        index += 1
    return frames, index


def _is_end(text: str, frame_indent: int) -> bool:
    """Whether `text` ends the frames: a line at the header's depth that names an exception."""
    found = exception_line().match(text)
    return found is not None and len(found["indent"]) < max(frame_indent, 1) and bool(text.strip())


def _resumes(texts: Sequence[str], index: int) -> bool:
    """Whether a traceback goes on after the noise at `index`: a frame or its last line follows at once."""
    for ahead in range(index + 1, min(index + 1 + _LOOK_AHEAD, len(texts))):
        if header().match(texts[ahead]):
            return False
        if is_frame(texts[ahead]) or named_exception().match(texts[ahead]):
            return True
    return not texts[index].strip() and index + 1 < len(texts) and bool(exception_line().match(texts[index + 1]))


def _read_code(texts: Sequence[str], index: int, frame_indent: int) -> tuple[list[str], int]:
    """The source lines and markers printed under a frame: all that is indented deeper than its `File`."""
    code: list[str] = []
    while index < len(texts):
        text = texts[index]
        indent = len(text) - len(text.lstrip(" "))
        if not text.strip() or indent <= frame_indent or (is_frame(text) and indent <= frame_indent + 2):
            break
        if text.lstrip().startswith("[Previous line repeated "):
            index += 1
            break
        code.append(text)
        index += 1
    if not code and index < len(texts) and _is_flat_code(texts, index, frame_indent):
        return [texts[index]], index + 1
    return code, index


def _is_flat_code(texts: Sequence[str], index: int, frame_indent: int) -> bool:
    """Whether the line under a frame is its code although a copy lost the indentation."""
    text = texts[index]
    if frame_indent > 0 or not text.strip() or is_frame(text) or exception_line().match(text):
        return False
    return index + 1 < len(texts) and (is_frame(texts[index + 1]) or bool(exception_line().match(texts[index + 1])))


def _with_code(frame: Frame, code: list[str]) -> Frame:
    """`frame` with the source printed under it, dedented, and the columns that the first marker points at."""
    from dataclasses import replace

    sources = [line for line in code if not _marker().match(line)]
    if not sources:
        return frame
    indent = len(sources[0]) - len(sources[0].lstrip())
    mark = None
    if len(code) > 1 and not _marker().match(code[0]) and _marker().match(code[1]):
        pointed = [at for at, sign in enumerate(code[1]) if sign in "~^"]
        mark = (max(pointed[0] - indent, 0), pointed[-1] + 1 - indent)
    text = "\n".join(line[indent:] if not line[:indent].strip() else line.lstrip() for line in sources)
    return replace(frame, code=text.rstrip(), mark=mark)
