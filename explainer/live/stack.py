"""Where the threads of this process stand: written when the time is up, when it is told to end, and when it crashes in C.

`faulthandler` writes from C: also where no Python code can run, as in a call that holds the interpreter's lock. File, line
and function of each frame; no values.
"""

from __future__ import annotations

import faulthandler
import linecache
import os
import signal
import sys
import threading
import time
from contextlib import suppress
from typing import Any

from .frame import is_ours

STACK = ".stack"
MAX_FRAMES = 300
SIGNAL = int(signal.SIGRTMIN) + 11 if hasattr(signal, "SIGRTMIN") else None


class Stacks:
    """The file that this process's stacks go to. What the program does with a signal afterwards is its own."""

    def __init__(self) -> None:
        self._file: Any = None
        self._on_end: Any = None
        self._has_fatal = False

    def arm(self, path: str, *, is_rank: bool, is_timed: bool) -> int | None:
        """Write a stack where a rank is ended or crashes, and where the parent asks for it; the number to ask with."""
        if self._file is not None:
            return None
        try:
            self._file = open(path, "ab", buffering=0)  # noqa: SIM115 - open as long as the process lives
        except OSError:
            return None
        if is_rank:
            self._on_end = signal.getsignal(signal.SIGTERM)
            if self._on_end == signal.SIG_DFL:
                faulthandler.register(signal.SIGTERM, file=self._file, all_threads=True, chain=True)
            if not faulthandler.is_enabled():
                faulthandler.enable(file=self._file, all_threads=True)
                self._has_fatal = True
        if is_timed and SIGNAL is not None and signal.getsignal(SIGNAL) == signal.SIG_DFL:
            faulthandler.register(SIGNAL, file=self._file, all_threads=True, chain=False)
            return SIGNAL
        return None

    def forked(self) -> None:
        """In a child: take back what is the parent's, but where the program has put something of its own there."""
        if self._file is None:
            return
        if self._on_end == signal.SIG_DFL and signal.getsignal(signal.SIGTERM) == signal.SIG_DFL:
            faulthandler.unregister(signal.SIGTERM)
        if self._has_fatal:
            faulthandler.disable()
            self._has_fatal = False
        self._file = None


def look() -> list[dict[str, Any]]:
    """All Python threads of this process but the one that looks, the main one first."""
    names = {one.ident: one.name for one in threading.enumerate()}
    main = threading.main_thread().ident
    mine = threading.get_ident()
    threads = []
    for ident, frame in sys._current_frames().items():  # noqa: SLF001 - the only way to other threads' frames
        if ident != mine:
            threads.append({"thread": names.get(ident, ""), "is_main": ident == main, "frames": _frames(frame)})
    return sorted(threads, key=lambda one: not one["is_main"])


def _frames(frame: Any) -> list[dict[str, Any]]:
    """The frames of a thread, outermost first."""
    found: list[dict[str, Any]] = []
    while frame is not None and len(found) < MAX_FRAMES:
        code = frame.f_code
        if not is_ours(code.co_filename):
            line = linecache.getline(code.co_filename, frame.f_lineno).strip()
            found.append(
                {"file": os.path.abspath(code.co_filename) if os.path.exists(code.co_filename) else code.co_filename,
                 "line": frame.f_lineno, "function": code.co_name, "code": line or None}
            )  # fmt: skip
        frame = frame.f_back
    return found[::-1]


def watch(recorder: Any, deadline: float) -> None:
    """Have the report written with all stacks at a moment of the wall clock, should this process still run then."""

    def wait() -> None:
        time.sleep(max(deadline - time.time(), 0.0))
        with suppress(Exception):  # the program goes on, and the parent asks by signal
            recorder.parts["stacks"] = look()
            recorder.write()

    threading.Thread(target=wait, name="gradfix", daemon=True).start()
