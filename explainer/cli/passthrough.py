"""Standard input while it is read: passed on to the terminal, and Ctrl-C left to the program that writes it."""

from __future__ import annotations

import os
import signal
import stat
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

from explainer.cli.screen import is_terminal


class StopReading(Exception):
    """Ctrl-C was pressed a second time: explain what has been read."""


def choose_sink(*, choice: bool | None, is_text: bool) -> Callable[[bytes], None] | None:
    """Where the program's output goes while it is read, or None.

    By itself only a pipe is passed through, to the terminal: standard output where the answer is text for it, else
    standard error.
    """
    if choice is False:
        return None
    streams = (sys.stdout, sys.stderr) if is_text else (sys.stderr,)
    if choice is None and not _is_pipe():
        return None
    for stream in streams:
        if is_terminal(stream):
            return _writer(stream.fileno())
    return _writer(sys.stderr.fileno()) if choice else None


def _is_pipe() -> bool:
    try:
        mode = os.fstat(sys.stdin.fileno()).st_mode
    except (OSError, ValueError, AttributeError):
        return False
    return stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode)


def _writer(descriptor: int) -> Callable[[bytes], None]:
    is_open = True

    def write(chunk: bytes) -> None:
        nonlocal is_open
        while chunk and is_open:
            try:
                chunk = chunk[os.write(descriptor, chunk) :]
            except BlockingIOError:
                continue
            except OSError:
                is_open = False  # the terminal has gone: go on reading, there is still something to explain

    return write


@contextmanager
def interrupts_left_to_the_program() -> Iterator[None]:
    """Ctrl-C reaches every program of the pipe: the first is the writer's, a second one ends the reading."""
    pressed = 0

    def on_interrupt(_number: int, _frame: FrameType | None) -> None:
        nonlocal pressed
        pressed += 1
        if pressed > 1:
            raise StopReading

    previous = signal.signal(signal.SIGINT, on_interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, previous)
