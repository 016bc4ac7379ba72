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


class Readable(Protocol):
    """A byte stream that gives what is there without waiting for more."""

    def read1(self, size: int, /) -> bytes:
        """At most `size` bytes, none at the end."""


def read_file(path: str, *, tracebacks_only: bool = False) -> list[Incident]:
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
            return read_stream(stream, path, tracebacks_only=tracebacks_only)
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
    sieve = Sieve(tracebacks_only=tracebacks_only)
    decoder: codecs.IncrementalDecoder | None = None
    head = b""
    for chunk in _chunks(stream):
        if on_chunk is not None:
            on_chunk(chunk)
        if not head:
            head = chunk
            codec = detect_encoding(head)
            refuse_binary(head, name)
            if codec not in ("utf-8", "utf-8-sig"):
                decoder = codecs.getincrementaldecoder(codec)(errors="replace")
        sieve.feed(decoder.decode(chunk).encode("utf-8", "replace") if decoder else chunk)
    if not head.strip():
        raise UnreadableInput(f"{name}: the input is empty")
    windows = list(sieve.close())
    incidents = assemble(_blocks(windows), None if name == "-" else name)
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
