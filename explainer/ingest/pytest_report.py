"""Failures as pytest shows them: `>` before the failing line, `E` before the message, `file.py:12: Type` below."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache

from explainer.ingest.chain import Chain
from explainer.ingest.library import own
from explainer.ingest.traceback import exception_line
from explainer.model.incident import ExceptionRecord, Frame

_MAX_LINES = 120


@cache
def _place() -> re.Pattern[str]:
    return re.compile(r"(?P<file>\S+\.py):(?P<line>\d+): (?:in (?P<function>\S+)|(?P<type>[A-Z]\w*))?\s*$")


@cache
def _error() -> re.Pattern[str]:
    return re.compile(r"E(?: {2,}(?P<text>.*)|$)")


def starts_pytest(texts: Sequence[str], index: int) -> bool:
    """Whether a pytest failure begins at `index`: its marked source line, a short frame, or its `E` lines."""
    text = texts[index]
    if text.startswith("E  "):
        return bool(exception_line().match(text[1:].strip()))
    if text.startswith(">  ") or _place().match(text):
        return any(texts[at].startswith("E  ") for at in range(index + 1, min(index + 8, len(texts))))
    return False


def read_pytest(texts: Sequence[str], start: int) -> Chain | None:
    """The failure that begins at `start`."""
    frames: list[Frame] = []
    message: list[str] = []
    code: str | None = None
    index = start
    while index < len(texts) and index - start < _MAX_LINES:
        text = texts[index]
        error, place = _error().match(text), _place().match(text)
        if error:
            message.append(error["text"] or "")
        elif place:
            after = texts[index + 1] if index + 1 < len(texts) else ""
            source = code or (after.strip() if after.startswith("    ") else None)
            frames.append(Frame(file=place["file"], line=int(place["line"]), function=place["function"], code=source))
            code = None
            if message:
                index += 1
                break
        elif text.startswith(">  "):
            code = text[1:].strip()
        elif message and text.strip():
            break
        index += 1
    if not message:
        return None
    found = exception_line().match(message[0].strip())
    first = (found["message"] or "") if found else message[0].strip()
    text = "\n".join([first, *(line.strip() for line in message[1:])]).rstrip()
    kind = found["type"] if found else ""
    return Chain((ExceptionRecord(type=kind, message=text, frames=tuple(map(own, frames))),), index)
