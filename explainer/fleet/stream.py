"""Opens an object of any place as a stream of its text's bytes: plain, gzip and zstandard, told by their first bytes."""

from __future__ import annotations

import gzip
import io
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import BinaryIO, cast

from explainer.errors import UnreadableInput
from explainer.fleet.source import Source
from explainer.ingest.source import Readable

BLOCK = 1 << 20
_GZIP, _ZSTANDARD = b"\x1f\x8b", b"\x28\xb5\x2f\xfd"


@contextmanager
def open_source(source: Source) -> Iterator[Readable]:
    """The object's bytes, decompressed as they are read; memory does not grow with its length.

    Raises:
        OSError: it cannot be opened; a store's client may raise errors of its own.
        UnreadableInput: it is compressed in a way for which a package is missing.
    """
    with ExitStack() as stack:
        raw = stack.enter_context(_open(source))
        buffered = raw if isinstance(raw, io.BufferedReader) else io.BufferedReader(cast("io.RawIOBase", raw), BLOCK)
        magic = buffered.peek(len(_ZSTANDARD))[: len(_ZSTANDARD)]
        if magic.startswith(_GZIP):
            yield stack.enter_context(gzip.GzipFile(fileobj=buffered))
        elif magic == _ZSTANDARD:
            yield _zstandard(buffered, source.address)
        else:
            yield buffered


def _open(source: Source) -> BinaryIO:
    if source.is_remote:
        from explainer.fleet.remote import open_remote

        return open_remote(source.address)
    return open(source.address, "rb")


def _zstandard(stream: io.BufferedReader, name: str) -> Readable:
    try:
        from zstandard import ZstdDecompressor
    except ImportError:
        raise UnreadableInput(f"{name}: zstandard files are read with `pip install 'gradfix[fleet]'`") from None
    reader: Readable = ZstdDecompressor().stream_reader(stream, read_across_frames=True)
    return reader
