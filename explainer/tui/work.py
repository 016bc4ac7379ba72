"""The long work of the interface: one piece at a time, in a thread, followed by a timer, stopped on request."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import TypeVar

from textual.app import App

from explainer.errors import GradfixError, Stopped
from explainer.tui.worker.live import Live

T = TypeVar("T")
FETCH = 0.1
ENDING = 15.0  # seconds: a command is given five to end by itself, then the same for what it started
READ, RUN, VERIFY, TRACE, PLAN = "reading", "running", "verifying", "tracing", "planning"


@dataclass(frozen=True, slots=True)
class Failed:
    """Work that gave nothing: why, in one line; `is_stopped` where it was asked to end."""

    reason: str
    is_stopped: bool = False


class Worker(App[int]):
    """An application that does one piece of long work at a time."""

    def __init__(self) -> None:
        # With NO_COLOR Textual takes colours off only where it is told so at the start; else it makes them grey.
        super().__init__(ansi_color=True if os.environ.get("NO_COLOR") else None)
        self.doing = ""
        self.live = Live()
        self.began = 0.0
        self._is_ending = False
        self._has_begun = False
        self._thread: threading.Thread | None = None

    def start(self, doing: str, work: Callable[[Live], T], done: Callable[[T | Failed], Awaitable[None]]) -> None:
        """Begin a piece of work in a thread; `done` is called here with what it gave, or why it gave nothing."""
        self.doing, self.live, self.began = doing, Live(), time.monotonic()
        live = self.live

        def run() -> None:
            result = _result(work, live)
            with suppress(RuntimeError):  # the interface has gone meanwhile
                self.call_from_thread(self.call_later, self._end, result, done)

        # Not one of Textual's workers: the loop waits for those at its end, and a silent pipe may keep one for hours.
        self._thread = threading.Thread(target=run, daemon=True)
        self._thread.start()
        self.refresh_bindings()

    def end_work(self) -> None:
        """Once the interface is gone: end a command that still runs, with all that it started."""
        self.live.stop()
        if self._thread is not None and self.doing in (RUN, VERIFY, TRACE):
            self._thread.join(ENDING)

    async def _end(self, result: T | Failed, done: Callable[[T | Failed], Awaitable[None]]) -> None:
        if not self.is_running:  # the screens are being taken down
            return
        self.fetch()
        self.doing, self._is_ending = "", True
        self.refresh_bindings()
        try:
            await done(result)
        finally:
            self._is_ending = False

    @property
    def is_busy(self) -> bool:
        """Whether work is on or still to begin, or its outcome is being shown."""
        return bool(self.doing) or self._is_ending or not self._has_begun

    def _handle_exception(self, error: Exception) -> None:
        """A fault of ours ends the interface in one line, not in a screen of traceback; a test gets it as it is."""
        if self.is_headless or os.environ.get("GRADFIX_DEBUG"):
            super()._handle_exception(error)
            return
        self.live.stop()
        said = f"gradfix: internal error: {type(error).__name__}: {error} (GRADFIX_DEBUG=1 shows where)"
        self.exit(2, return_code=2, message=said)

    def fetch(self) -> None:
        """Show what came from the work since the last time."""

    def follow(self) -> None:
        """Start the timer that follows the work."""
        self.set_interval(FETCH, self._follow)

    def _follow(self) -> None:
        if self.doing:
            self.fetch()

    @property
    def seconds(self) -> float:
        """How long the work takes already."""
        return time.monotonic() - self.began


def _result(work: Callable[[Live], T], live: Live) -> T | Failed:
    try:
        return work(live)
    except Stopped:
        return Failed("stopped", is_stopped=True)
    except GradfixError as error:
        return Failed(str(error))
    except Exception as error:  # the outermost frame of a thread: a fault of ours is one line too
        if os.environ.get("GRADFIX_DEBUG"):
            raise
        return Failed(f"internal error: {type(error).__name__}: {error} (GRADFIX_DEBUG=1 shows where)")
