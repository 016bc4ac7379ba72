"""The collections that are empty where a number has no backward: `sum(losses) / 3` of no losses is 0.0, and no graph was cut."""

from __future__ import annotations

import linecache
import re
from types import FrameType

_MESSAGE = re.compile(r"^'(?:int|float)' object has no attribute 'backward'$")
_ASKED = re.compile(r"([A-Za-z_]\w*)\.backward\(")
_COLLECTIONS = (list, tuple, dict, set)
MAX_LOCALS = 400


def nothing_summed(frames: list[FrameType], message: str) -> str | None:
    """The names of the empty collections beside a loss that is exactly 0, a number, in the innermost frame; None without one.

    Of a number that was made of a tensor (`loss.item()`) it says nothing: that is 0 as good as never.
    """
    if not frames or not _MESSAGE.match(message):
        return None
    frame = frames[-1]
    asked = _ASKED.search(linecache.getline(frame.f_code.co_filename, frame.f_lineno))
    loss = frame.f_locals.get(asked.group(1)) if asked else None
    if type(loss) not in (int, float) or loss != 0:
        return None
    held = list(frame.f_locals.items())[:MAX_LOCALS]
    empty = [name for name, one in held if isinstance(one, _COLLECTIONS) and not one and not name.startswith("_")]
    return ", ".join(empty) or None
