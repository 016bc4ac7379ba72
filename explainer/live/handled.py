"""Notes an exception that a program handles by itself and of which it tells one line: in a log, or by its exit status."""

from __future__ import annotations

import functools
import sys
from typing import Any

from .imports import after_import

HANDLED = "handled"
MAX_HANDLED = 4  # it may be meant to happen, and happen often


def watch(recorder: Any) -> None:
    """Look at what is being handled where an error or a warning is logged, and where the program ends itself with a status."""
    after_import("logging", lambda module: _watch_logging(module, recorder))
    _watch_exit(recorder)


def _watch_logging(logging: Any, recorder: Any) -> None:
    handle = logging.Logger.handle

    @functools.wraps(handle)
    def handled(logger: Any, record: Any) -> Any:
        __tracebackhide__ = True
        if record.levelno >= logging.WARNING:
            _note(recorder)
        return handle(logger, record)

    logging.Logger.handle = handled


def _watch_exit(recorder: Any) -> None:
    leave = sys.exit

    @functools.wraps(leave)
    def left(*status: Any) -> Any:
        __tracebackhide__ = True
        if status and status[0]:
            _note(recorder)
        leave(*status)

    sys.exit = left


def _note(recorder: Any) -> None:
    error = sys.exc_info()[1]
    if isinstance(error, Exception) and len(recorder.failures) < MAX_HANDLED:
        recorder.note(error, HANDLED)
