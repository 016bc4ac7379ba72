"""Reads a log of any length, with progress and a way to stop."""

from __future__ import annotations

import os
import select
from typing import TYPE_CHECKING

from explainer.errors import Stopped
from explainer.ingest.terminal import strip_decoration
from explainer.render.visible import visible

if TYPE_CHECKING:
    from explainer.model.incident import Incident

TAIL = 200
_KEPT = 1 << 16


class Reading:
    """One reading of a log: how far it is, and the last lines of what comes from a pipe. Reads in a thread of its own."""

    def __init__(self, path: str, stream: int | None) -> None:
        self.path = path
        self.read = 0
        self.total = _size(path) if stream is None else None
        self.is_stopped = False
        self._stream = stream
        self._woken, self._wake = os.pipe()
        self._last = b""

    def incidents(self) -> list[Incident]:
        """Read to the end.

        Raises:
            UnreadableInput: it is missing, empty or no text.
            Stopped: it was stopped.
        """
        from explainer.workflow import read_log

        if self._stream is None:
            return read_log(self.path, stream=None, tracebacks_only=False, on_chunk=self._on_chunk)
        pipe = _Pipe(self._stream, self._woken)
        return read_log("-", stream=pipe, tracebacks_only=False, on_chunk=self._on_chunk)

    def _on_chunk(self, chunk: bytes) -> None:
        if self.is_stopped and self.total is not None:
            raise Stopped(f"{self.path}: the reading was stopped")
        self.read += len(chunk)
        if self.total is None:
            self._last = (self._last + chunk)[-_KEPT:]

    @property
    def tail(self) -> list[str]:
        """The last lines that came."""
        lines = self._last.decode("utf-8", "replace").split("\n")
        return [visible(strip_decoration(line).rstrip("\r"))[:400] for line in lines[-TAIL:] if line.strip()]

    def stop(self) -> None:
        """Stop at the next piece of a file; of a pipe, which may stay silent for hours, at once: what came is explained."""
        self.is_stopped = True
        os.write(self._wake, b"x")


class _Pipe:
    """A stream whose reading another thread can end, also while nothing comes."""

    def __init__(self, number: int, woken: int) -> None:
        self._number = number
        self._woken = woken

    def read1(self, size: int, /) -> bytes:
        """What is there; nothing at the end, or once the reading was stopped."""
        ready, _, _ = select.select([self._number, self._woken], [], [])
        return b"" if self._woken in ready else os.read(self._number, size)


def _size(path: str) -> int | None:
    try:
        return os.path.getsize(path)
    except OSError:
        return None
