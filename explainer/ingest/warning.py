"""Warnings as Python and libtorch print them, and the one of anomaly mode, which carries the forward call's stack."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

from explainer.ingest.library import own, owner_of
from explainer.ingest.traceback import Stops, is_frame, read_frames
from explainer.model.incident import Frame, WarningRecord

_FORWARD = "Traceback of forward call that"
_MAX_LINES = 60


@dataclass(frozen=True, slots=True)
class Anomaly:
    """What anomaly mode tells: the node that failed, the stack of its forward call, and whether it only induced it."""

    node: str | None
    frames: tuple[Frame, ...]
    is_induced: bool


class WarningRead(NamedTuple):
    """A warning, the anomaly in it if there is one, and the index of the first line after it."""

    record: WarningRecord
    anomaly: Anomaly | None
    end: int


@cache
def _printed() -> re.Pattern[str]:
    return re.compile(
        r"(?:(?P<file>(?:[A-Za-z]:)?[^:\s][^:]*?):(?P<line>\d+): )?"
        r"(?:[\w.]+\.)?(?P<category>[A-Z]\w*Warning|Warning|UserWarning):\s?(?P<message>.*)$"
    )


@cache
def _node() -> re.Pattern[str]:
    return re.compile(r"(?:Error detected in|was induced by|was created by) (?P<node>[\w:<>() ]{1,200}?)\.(?:\s|$)")


def starts_warning(texts: Sequence[str], index: int) -> bool:
    """Whether a warning, or the rest of an anomaly report, begins at `index`."""
    text = texts[index]
    if "arning" in text:
        return bool(_printed().match(text))
    return _FORWARD in text


def read_warning(texts: Sequence[str], index: int, log_line: int, stops: Stops) -> WarningRead:
    """The warning that begins at `index`, with its message's further lines and the source line printed under it."""
    found = _printed().match(texts[index])
    parts = found.groupdict() if found else {"message": texts[index].strip()}
    lines = [parts["message"] or ""]
    end = index + 1
    if not lines[0].strip() and end < len(texts) and not stops(end):
        while end < len(texts) and end - index < 4 and not texts[end].strip():
            end += 1
        if end < len(texts):
            lines.append(texts[end])
            end += 1
    anomaly, end = _read_anomaly(texts, " ".join(lines), end)
    code = None
    while anomaly is None and end < len(texts) and end - index < _MAX_LINES and not stops(end):
        if not texts[end].startswith("  ") and not texts[end].lstrip().startswith("warnings.warn("):
            break
        if _is_source(texts[end]):
            code = texts[end].strip()
        else:
            lines.append(texts[end])
        end += 1
    file, line = parts.get("file"), parts.get("line")
    record = WarningRecord(
        category=parts.get("category") or "UserWarning",
        message="\n".join(lines).strip(),
        file=file,
        line=int(line) if line else None,
        code=code,
        library=owner_of(file)[0] if file else None,
        log_line=log_line,
    )
    return WarningRead(record, anomaly, end)


def _is_source(text: str) -> bool:
    """Whether the line under a warning is the source that raised it, which Python prints after the message."""
    stripped = text.strip()
    return stripped.startswith(("warnings.warn(", "warn(", "return ", "with ", "if ", "self.")) or (
        stripped.endswith(("(", ")", ",")) or " = " in stripped
    )


def _read_anomaly(texts: Sequence[str], message: str, end: int) -> tuple[Anomaly | None, int]:
    if _FORWARD not in message:
        return None, end
    found = _node().search(message)
    frames: tuple[Frame, ...] = ()
    if end < len(texts) and is_frame(texts[end]):
        read, end = read_frames(texts, end)
        frames = tuple(own(frame) for frame in read)
    while end < len(texts) and texts[end].lstrip().startswith(("(Triggered internally", "(function _print_stack")):
        end += 1
    induced = "induced" in message or "was created by" in message
    return Anomaly(found["node"] if found else None, frames, induced), end
