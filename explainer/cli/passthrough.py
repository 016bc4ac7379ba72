"""Standard input while it is read: passed on to the terminal, and Ctrl-C left to the program that writes it."""

from __future__ import annotations

import os
import signal
import stat
import sys
from collections.abc import Callable
from types import FrameType
from typing import BinaryIO

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


class PatientInput:
    """Standard input that Ctrl-C does not end at once.

    Ctrl-C reaches every program of a pipe. The first one is the writer's: its last words are still read. A second one
    ends the reading, and what was read is explained; a third gives up.
    """

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        self._pressed = 0
        self._is_reading = False

    def read1(self, size: int) -> bytes:
        """The next bytes, or none at the end or after the second Ctrl-C."""
        if self._pressed > 1:
            return b""
        self._is_reading = True
        try:
            read = getattr(self._stream, "read1", self._stream.read)
            data: bytes = read(size)
        except StopReading:
            return b""
        finally:
            self._is_reading = False
        return data

    def __enter__(self) -> PatientInput:
        self._previous = signal.signal(signal.SIGINT, self._on_interrupt)
        return self

    def __exit__(self, *_: object) -> None:
        signal.signal(signal.SIGINT, self._previous)

    def _on_interrupt(self, _number: int, _frame: FrameType | None) -> None:
        self._pressed += 1
        if self._pressed > 1 and self._is_reading:
            raise StopReading
        if self._pressed > 2:
            raise KeyboardInterrupt
