"""Wraps text to a width in terminal columns; wide (East Asian) characters count two."""

from __future__ import annotations

import unicodedata


def wrap(text: str, width: int, hang: int = 0) -> list[str]:
    """`text` in lines of at most `width` columns, broken at spaces; lines after the first are indented by `hang`.

    A word longer than a line is broken. Line feeds in `text` stay.
    """
    lines: list[str] = []
    for paragraph in text.split("\n"):
        lines.extend(_wrap_one(paragraph, max(width, 8), hang))
    return lines


def columns(text: str) -> int:
    """How many columns `text` takes."""
    if text.isascii():
        return len(text)
    return sum(_columns_of(sign) for sign in text)


def _columns_of(sign: str) -> int:
    if unicodedata.combining(sign):
        return 0
    return 2 if unicodedata.east_asian_width(sign) in "WF" else 1


def _wrap_one(paragraph: str, width: int, hang: int) -> list[str]:
    if columns(paragraph) <= width:
        return [paragraph]
    lead = len(paragraph) - len(paragraph.lstrip(" "))
    lines: list[str] = []
    current = " " * lead
    is_empty = True
    for word in paragraph.split():
        for part in _parts(word, width - hang):
            space = 0 if is_empty else 1
            if not is_empty and columns(current) + space + columns(part) > width:
                lines.append(current)
                current, is_empty, space = " " * hang, True, 0
            current += " " * space + part
            is_empty = False
    return [*lines, current]


def _parts(word: str, width: int) -> list[str]:
    """A word as it is, or cut where it is longer than a line."""
    if columns(word) <= width:
        return [word]
    size = max(width // (1 if word.isascii() else 2), 1)
    return [word[at : at + size] for at in range(0, len(word), size)]
