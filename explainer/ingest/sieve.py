"""Finds the parts of an endless log that are worth reading, in bounded memory.

A log of up to `WHOLE` bytes is kept whole. Of a longer one its head stays (banners, versions), its tail, and a window
round each place where one of a few literals occurs; the literals are found by `bytes.find`, which runs at the speed of
`grep`. Windows that repeat a failure already kept often enough are only counted.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple

WHOLE = 4 << 20
HEAD = 128 << 10
TAIL = 128 << 10
MAX_KEPT = 24 << 20
MAX_LINE = 1 << 20
REPEATS = 3
_BEFORE, _AFTER, _CLOSING = 3 << 10, 6 << 10, 64 << 10
_AROUND_BEFORE, _AROUND_AFTER = 1 << 10, 2 << 10
_STRIDE, _MAX_STRIDE = 512, 1 << 20

TRACEBACK = b"Traceback"
OTHERS = (b"Error", b"Warning: ", b"overflow", b"OVERFLOW", b"xitcode", b": nan", b"Watchdog", b"Assertion `")


class Window(NamedTuple):
    """A kept part of a stream: its text and the number of its first line (from 1)."""

    data: bytes
    first_line: int


class Sieve:
    """Takes a stream in chunks, gives the windows of it.

    With `tracebacks_only` nothing but tracebacks is looked for: three times faster, and blind to failures that show
    only in warnings or metrics.
    """

    def __init__(self, *, tracebacks_only: bool = False) -> None:
        self.size = 0
        self.skipped = 0
        self._literals = (TRACEBACK,) if tracebacks_only else (TRACEBACK, *OTHERS)
        self._whole: list[bytes] = []
        self._is_long = False
        self._pending = b""
        self._lines_before = 0
        self._open: tuple[int, bytes] | None = None
        self._windows: list[Window] = []
        self._kept = 0
        self._last = b""
        self._strides = dict.fromkeys(self._literals, _STRIDE)
        self._seen: Counter[bytes] = Counter()

    def feed(self, chunk: bytes) -> None:
        """Take the next bytes of the stream."""
        self.size += len(chunk)
        if not self._is_long:
            self._whole.append(chunk)
            if self.size > WHOLE:
                self._begin_sieving()
            return
        self._take(chunk)

    def close(self) -> Iterator[Window]:
        """The windows, in the order of the stream; call it once, after the last `feed`."""
        if not self._is_long:
            yield Window(b"".join(self._whole), 1)
            return
        self._sift(self._pending, is_last=True)
        self._pending = b""
        yield from self._windows
        tail = self._last[-TAIL:]
        tail = tail[tail.find(b"\n") + 1 :]
        yield Window(tail, self._lines_before - tail.count(b"\n") + 1)

    def _begin_sieving(self) -> None:
        self._is_long = True
        data = b"".join(self._whole)
        self._whole = []
        end = data.find(b"\n", HEAD)
        head = data[: end + 1] if end >= 0 else data[:HEAD]
        self._windows.append(Window(head, 1))
        self._lines_before = head.count(b"\n")
        self._take(data[len(head) :])

    def _take(self, chunk: bytes) -> None:
        data = self._pending + chunk if self._pending else chunk
        cut = data.rfind(b"\n") + 1
        if cut == 0 and len(data) > MAX_LINE:
            cut = len(data)
        self._pending = data[cut:]
        if cut:
            self._sift(data[:cut], is_last=False)

    def _sift(self, data: bytes, *, is_last: bool) -> None:
        """Cut the windows out of `data`, which ends with a line; those that reach beyond it stay open."""
        previous, self._last = self._last[-_BEFORE - TAIL :] if is_last else self._last[-_BEFORE:], data
        joined, offset = previous + data, len(previous)
        if is_last and len(data) < TAIL:
            self._last = joined
        spans = sorted(self._spans(joined, offset))
        lines_at, counted = self._lines_before - previous.count(b"\n"), 0
        for start, end in _merged(spans):
            start = joined.rfind(b"\n", 0, start) + 1
            found = joined.find(b"\n", min(end, len(joined)))
            end = found + 1 if found >= 0 else len(joined)
            lines_at += joined.count(b"\n", counted, start)
            counted = start
            self._keep(joined[start:end], lines_at + 1)
        self._lines_before += data.count(b"\n")

    def _spans(self, data: bytes, offset: int) -> Iterator[tuple[int, int]]:
        for literal in self._literals:
            is_traceback = literal is TRACEBACK
            at = data.find(literal, max(offset - len(literal), 0))
            while at >= 0:
                if is_traceback:
                    yield max(at - _BEFORE, 0), self._end_of_traceback(data, at)
                    step = len(literal)
                else:
                    yield max(at - _AROUND_BEFORE, 0), at + _AROUND_AFTER
                    step = self._strides[literal]
                    self._strides[literal] = min(step + step // 8, _MAX_STRIDE)
                at = data.find(literal, at + step)

    def _end_of_traceback(self, data: bytes, at: int) -> int:
        """Where the traceback whose header is at `at` has surely ended: behind the next lines that name an error."""
        closing = data.find(b"Error", at, at + _CLOSING)
        if closing < 0:
            closing = data.find(b"Exception:", at, at + _CLOSING)
        return (closing if closing >= 0 else at) + _AFTER

    def _keep(self, data: bytes, first_line: int) -> None:
        key = _repetition_key(data)
        if key:
            self._seen[key] += 1
            if self._seen[key] > REPEATS:
                self.skipped += 1
                return
        if self._kept + len(data) > MAX_KEPT:
            self.skipped += 1
            return
        self._kept += len(data)
        self._windows.append(Window(data, first_line))


def _merged(spans: list[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """Overlapping spans as one, unless that grows beyond what one failure can be."""
    current: tuple[int, int] | None = None
    for start, end in spans:
        if current and start <= current[1] and current[1] - current[0] < 16 * _CLOSING:
            current = current[0], max(current[1], end)
            continue
        if current:
            yield current
        current = start, end
    if current:
        yield current


def _repetition_key(data: bytes) -> bytes:
    """What two windows of the same failure share: their lines that name an error, without numbers. Empty for none."""
    named = [line for line in data.split(b"\n") if b"Error" in line or b"raceback (" in line]
    if not named:
        return b""
    return re.sub(rb"[\d\s]+|0x[0-9a-f]+", b"#", b"\n".join(dict.fromkeys(line[-160:] for line in named[-4:])))
