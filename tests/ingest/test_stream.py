"""Bytes of any kind and length: encodings, binary data, endless streams."""

from __future__ import annotations

import io

import pytest

from explainer.errors import UnreadableInput
from explainer.ingest import sieve
from explainer.ingest.encoding import decode
from explainer.ingest.sieve import Sieve
from explainer.ingest.source import read_file, read_stream

FAILED = 'Traceback (most recent call last):\n  File "train.py", line 3, in step\n    loss.backward()\nRuntimeError: {what}\n'
REFUSED = {
    "empty": b"",
    "blank": b"  \n\n ",
    "gzip": b"\x1f\x8b\x08" + bytes(100),
    "a checkpoint": b"PK\x03\x04" + bytes(100),
    "random": bytes(range(256)) * 50,
}
ENCODED = {
    "utf-8": FAILED.format(what="größer").encode(),
    "utf-8 with mark": FAILED.format(what="größer").encode("utf-8-sig"),
    "powershell": FAILED.format(what="größer").encode("utf-16"),
    "utf-16 big endian": b"\xfe\xff" + FAILED.format(what="größer").encode("utf-16-be"),
    "utf-16 without mark": FAILED.format(what="größer").encode("utf-16-le"),
    "windows lines": FAILED.format(what="größer").replace("\n", "\r\n").encode(),
}


@pytest.mark.parametrize("data", REFUSED.values(), ids=REFUSED.keys())
def test_refused(data: bytes) -> None:
    """What is no text is refused in one line."""
    with pytest.raises(UnreadableInput):
        read_stream(io.BytesIO(data), "-")


@pytest.mark.parametrize("data", ENCODED.values(), ids=ENCODED.keys())
def test_encodings(data: bytes) -> None:
    """The text is the same in every encoding."""
    (incident,) = read_stream(io.BytesIO(data), "-")
    assert incident.exceptions[0].message == "größer"


def test_broken_bytes() -> None:
    """Bytes that do not decode do not stop the reading."""
    (incident,) = read_stream(
        io.BytesIO(b"\xff\xfe\xfd progress\n".replace(b"\xff\xfe", b"\x80\x81") + FAILED.format(what="x").encode()), "-"
    )
    assert incident.exceptions[0].message == "x"
    assert decode(b"a\x80b") == "a\ufffdb"


@pytest.mark.parametrize("path", ["missing.log", ""], ids=["missing", "a folder"])
def test_unreadable_paths(tmp_path, path: str) -> None:
    """A path that cannot be read says why."""
    with pytest.raises(UnreadableInput, match="no such file|folder"):
        read_file(str(tmp_path / path))


def long_log(*failures: tuple[int, str]) -> bytes:
    """A log longer than is kept whole, with failures after so many lines."""
    line = "[rank{rank}]: step {step} loss 0.5 learning_rate 2e-05 tokens per second 12345 and some more text\n"
    lines = [line.format(rank=step % 4, step=step) for step in range(2 * sieve.WHOLE // len(line))]
    for at, what in sorted(failures, reverse=True):
        lines[at:at] = [f"[rank1]: {text}\n" for text in FAILED.format(what=what).splitlines()]
    return "".join(lines).encode()


def windows(data: bytes, chunk: int, **options: bool) -> list[sieve.Window]:
    taken = Sieve(**options)
    for at in range(0, len(data), chunk):
        taken.feed(data[at : at + chunk])
    return list(taken.close())


@pytest.mark.parametrize("chunk", [4096, 65_536, 1 << 20])
def test_windows_hold_the_failure(chunk: int) -> None:
    """However the stream is cut, a failure in the middle of it is kept whole, with its line number."""
    data = long_log((40_000, "in the middle"))
    kept = windows(data, chunk)
    assert sum(len(window.data) for window in kept) < len(data) // 4
    (found,) = [window for window in kept if b"in the middle" in window.data]
    assert FAILED.format(what="in the middle").splitlines()[0].encode() in found.data
    text = data.decode().splitlines()
    assert text[found.first_line - 1] == found.data.decode().splitlines()[0]


@pytest.mark.parametrize("offset", range(-200, 200, 37))
def test_a_failure_across_two_chunks(offset: int) -> None:
    """A traceback that a chunk's end cuts is not cut."""
    data = long_log((50_000, "across"))
    at = data.index(b"Traceback") + 100 + offset
    taken = Sieve()
    taken.feed(data[:at])
    taken.feed(data[at:])
    (found,) = [window for window in taken.close() if b"across" in window.data]
    assert b"Traceback" in found.data


def test_repetitions_are_counted_not_kept() -> None:
    """The same failure a hundred times is kept a few times."""
    data = long_log(*((1000 + 400 * number, f"again {number}") for number in range(100)))
    taken = Sieve()
    taken.feed(data)
    kept = list(taken.close())
    assert sum(window.data.count(b"Traceback") for window in kept) <= sieve.REPEATS + 2
    assert taken.skipped > 80


def test_tracebacks_only() -> None:
    """The fast mode finds tracebacks, numbers no line, and still gives the incident."""
    data = long_log((40_000, "middle"))
    (incident,) = read_stream(io.BytesIO(data), "-", tracebacks_only=True)
    assert (incident.exceptions[0].message, incident.exceptions[0].log_line) == ("middle", None)


def test_lines_of_any_length() -> None:
    """A line of megabytes is taken in pieces."""
    data = b"x" * (3 * sieve.WHOLE) + b"\n" + FAILED.format(what="end").encode()
    (incident,) = read_stream(io.BytesIO(data), "-")
    assert incident.exceptions[0].message == "end"
