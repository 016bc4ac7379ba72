"""What a terminal would have shown: colours taken off, overwritten progress bars reduced to their last state."""

from __future__ import annotations

import re
from functools import cache


@cache
def _decoration() -> re.Pattern[str]:
    """Colour and style (SGR), erase-line and cursor movement of progress bars, and OSC 8 links, which keep their text.

    Other control sequences stay: a renderer shows them escaped.
    """
    return re.compile(r"\x1b\[[0-9;:]*[mKABCDGJ]|\x1b\]8;[^\x07\x1b\n]{0,2000}(?:\x07|\x1b\\)|\x1b\(B|\x0f")


def strip_decoration(text: str) -> str:
    """`text` without colour codes and links."""
    if "\x1b" not in text and "\x0f" not in text:
        return text
    return _decoration().sub("", text)


def split_lines(text: str) -> list[tuple[int, str]]:
    """Physical line numbers (from 1) and what each line shows.

    A line that carriage returns overwrite gives its lasting parts.
    """
    lines: list[tuple[int, str]] = []
    for number, line in enumerate(text.split("\n"), start=1):
        line = line.removesuffix("\r")
        if "\r" not in line:
            lines.append((number, line))
        else:
            lines.extend((number, part) for part in _overwritten(line))
    return lines


def _overwritten(line: str) -> list[str]:
    """The parts of a line between carriage returns that are worth keeping: all but superseded progress bars."""
    parts = [part for part in line.split("\r") if part.strip()]
    following = [*parts[1:], ""]
    return [
        part for part, after in zip(parts, following, strict=False) if not (is_progress(part) and is_progress(after))
    ] or [""]


@cache
def _progress() -> re.Pattern[str]:
    return re.compile(r"\d+%\s?\||\d+%\s?[━╸╺█▏▎▍▌▋▊▉#=>.\-]{3}|\[\d\d:\d\d<|\bit/s\]?|\bs/it\]?|[━]{5}")


def is_progress(line: str) -> bool:
    """Whether a line is the state of a progress bar (tqdm, rich, keras)."""
    return ("%" in line or "it/s" in line or "s/it" in line or "━" in line) and bool(_progress().search(line))
