"""`gradfix.install()`: every uncaught exception of this process is explained below its traceback."""

from __future__ import annotations

import sys
import threading
from types import TracebackType
from typing import TextIO

_installed: list[object] = []


def install(stream: TextIO | None = None) -> None:
    """Explain uncaught exceptions, of threads too: the usual traceback first, the finding below it.

    The hooks that stand are called first and stay in charge of the exit status. A second call changes nothing.
    `stream` is where the finding goes; standard error by default.

    Example:
        >>> import gradfix
        >>> gradfix.install()
    """
    if _installed:
        return
    previous, in_thread = sys.excepthook, threading.excepthook

    def hook(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        previous(kind, error, trace)
        show(error, stream or sys.stderr)

    def thread_hook(arguments: threading.ExceptHookArgs) -> None:
        in_thread(arguments)
        if arguments.exc_value is not None:
            show(arguments.exc_value, stream or sys.stderr)

    _installed.append((previous, in_thread))
    sys.excepthook, threading.excepthook = hook, thread_hook


def uninstall() -> None:
    """Put the hooks back that stood before `install`."""
    if _installed:
        sys.excepthook, threading.excepthook = _installed.pop()  # type: ignore[misc]


def show(error: BaseException, stream: TextIO) -> None:
    """Print the card of an exception where its cause is known; an interrupt and an exit have none."""
    if isinstance(error, (KeyboardInterrupt, SystemExit)):
        return
    from explainer.errors import GradfixError
    from explainer.render.terminal import Layout, render_terminal
    from explainer.workflow import explain

    try:
        report = explain(error)
    except GradfixError:
        return  # the traceback has been printed; a rule base that cannot be read must not add a second one
    if report.findings:
        stream.write("\n" + render_terminal(report, Layout(is_coloured=stream.isatty())))
