"""Notes what a program catches by a handler that is meant for everything: it may be what ended the run, and be printed nowhere.

An operation's failure is noted where it is raised, see `raised`. What Python code of a library refuses is no operation: the size
of a state that `nn.GRU` is handed, an argument that a model does not know.
"""

from __future__ import annotations

import dis
import sys
import threading
from collections.abc import Callable
from types import CodeType, FrameType, TracebackType
from typing import Any

from .frame import is_installed, is_ours
from .handler import handler_of

MAX_NOTED = 50
MAX_LOOKED_AT = 1_000  # each reads the source of the frames: a program may poll a queue that is empty
_RAISE = dis.opmap["RAISE_VARARGS"]
_CONTROL = (
    StopIteration,
    StopAsyncIteration,
    ImportError,
)  # how a loop ends, and how it is found out what is installed


def watch(note: Callable[[Exception], None]) -> None:
    """Call `note` for each exception that comes into a function of the program, which catches it further out whatever it is.

    Not for one that the program raises itself. Nothing is watched where a debugger or a coverage tool traces already.
    """
    if sys.gettrace() is not None:
        return
    caught = _Caught(note)
    threading.settrace(caught.enter)
    sys.settrace(caught.enter)
    frame: FrameType | None = sys._getframe(1)  # noqa: SLF001 - what runs already is entered by no call
    while frame is not None:
        caught.follow(frame)
        frame = frame.f_back


class _Caught:
    """The trace functions: the global one, which chooses the program's own frames, and that of these frames."""

    def __init__(self, note: Callable[[Exception], None]) -> None:
        self._note, self._left, self._looks = note, MAX_NOTED, MAX_LOOKED_AT
        self._own: dict[str, bool] = {}

    def enter(self, frame: FrameType, *_: Any) -> Any:
        """A call: only the frames of the program are looked at, and of those no line."""
        return self.seen if self.follow(frame) else None

    def follow(self, frame: FrameType) -> bool:
        """Look at the exceptions that come into a frame, if it is the program's."""
        if self._left <= 0 or not self._is_own(frame.f_code):
            return False
        frame.f_trace_lines, frame.f_trace = False, self.seen
        return True

    def seen(self, frame: FrameType, event: str, value: Any) -> Any:
        """An exception came into a frame, or was raised in it."""
        if event == "exception" and self._left > 0:
            kind, error, trace = value
            is_failure = isinstance(error, Exception) and not isinstance(error, _CONTROL)
            if is_failure and self._looks > 0 and self._comes_in(trace):
                self._looks -= 1
                handler = handler_of(frame, kind.__name__, self._is_own)
                if handler is not None and handler.is_for_all:
                    self._left -= 1
                    error.__traceback__ = trace  # before Python 3.12 it is put there where it is caught
                    self._note(error)
        return self.seen

    def _comes_in(self, trace: TracebackType) -> bool:
        """Whether an exception comes into the program here: by a call, or by what Python itself refuses.

        Not where a statement of the frame raises it: a program knows what it does with its own exceptions.
        """
        if trace.tb_next is not None:
            return not self._is_own(trace.tb_next.tb_frame.f_code)
        return trace.tb_frame.f_code.co_code[trace.tb_lasti] != _RAISE

    def _is_own(self, code: CodeType) -> bool:
        path = code.co_filename
        known = self._own.get(path)
        if known is None:
            known = self._own[path] = not (is_ours(path) or path.startswith("<") or is_installed(path))
        return known
