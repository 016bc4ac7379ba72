"""Text of others made harmless: control characters and bidirectional overrides are shown, not obeyed."""

from __future__ import annotations

import re
from functools import cache


@cache
def _dangerous() -> re.Pattern[str]:
    """C0 and C1 controls but tab and line feed, DEL, and the marks that reorder or hide text."""
    return re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2060-\u2069\ufeff\ud800-\udfff]")


def visible(text: str) -> str:
    r"""`text` with every dangerous character written out: `\x1b` for an escape, `\u202e` for an override."""
    if text.isascii() and text.isprintable():
        return text
    return _dangerous().sub(_written, text)


def _written(found: re.Match[str]) -> str:
    number = ord(found[0])
    return f"\\x{number:02x}" if number < 256 else f"\\u{number:04x}"


def one_line(text: str, limit: int) -> str:
    """`text` on one line, harmless, cut to `limit` characters."""
    flat = " ".join(visible(text[: 4 * limit]).split())
    return flat if len(flat) <= limit else flat[: limit - 1] + "…"
