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
MAX_OPEN = 2 << 20
REPEATS = 3
_BEFORE, _AFTER, _CLOSING = 3 << 10, 6 << 10, 64 << 10
_AROUND_BEFORE, _AROUND_AFTER = 1 << 10, 2 << 10
_STRIDE, _MAX_STRIDE = 512, 1 << 20

# The whole phrase: `bytes.find` is twice as fast as for its first word alone.
TRACEBACK = b"Traceback (most recent call last)"
# What stands only near a traceback or at a log's end needs none of its own.
OTHERS = (b"Error: ", b"Warning: ", b"overflow", b"OVERFLOW!", b"exitcode", b": nan")


class Window(NamedTuple):
    """A kept part of a stream: its text and the number of its first line (from 1), or None where none was counted."""

    data: bytes
    first_line: int | None


class Sieve:
    """Takes a stream in chunks, gives the windows of it.

    With `tracebacks_only` nothing but tracebacks is looked for and lines are not numbered: four times faster, and blind
    to failures that show only in warnings or metrics.
    """

    def __init__(self, *, tracebacks_only: bool = False) -> None:
        self.skipped = 0
        self._literals = (TRACEBACK,) if tracebacks_only else (TRACEBACK, *OTHERS)
        self._is_counting = not tracebacks_only
        self._size = 0
        self._whole: list[bytes] = []
        self._pending = b""
        self._before = b""
        self._lines = 0
        self._windows: list[Window] = []
        self._kept = 0
        self._since_window = 0
        self._strides = dict.fromkeys(self._literals, _STRIDE)
        self._seen: Counter[bytes] = Counter()

    def feed(self, chunk: bytes) -> None:
        """Take the next bytes of the stream."""
        was_long = self._size > WHOLE
        self._size += len(chunk)
        if was_long:
            self._take(chunk)
            return
        self._whole.append(chunk)
        if self._size > WHOLE:
            data, self._whole = b"".join(self._whole), []
            end = data.find(b"\n", HEAD) + 1 or HEAD
            self._windows.append(Window(data[:end], 1))
            self._lines = data.count(b"\n", 0, end)
            self._take(data[end:])

    def close(self) -> Iterator[Window]:
        """The windows, in the order of the stream; call it once, after the last `feed`."""
        if self._size <= WHOLE:
            yield Window(b"".join(self._whole), 1)
            return
        rest = self._sift(self._pending, is_last=True)
        yield from self._windows
        size = min(TAIL, self._since_window)
        tail = (self._before + rest)[-size:] if size else b""
        tail = tail[tail.find(b"\n") + 1 :] if size == TAIL else tail
        yield Window(tail, self._lines - tail.count(b"\n") + 1 if self._is_counting else None)

    def _take(self, chunk: bytes) -> None:
        data = self._pending + chunk if self._pending else chunk
        cut = data.rfind(b"\n") + 1
        if cut == 0 and len(data) > MAX_LINE:
            cut = len(data)
        if cut:
            rest = self._sift(data[:cut], is_last=False)
            self._pending = rest + data[cut:]
        else:
            self._pending = data

    def _sift(self, data: bytes, *, is_last: bool) -> bytes:
        """Keep the windows of `data`, which ends with a line, and give back what a window that reaches beyond it needs."""
        done, end, is_windowed = 0, len(data), False
        for start, stop in _merged(sorted(self._spans(data))):
            if stop > len(data) and not is_last and len(data) - start < MAX_OPEN:
                end = max(data.rfind(b"\n", 0, max(start, 0)) + 1, done)
                break
            head = self._before[start:] if start < 0 else b""
            begin = data.rfind(b"\n", 0, max(start, 0)) + 1 if start > 0 else 0
            stop = data.find(b"\n", min(stop, len(data))) + 1 or len(data)
            self._count(data, done, begin)
            self._keep(head + data[begin:stop], self._lines - head.count(b"\n") + 1 if self._is_counting else None)
            self._count(data, begin, stop)
            done, is_windowed = stop, True
        self._count(data, done, end)
        self._since_window = end - done if is_windowed else self._since_window + end
        if is_last:
            return data
        self._before = (self._before + data[max(end - TAIL, 0) : end])[-TAIL:] if end < TAIL else data[end - TAIL : end]
        return data[end:]

    def _count(self, data: bytes, start: int, stop: int) -> None:
        if self._is_counting and start < stop:
            self._lines += data.count(b"\n", start, stop)

    def _spans(self, data: bytes) -> Iterator[tuple[int, int]]:
        """Where the windows of `data` begin (below 0: in what came before it) and end (perhaps beyond it)."""
        for literal in self._literals:
            at = data.find(literal)
            while at >= 0:
                if literal is TRACEBACK:
                    yield at - _BEFORE, _end_of_traceback(data, at)
                    step = len(literal)
                else:
                    yield at - _AROUND_BEFORE, at + _AROUND_AFTER
                    step = self._strides[literal]
                    self._strides[literal] = min(step + step // 8, _MAX_STRIDE)
                at = data.find(literal, at + step)

    def _keep(self, data: bytes, first_line: int | None) -> None:
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


def _end_of_traceback(data: bytes, at: int) -> int:
    """Where the traceback whose header is at `at` has surely ended: behind the next lines that name an error."""
    closing = data.find(b"Error", at, at + _CLOSING)
    if closing < 0:
        closing = data.find(b"Exception:", at, at + _CLOSING)
    if closing < 0 and len(data) - at < _CLOSING:
        return at + _CLOSING
    return (closing if closing >= 0 else at) + _AFTER


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
    """What two windows of the same failure share: the last line that names an error, without numbers. Empty for none."""
    at = max(data.rfind(b"Error"), data.rfind(b"Exception:"))
    if at < 0:
        return b""
    start, end = data.rfind(b"\n", 0, at) + 1, data.find(b"\n", at)
    return re.sub(
        rb"[\d\s]+|0x[0-9a-f]+", b"#", data[max(start, at - 80) : min(end if end >= 0 else len(data), at + 160)]
    )
