"""Reads TOML with the place of every key and value: tables, arrays of tables, dotted keys, inline tables."""

from __future__ import annotations

import re
import sys
from typing import Any

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

from explainer.source.setting.setting import TOML, Document, Path, Setting, Span
from explainer.source.text import TextFile

_SPACE = re.compile(r"(?:[ \t\r\n]|#[^\n]*)*")
_BLANK = re.compile(r"[ \t]*")
_KEY = re.compile(r"""[A-Za-z0-9_-]+|"(?:[^"\\\n]|\\.)*"|'[^'\n]*'""")
_STRING = re.compile(r'''"""(?:[^\\]|\\.)*?"{3,5}|\'\'\'.*?\'{3,5}|"(?:[^"\\\n]|\\.)*"|'[^'\n]*\'''', re.DOTALL)
_PLAIN = re.compile(r"[^,\]}#\r\n]+")


def read_toml(file: TextFile) -> Document:
    """The settings of a TOML file."""
    try:
        tree = tomllib.loads(file.text)
        scanner = _Scanner(file)
        scanner.tables()
    except (ValueError, LookupError) as error:
        return Document(file=file, kind=TOML, fault=f"does not parse: {error}")
    except RecursionError:
        return Document(file=file, kind=TOML, fault="does not parse: it is nested too deeply")
    return Document(file=file, kind=TOML, settings=tuple(scanner.found), trees=(tree,))


class _Scanner:
    """Walks over a text that is known to be valid, and notes where things stand."""

    def __init__(self, file: TextFile) -> None:
        self.file = file
        self.text = file.text
        self.found: list[Setting] = []
        self.counts: dict[Path, int] = {}

    def tables(self) -> None:
        """Reads the whole text."""
        table: Path = ()
        at = self._skip(0)
        while at < len(self.text):
            if self.text[at] == "[":
                table, at = self._header(at)
            else:
                at = self._pair(at, table, is_flow=False)
            at = self._skip(at)

    def _skip(self, at: int) -> int:
        found = _SPACE.match(self.text, at)
        return found.end() if found else at

    def _blank(self, at: int) -> int:
        found = _BLANK.match(self.text, at)
        return found.end() if found else at

    def _header(self, at: int) -> tuple[Path, int]:
        """`[table]` or `[[table]]`: where the settings below it belong."""
        is_array = self.text.startswith("[[", at)
        parts, _, at = self._dotted(at + 1 + is_array)
        path = self._resolved(parts[:-1])
        path = (*path, parts[-1])
        if is_array:
            number = self.counts[path] = self.counts.get(path, -1) + 1
            path = (*path, str(number))
        else:
            path = self._resolved(parts)
        return path, self.text.index("]", at) + 1 + is_array

    def _resolved(self, parts: Path) -> Path:
        """A table's path with the number of the last element of each array of tables on its way."""
        path: Path = ()
        for part in parts:
            path = (*path, part)
            if path in self.counts:
                path = (*path, str(self.counts[path]))
        return path

    def _dotted(self, at: int) -> tuple[Path, Span, int]:
        """A key, its last part's place, and where it ends."""
        parts: list[str] = []
        while True:
            at = self._blank(at)
            found = _KEY.match(self.text, at)
            if found is None:
                raise ValueError(f"no key at line {self.file.line_of(at)}")
            raw = found.group()
            parts.append(_load(raw) if raw[0] in "\"'" else raw)
            at = self._blank(found.end())
            if self.text[at] != ".":
                return tuple(parts), found.span(), at
            at += 1

    def _pair(self, at: int, table: Path, *, is_flow: bool) -> int:
        parts, key, at = self._dotted(at)
        at = self._blank(at + 1)  # past the "="
        return self._value(at, (*table, *parts), key, is_flow=is_flow)

    def _value(self, at: int, path: Path, key: Span | None, *, is_flow: bool) -> int:
        place = len(self.found)
        end = self._end(at, path)
        raw = self.text[at:end]
        setting = Setting(
            path=path,
            value=_load(raw),
            raw=raw,
            file=self.file,
            key=key,
            span=(at, end),
            line=self.file.line_of(key[0] if key else at),
            kind=TOML,
            is_flow=is_flow,
        )
        self.found.insert(place, setting)
        return end

    def _end(self, at: int, path: Path) -> int:
        """Where the value ends that begins at an offset; the values inside it are noted."""
        if self.text[at] in "[{":
            return self._members(at, path)
        found = _STRING.match(self.text, at)
        if found:
            return found.end()
        plain = _PLAIN.match(self.text, at)
        if plain is None:
            raise ValueError(f"no value at line {self.file.line_of(at)}")
        return at + len(plain.group().rstrip())

    def _members(self, at: int, path: Path) -> int:
        is_table = self.text[at] == "{"
        number = 0
        at = self._skip(at + 1)
        while self.text[at] not in "]}":
            if is_table:
                at = self._pair(at, path, is_flow=True)
            else:
                at = self._value(at, (*path, str(number)), None, is_flow=True)
            at = self._skip(at)
            if self.text[at] == ",":
                at = self._skip(at + 1)
            number += 1
        return at + 1


def _load(raw: str) -> Any:
    return tomllib.loads(f"x = {raw}")["x"]
