"""A text file of the user's project: its bytes, its characters, its lines; what source files and configuration files share."""

from __future__ import annotations

import os
import re
import stat
from bisect import bisect_right
from dataclasses import dataclass, field
from functools import cached_property

MAX_TEXT = 256 << 10
_BOM = b"\xef\xbb\xbf"
_LINE_END = re.compile(r"\r\n|\r|\n")


class Unreadable(Exception):
    """A file that cannot be read or edited; the text says why, in one clause."""


@dataclass(frozen=True)
class TextFile:
    """A file as it lay on disk.

    `text` is the decoded content without a byte order mark, with its own line ends; offsets into it count characters.
    """

    path: str
    data: bytes
    text: str
    encoding: str
    is_marked: bool = field(default=False, kw_only=True)

    def encode(self, text: str) -> bytes:
        """`text` as this file would hold it: its encoding, its byte order mark."""
        return (_BOM if self.is_marked else b"") + text.encode(self.encoding)

    @cached_property
    def _starts(self) -> list[int]:
        return [0, *(found.end() for found in _LINE_END.finditer(self.text))]

    def line_start(self, line: int) -> int:
        """The offset at which line `line` (from 1) begins; that of the end for a line past it."""
        return self._starts[line - 1] if line <= len(self._starts) else len(self.text)

    def line_of(self, offset: int) -> int:
        """The line (from 1) that holds an offset."""
        return bisect_right(self._starts, offset)

    def line(self, line: int) -> str:
        """The text of a line without its end; "" past the last one."""
        return self.text[self.line_start(line) : self.line_start(line + 1)].rstrip("\r\n")

    def indent(self, line: int) -> str:
        """The white space that a line begins with."""
        text = self.line(line)
        return text[: len(text) - len(text.lstrip())]

    @cached_property
    def newline(self) -> str:
        """The line end that the file uses."""
        found = _LINE_END.search(self.text)
        return found.group() if found else "\n"


def read_bytes(path: str, limit: int) -> bytes:
    """The content of a regular file of at most `limit` bytes.

    Raises:
        Unreadable: no regular file, too large, or not readable.
    """
    try:
        status = os.stat(path)
        if not stat.S_ISREG(status.st_mode):
            raise Unreadable(f"{path}: is no regular file")
        if status.st_size > limit:
            raise Unreadable(f"{path}: is larger than {limit >> 20 or limit >> 10} {'M' if limit >> 20 else 'K'}iB")
        with open(path, "rb") as file:
            return file.read()
    except (OSError, ValueError) as error:
        raise Unreadable(f"{path}: {getattr(error, 'strerror', None) or error}") from error


def read_text(path: str, limit: int = MAX_TEXT) -> TextFile:
    """A configuration file or script: UTF-8, with or without a byte order mark.

    Raises:
        Unreadable: no regular file, too large, not readable, or no UTF-8 text.
    """
    return make_text(path, read_bytes(path, limit))


def make_text(path: str, data: bytes) -> TextFile:
    """The text file at `path` whose content is `data`.

    Raises:
        Unreadable: the bytes are no UTF-8 text.
    """
    is_marked = data.startswith(_BOM)
    body = data.removeprefix(_BOM)
    if b"\x00" in body:
        raise Unreadable(f"{path}: is no text")
    try:
        return TextFile(path, data, body.decode("utf-8"), "utf-8", is_marked=is_marked)
    except UnicodeDecodeError as error:
        raise Unreadable(f"{path}: is not UTF-8 ({error.reason} at byte {error.start})") from error
