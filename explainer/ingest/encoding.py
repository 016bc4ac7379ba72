"""Bytes to text: byte order marks, broken bytes, and what is no text at all."""

from __future__ import annotations

import codecs

from explainer.errors import UnreadableInput

_MARKS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_MAGIC = {
    b"\x1f\x8b": "a gzip file",
    b"\x28\xb5\x2f\xfd": "a zstandard file",
    b"PK\x03\x04": "a zip file (a torch checkpoint is one)",
    b"\x7fELF": "a program",
    b"\x89PNG": "an image",
    b"\xff\xd8\xff": "an image",
    b"%PDF": "a PDF",
}
_TEXT_CONTROL = frozenset(b"\t\n\r\x0b\x0c\x1b\x07\x08")
_HEAD = 65536


def detect_encoding(head: bytes) -> str:
    """The codec to read a stream with, from its first bytes. Windows PowerShell redirects as UTF-16 with a mark."""
    for mark, codec in _MARKS:
        if head.startswith(mark):
            return codec
    if len(head) >= 64 and head[1:64:2].count(0) >= 30:
        return "utf-16-le"
    if len(head) >= 64 and head[0:64:2].count(0) >= 30:
        return "utf-16-be"
    return "utf-8"


def refuse_binary(head: bytes, name: str) -> None:
    """Raise `UnreadableInput` where `head` (the first bytes of a stream) is no text.

    A log may hold stray control bytes: it counts as binary by its magic number, or where more than a twentieth of its first
    64 KiB are control bytes.
    """
    for magic, what in _MAGIC.items():
        if head.startswith(magic):
            raise UnreadableInput(f"{name}: this is {what}, not a log")
    sample = head[:_HEAD]
    if detect_encoding(sample) != "utf-8":
        return
    controls = sum(sample.count(byte) for byte in range(32) if byte not in _TEXT_CONTROL)
    if controls * 20 > len(sample):
        raise UnreadableInput(f"{name}: this is binary data, not a log")


def decode(data: bytes) -> str:
    """The whole of `data` as text; bytes that do not decode become U+FFFD."""
    return data.decode(detect_encoding(data[:_HEAD]), errors="replace")
