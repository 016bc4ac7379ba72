"""A message with its values left open, so that many failures of one kind have the same words."""

from __future__ import annotations

import re
from functools import cache

MAX_TEMPLATE = 400
# The order matters: what holds numbers comes before numbers. Each kind with the pattern that a signature takes for it.
KINDS: dict[str, tuple[str, str]] = {
    "<address>": (r"\b0x[0-9a-fA-F]+\b", r"0x[0-9a-fA-F]{1,16}"),
    "<uuid>": (
        r"\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b",
        r"[0-9a-f-]{36}",
    ),
    "<host>": (r"\b\d{1,3}(?:\.\d{1,3}){3}(?::\d+)?\b|\b[\w-]+(?:\.[\w-]+)+:\d{2,5}\b", r"[\w.:-]{1,80}"),
    "<path>": (r"(?<![\w<])(?:[A-Za-z]:)?(?:[/\\][\w.@+~-]+){2,}[/\\]?", r"[\w./\\@+~:-]{1,200}"),
    "<text>": (r"(?<!\w)(?:'[^'\n]{0,200}'|\"[^\"\n]{0,200}\"|`[^`\n]{0,200}`)(?!\w)", r"['\"`][^'\"`]{0,200}['\"`]"),
    "<shape>": (r"[\[(]\s?\d+(?:,\s?\d+)*,?\s?[\])]|\b\d+(?:x\d+)+\b", r"[\[(]?[\d, x]{1,40}[\])]?"),
    "<number>": (r"(?<![\w.])[-+]?\d+(?:[.,]\d+)*(?:[eE][-+]?\d+)?(?![\w.]\d)|\d+", r"[-+]?[\d.,eE+-]{1,30}"),
}
ANY = "<any>"  # a word that differs within a cluster


@cache
def _values() -> re.Pattern[str]:
    return re.compile("|".join(f"(?P<v{at}>{found})" for at, (found, _) in enumerate(KINDS.values())))


@cache
def _marks() -> tuple[str, ...]:
    return tuple(KINDS)


def template_of(message: str) -> str:
    """The first lines of a message, on one line, each value as `<number>`, `<path>` and the like.

    Example:
        >>> template_of("expected 3 got 0x7f at '/a/b.py'")
        'expected <number> got <address> at <text>'
    """
    flat = " ".join(message[: 4 * MAX_TEMPLATE].split())[:MAX_TEMPLATE]
    return _values().sub(lambda found: _marks()[int((found.lastgroup or "v0")[1:])], flat)


def pattern_of(template: str) -> str:
    """The regular expression of a template, with bounded repeats, as `form.pattern` of a rule takes it."""
    parts = re.split(r"(<[a-z]+>)", template)
    return "".join(_part(part) for part in parts)


def literals_of(template: str, limit: int = 2) -> list[str]:
    """The longest runs of fixed words: what a message must contain before a pattern is tried."""
    runs = [run.strip(" .,:;") for run in re.split(r"<[a-z]+>", template)]
    chosen = sorted({run for run in runs if len(run) >= 6}, key=lambda run: (-len(run), run))[:limit]
    return sorted(chosen, key=template.find) or [max(runs, key=len)]


def _part(part: str) -> str:
    if part == ANY:
        return r"\S{1,80}"
    return (
        KINDS[part][1] if part in KINDS else re.escape(part).replace(r"\ ", " ").replace(r"\-", "-").replace(r"\'", "'")
    )
