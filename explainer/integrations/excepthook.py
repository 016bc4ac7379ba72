"""`gradfix.install()`: every uncaught exception of this process is explained below its traceback."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from types import TracebackType
from typing import TYPE_CHECKING, Any, TextIO

from explainer.integrations.sighting import recall_here

if TYPE_CHECKING:
    from explainer.model.report import Report

Hook = Callable[[type[BaseException], BaseException, TracebackType | None], Any]
ThreadHook = Callable[[threading.ExceptHookArgs], Any]
_installed: list[tuple[Hook, ThreadHook, Hook, ThreadHook]] = []  # those before ours, and ours


def install(stream: TextIO | None = None) -> None:
    """Explain uncaught exceptions, of threads too: the usual traceback first, the finding below it.

    In IPython and notebooks, which print tracebacks by themselves, this is `%load_ext gradfix`. The hooks that stand are called first and stay in charge of the exit status. A second call changes nothing.
    `stream` is where the finding goes; standard error by default.

    Example:
        >>> import gradfix
        >>> gradfix.install()
    """
    if _installed:
        return
    _load_into_shell()
    previous, in_thread = sys.excepthook, threading.excepthook

    def hook(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        previous(kind, error, trace)
        show(error, stream or sys.stderr)

    def thread_hook(arguments: threading.ExceptHookArgs) -> None:
        in_thread(arguments)
        if arguments.exc_value is not None:
            show(arguments.exc_value, stream or sys.stderr)

    _installed.append((previous, in_thread, hook, thread_hook))
    sys.excepthook, threading.excepthook = hook, thread_hook


def is_installed() -> bool:
    """Whether uncaught exceptions are explained."""
    return bool(_installed)


def uninstall() -> None:
    """Put the hooks back that stood before `install`; where another has been put over ours, it goes on and ours is mute."""
    if _installed:
        previous, in_thread, hook, thread_hook = _installed.pop()
        sys.excepthook = previous if sys.excepthook is hook else sys.excepthook
        threading.excepthook = in_thread if threading.excepthook is thread_hook else threading.excepthook


def _load_into_shell() -> None:
    """Load our extension into the IPython shell that this process is, if it is one."""
    shell = sys.modules["IPython"].get_ipython() if "IPython" in sys.modules else None
    if shell is not None:
        from explainer.integrations.notebook.extension import load

        load(shell)


def show(error: BaseException, stream: TextIO) -> None:
    """Print the card of an exception where its cause is known; an interrupt and an exit have none."""
    if isinstance(error, (KeyboardInterrupt, SystemExit)) or not _installed:
        return
    report = report_of(error)
    if report is not None and report.findings:
        from explainer.errors import SilentFailure

        is_noted = isinstance(error, SilentFailure)  # by who raised it
        print_card(report if is_noted else recall_here(report, way="install"), stream)


def report_of(error: BaseException) -> Report | None:
    """The report of an exception: the one that a silent failure carries, else a new one; None where the rules cannot be read."""
    from explainer.errors import GradfixError, SilentFailure
    from explainer.model.report import Report
    from explainer.workflow import explain

    if isinstance(error, SilentFailure) and isinstance(error.report, Report):
        return error.report
    try:
        return explain(error)
    except GradfixError:
        return None  # the traceback has been printed; a rule base that cannot be read must not add a second one


def print_card(report: Report, stream: TextIO) -> None:
    """Write the card of a report, with an empty line before it."""
    from explainer.render.terminal import Layout, render_terminal

    stream.write("\n" + render_terminal(report, Layout(is_coloured=stream.isatty())))
    stream.flush()
