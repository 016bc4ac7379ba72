"""Reads a file or a stream of any length into incidents."""

from __future__ import annotations

import codecs
import os
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import BinaryIO, Protocol

from explainer.errors import UnreadableInput
from explainer.ingest.assembly import assemble
from explainer.ingest.block import Block
from explainer.ingest.encoding import detect_encoding, refuse_binary
from explainer.ingest.sieve import MAX_LINE, Sieve, Window
from explainer.ingest.text import blocks_of
from explainer.model.incident import Incident

CHUNK = 1 << 20
MAX_NOTEBOOK = 64 << 20
LOG_SUFFIXES = (".log", ".txt", ".out", ".err", ".ipynb", ".stderr", ".stdout")  # what a folder's logs are named


class Readable(Protocol):
    """A byte stream that gives what is there without waiting for more."""

    def read1(self, size: int, /) -> bytes:
        """At most `size` bytes, none at the end."""


def read_file(
    path: str, *, tracebacks_only: bool = False, on_chunk: Callable[[bytes], None] | None = None
) -> list[Incident]:
    """The incidents of the log or notebook at `path`.

    Raises:
        UnreadableInput: it is missing, empty, or no text.
    """
    try:
        with open(path, "rb") as stream:
            if path.endswith(".ipynb") and os.fstat(stream.fileno()).st_size <= MAX_NOTEBOOK:
                from explainer.ingest.encoding import decode
                from explainer.ingest.notebook import read_notebook

                return list(read_notebook(decode(stream.read()), path))
            return read_stream(stream, path, tracebacks_only=tracebacks_only, on_chunk=on_chunk)
    except IsADirectoryError as error:
        raise UnreadableInput(f"{path}: this is a folder") from error
    except OSError as error:
        raise UnreadableInput(f"{path}: {(error.strerror or str(error)).lower()}") from error


def read_stream(
    stream: Readable | BinaryIO,
    name: str,
    *,
    tracebacks_only: bool = False,
    on_chunk: Callable[[bytes], None] | None = None,
) -> list[Incident]:
    """The incidents of a byte stream, read to its end in bounded memory; `on_chunk` sees each piece as it comes.

    Raises:
        UnreadableInput: the stream is empty or no text.
    """
    reader = LogReader(name, tracebacks_only=tracebacks_only)
    for chunk in _chunks(stream):
        if on_chunk is not None:
            on_chunk(chunk)
        reader.feed(chunk)
    return reader.close()


class LogReader:
    """Takes a log piece by piece, in bounded memory; `name` is "-" for what is no file."""

    def __init__(self, name: str = "-", *, tracebacks_only: bool = False) -> None:
        self._name = name
        self._sieve = Sieve(tracebacks_only=tracebacks_only)
        self._decoder: codecs.IncrementalDecoder | None = None
        self._head = b""

    def feed(self, chunk: bytes) -> None:
        """Take the next bytes.

        Raises:
            UnreadableInput: they are no text.
        """
        if not self._head:
            self._head = chunk
            codec = detect_encoding(chunk)
            refuse_binary(chunk, self._name)
            if codec not in ("utf-8", "utf-8-sig"):
                self._decoder = codecs.getincrementaldecoder(codec)(errors="replace")
        self._sieve.feed(self._decoder.decode(chunk).encode("utf-8", "replace") if self._decoder else chunk)

    def close(self) -> list[Incident]:
        """The incidents of all that came; call it once.

        Raises:
            UnreadableInput: nothing came.
        """
        if not self._head.strip():
            raise UnreadableInput(f"{self._name}: the input is empty")
        windows = list(self._sieve.close())
        incidents = assemble(_blocks(windows), None if self._name == "-" else self._name)
        return [one if windows[-1].first_line else _without_numbers(one) for one in incidents]


def _blocks(windows: list[Window]) -> Iterator[Block]:
    """The blocks of all windows; where lines were not counted, numbers only keep the order."""
    for at, window in enumerate(windows):
        text = window.data.decode("utf-8", "replace").removeprefix("\ufeff")
        yield from blocks_of(text, window.first_line or at * MAX_LINE)


def _without_numbers(incident: Incident) -> Incident:
    return replace(
        incident,
        exceptions=tuple(replace(one, log_line=None) for one in incident.exceptions),
        warnings=tuple(replace(one, log_line=None) for one in incident.warnings),
        metrics=tuple(replace(one, log_line=None) for one in incident.metrics),
        facts=tuple(replace(one, log_line=None) for one in incident.facts),
    )


def _chunks(stream: Readable | BinaryIO) -> Iterator[bytes]:
    """What is there, as soon as it is there: a pipe's writer is not kept waiting for a full buffer."""
    read = stream.read1 if hasattr(stream, "read1") else stream.read
    while chunk := read(CHUNK):
        yield chunk
