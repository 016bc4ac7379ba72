"""Which line of the program is running, noted in a microsecond and read later."""

from __future__ import annotations

import os
import sys
from itertools import islice
from types import CodeType
from typing import Any

from ..frame import is_installed  # noqa: TID252 - `live` is loaded under a name of its own

MAX_DEPTH = 80
FIRST_LINE = -1
_OWN, _LIBRARY, _TORCH = 0, 1, 2
_HERE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))

Place = tuple[CodeType, int]
"""A code object and the offset of its last instruction: a line, before anybody asks which."""


class Places:
    """Finds the innermost line that is not torch's own: the program's, else that of a library."""

    def __init__(self, torch: Any) -> None:
        self._torch = os.path.dirname(os.path.abspath(torch.__file__)) + os.sep
        self._draws = os.path.join(self._torch, "distributions") + os.sep
        self._kinds: dict[int, tuple[int, CodeType]] = {}  # by identity: the hash of a code object reads all of it

    def here(self, depth: int) -> Place | None:
        """The line of the program that runs `depth` frames above this one; of a library where it is called by no program."""
        frame = sys._getframe(depth)  # noqa: SLF001 - the only way to the caller without building a traceback
        kinds, library = self._kinds, None
        for _ in range(MAX_DEPTH):
            code = frame.f_code
            known = kinds.get(id(code))
            if known is None:
                known = kinds[id(code)] = self._kind(code.co_filename), code
            kind = known[0]
            if kind == _OWN:
                return code, frame.f_lasti
            if kind == _LIBRARY and library is None:
                library = code, frame.f_lasti
            if frame.f_back is None:
                break
            frame = frame.f_back
        return library

    def caller(self, depth: int) -> Place | None:
        """As `here`, and outside of the `forward` of modules: the line that calls the network."""
        frame, inner = sys._getframe(depth), self.here(depth + 1)  # noqa: SLF001
        for _ in range(MAX_DEPTH):
            if self._kind(frame.f_code.co_filename) == _OWN and frame.f_code.co_name != "forward":
                return frame.f_code, frame.f_lasti
            if frame.f_back is None:
                break
            frame = frame.f_back
        return inner

    def is_torchs(self, depth: int) -> bool:
        """Whether the code that runs `depth` frames above this one is torch's own."""
        return self._kind(sys._getframe(depth).f_code.co_filename) == _TORCH  # noqa: SLF001

    def is_own(self, code: CodeType) -> bool:
        """Whether code is the program's."""
        return self._kind(code.co_filename) == _OWN

    def stack(self, depth: int) -> tuple[Place, ...]:
        """The program's frames from `depth` above this one on, outermost first, at most MAX_DEPTH of all."""
        frame, found = sys._getframe(depth), []  # noqa: SLF001
        for _ in range(MAX_DEPTH):
            if self._kind(frame.f_code.co_filename) == _OWN:
                found.append((frame.f_code, frame.f_lasti))
            if frame.f_back is None:
                break
            frame = frame.f_back
        return tuple(reversed(found))

    def switch(self, depth: int) -> Place | None:
        """The line that switches grad mode: as `here`; that of the decorator where one does, which has no line that runs."""
        frame = sys._getframe(depth)  # noqa: SLF001
        while frame.f_back is not None and self._kind(frame.f_code.co_filename) == _TORCH:
            if frame.f_code.co_name == "decorate_context":
                code = getattr(frame.f_locals.get("func"), "__code__", None)
                return (code, FIRST_LINE) if code is not None and self._kind(code.co_filename) == _OWN else None
            frame = frame.f_back
        return self.here(depth + 1)

    def distribution(self, depth: int) -> Any:
        """The distribution of torch that computes here; None where none does. `sample()` switches grad mode off to draw."""
        frame = sys._getframe(depth)  # noqa: SLF001
        while frame.f_back is not None and self._kind(frame.f_code.co_filename) == _TORCH:
            if frame.f_code.co_filename.startswith(self._draws):
                return frame.f_locals.get("self", self)
            frame = frame.f_back
        return None

    def _kind(self, path: str) -> int:
        if path.startswith((self._torch, _HERE, "<frozen", "<eval_with_key>")):  # the last is what torch.fx writes
            return _TORCH
        return _LIBRARY if is_installed(path) else _OWN


def describe(place: Place | None) -> dict[str, Any]:
    """File, line and function of a place."""
    if place is None:
        return {"file": None, "line": None, "function": None}
    code, offset = place
    line = code.co_firstlineno
    for start, end, number in code.co_lines() if offset != FIRST_LINE else ():
        if start <= offset < end and number is not None:
            line = number
            break
    return {"file": code.co_filename, "line": line, "function": code.co_name}


def span(place: Place | None) -> tuple[int, int] | None:
    """Where on its line the expression of a place begins and ends; None before Python 3.11, and over several lines."""
    positions = getattr(place[0], "co_positions", None) if place is not None else None
    if place is None or positions is None or place[1] < 0:
        return None
    first, last, start, end = next(islice(positions(), place[1] // 2, None), (None,) * 4)
    return (start, end) if first == last and start is not None and end is not None else None
