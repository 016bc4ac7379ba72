"""Reads JSON with the place of every key and value. Strict: comments and trailing commas are faults, as the library says."""

from __future__ import annotations

import json
import re
from json.decoder import scanstring  # type: ignore[attr-defined]

from explainer.source.setting.setting import JSON, Document, Path, Setting, Span
from explainer.source.text import TextFile

_SPACE = re.compile(r"[ \t\r\n]*")
_PLAIN = re.compile(r"[^\s,\]}]+")


def read_json(file: TextFile) -> Document:
    """The settings of a JSON file."""
    try:
        tree = json.loads(file.text)
        scanner = _Scanner(file)
        scanner.value(_skip(file.text, 0), (), None)
    except ValueError as error:
        return Document(file=file, kind=JSON, fault=f"does not parse: {error}")
    except RecursionError:
        return Document(file=file, kind=JSON, fault="does not parse: it is nested too deeply")
    return Document(file=file, kind=JSON, settings=tuple(scanner.found), trees=(tree,))


def _skip(text: str, at: int) -> int:
    found = _SPACE.match(text, at)
    return found.end() if found else at


class _Scanner:
    """Walks over a text that is known to be valid, and notes where things stand."""

    def __init__(self, file: TextFile) -> None:
        self.file = file
        self.text = file.text
        self.found: list[Setting] = []

    def value(self, at: int, path: Path, key: Span | None) -> int:
        """Reads the value that begins at an offset; returns where it ends."""
        place = len(self.found)
        opening = self.text[at]
        if opening in "{[":
            end = self._members(at + 1, path, is_object=opening == "{")
        elif opening == '"':
            end = int(scanstring(self.text, at + 1)[1])
        else:
            found = _PLAIN.match(self.text, at)
            end = found.end() if found else at
        if path:
            raw = self.text[at:end]
            setting = Setting(
                path=path,
                value=json.loads(raw),
                raw=raw,
                file=self.file,
                key=key,
                span=(at, end),
                line=self.file.line_of(key[0] if key else at),
                kind=JSON,
                is_flow=True,
            )
            self.found.insert(place, setting)
        return end

    def _members(self, at: int, path: Path, *, is_object: bool) -> int:
        number = 0
        at = _skip(self.text, at)
        while self.text[at] not in "}]":
            key = None
            name = str(number)
            if is_object:
                name, end = scanstring(self.text, at + 1)
                key = (at, end)
                at = _skip(self.text, self.text.index(":", end) + 1)
            at = _skip(self.text, self.value(at, (*path, name), key))
            if self.text[at] == ",":
                at = _skip(self.text, at + 1)
            number += 1
        return at + 1
