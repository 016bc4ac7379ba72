"""The report of one process: what happened, written atomically into the folder that the parent reads."""

from __future__ import annotations

import atexit
import json
import os
import sys
import threading
import time
import traceback
from collections.abc import Callable
from contextlib import suppress
from types import TracebackType
from typing import Any

from .frame import is_ours, without_our_frames

SCHEMA = "gradfix.live/1"
STEPS = ".steps"
MAX_TEXT = 20_000
MAX_LOOKS = 3
NOTED = "__gradfix_noted__"
_HEADING = "Traceback (most recent call last):\n"


def _text(error: BaseException, *, is_whole: bool) -> str:
    """The traceback as Python prints it; where the exception has not yet come all the way, with the frames above it."""
    text = "".join(traceback.format_exception(type(error), error, error.__traceback__))
    if not is_whole and text.startswith(_HEADING):
        stack = traceback.extract_stack(sys._getframe(1))  # noqa: SLF001 - the only way to the running frames
        above = [one for one in stack if not is_ours(one.filename)]
        text = _HEADING + "".join(traceback.format_list(above)) + text.removeprefix(_HEADING)
    return text[-MAX_TEXT:]


class Recorder:
    """Collects what a process reports, and writes it when the process ends, fails or has made enough steps."""

    def __init__(self, options: dict[str, Any]) -> None:
        self.options = options
        self.started = time.monotonic()
        self.failures: list[dict[str, Any]] = []
        self.parts: dict[str, Any] = {}
        self.at_end: list[Callable[[], None]] = []
        self.tracer: Any = None
        self._folder = options["folder"]
        self._owner = os.getpid()
        self._thread = threading.local()

    def install(self) -> None:
        """Take part in what Python does with exceptions and at the end."""
        self._chain_hooks()
        self._watch_printing()
        atexit.register(self._end)
        os.register_at_fork(after_in_child=self._forked)

    def _end(self) -> None:
        """The last look, and the last writing.

        Python keeps an uncaught exception for post-mortem debuggers: there it is found also where the program, as typer
        does, has put another excepthook in the place of ours.
        """
        uncaught = getattr(sys, "last_exc", None) or getattr(sys, "last_value", None)
        if isinstance(uncaught, BaseException):
            self.note(uncaught, "uncaught")
        self.look_at_the_end()
        self.write()

    def look_at_the_end(self) -> None:
        """What is asked for when a program ends without a failure."""
        for look in self.at_end if os.getpid() == self._owner and not self.failures else ():
            try:
                look()
            except Exception as fault:  # noqa: BLE001 - the user's objects may do anything when they are looked at
                self.parts["fault"] = f"{type(fault).__name__}: {fault}"[:200]

    def _forked(self) -> None:
        """A forked child reports for itself, from now on."""
        self._owner = os.getpid()
        self.failures = []
        self.parts = {key: value for key, value in self.parts.items() if key == "environment"}

    def _chain_hooks(self) -> None:
        previous, in_thread = sys.excepthook, threading.excepthook

        def hook(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
            self.note(error, "uncaught")
            self.write()
            previous(kind, error, without_our_frames(trace))

        def thread_hook(arguments: threading.ExceptHookArgs) -> None:
            if arguments.exc_value is not None:
                self.note(arguments.exc_value, "thread")
                self.write()
            in_thread(arguments)

        sys.excepthook, threading.excepthook = hook, thread_hook

    def _watch_printing(self) -> None:
        """Note what a program prints with the `traceback` module: the exceptions that it catches and reports itself."""
        make = traceback.TracebackException.__init__

        def init(this: Any, exc_type: Any, exc_value: Any, exc_traceback: Any, **keywords: Any) -> None:
            if isinstance(exc_value, BaseException) and exc_traceback is not None:
                self.note(exc_value, "printed")
            make(this, exc_type, exc_value, without_our_frames(exc_traceback), **keywords)

        traceback.TracebackException.__init__ = init  # type: ignore[method-assign,assignment]

    def note(self, error: BaseException, where: str) -> None:
        """Remember an exception and what is known at this moment; met again further out, only where it came to is new."""
        if isinstance(error, (SystemExit, KeyboardInterrupt)) or getattr(self._thread, "is_noting", False):
            return  # our own printing of a traceback comes by here too
        self._thread.is_noting = True
        try:
            self._note(error, where)
        except Exception as fault:  # noqa: BLE001 - the user's exception may do anything when it is looked at
            self.parts["fault"] = f"{type(fault).__name__}: {fault}"[:200]
        finally:
            self._thread.is_noting = False

    def _note(self, error: BaseException, where: str) -> None:
        known = getattr(error, NOTED, None)
        if known is not None:
            if known["where"] == "raised" and where != "raised":
                known.update(where=where, text=_text(error, is_whole=True))
            return
        failure = {
            "type": f"{type(error).__module__}.{type(error).__qualname__}".removeprefix("builtins."),
            "message": str(error)[:MAX_TEXT],
            "where": where,
            "steps": dict(self.parts.get("steps", {})),
            "seconds": round(time.monotonic() - self.started, 3),
            "seen": self._look(error),
        }
        # The mark is on the exception itself: a reference to it would keep its frames and their tensors alive, and its
        # id comes back once it is gone, as in a loop that catches one failure after another.
        with suppress(AttributeError, TypeError):
            setattr(error, NOTED, failure)
        failure["text"] = _text(error, is_whole=where != "raised")
        self.failures.append(failure)
        del self.failures[:-8]

    def _look(self, error: BaseException) -> dict[str, Any]:
        """What the live objects say; of the first failures only, so that a loop that catches many stays quick."""
        if len(self.failures) >= MAX_LOOKS or self.options["mode"] == "verify":
            return {}
        from . import crash

        try:
            return crash.look(error, self.tracer)
        except Exception as fault:  # noqa: BLE001 - the user's objects may do anything when they are looked at
            return {"fault": f"{type(fault).__name__}: {fault}"[:200]}

    def tell(self, step: dict[str, Any]) -> None:
        """Hand a step over while the program runs, where the parent wants it: a line of JSON behind the others."""
        if not self.options.get("told") or os.getpid() != self._owner:
            return
        path = os.path.join(self._folder, f"{os.getpid()}{STEPS}")
        with suppress(OSError), open(path, "a", encoding="utf-8") as file:
            file.write(json.dumps({"pid": os.getpid(), **step}) + "\n")

    def write(self) -> None:
        """Write the report of this process; the last writing counts. Nothing to say is no file."""
        if os.getpid() != self._owner or not (self.failures or self.parts):
            return
        report = {
            "schema": SCHEMA,
            "pid": os.getpid(),
            "parent": os.getppid(),
            "rank": os.environ.get("RANK"),
            "argv": sys.argv[:50],
            "seconds": round(time.monotonic() - self.started, 3),
            "failures": self.failures,
            **self.parts,
        }
        path = os.path.join(self._folder, f"{os.getpid()}.json")
        try:
            with open(f"{path}.part", "w", encoding="utf-8") as file:
                json.dump(report, file, default=str)
            os.replace(f"{path}.part", path)
        except OSError:
            return  # the parent says that no report came
