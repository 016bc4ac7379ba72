"""Reads the common forms of `gradfix explain` without importing typer, which costs more than explaining does.

It understands long options with their values, `-v`, files and `-`; anything else, a mistake included, is left to the
full command line (`cli.app`), which declares the options and prints help and errors. A test holds the two together.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from explainer.cli.options import COLOURS, FORMATS, ExplainOptions

_VALUES = {
    "--format": "format",
    "--top": "top",
    "--env": "env",
    "--python": "python",
    "--cause": "cause",
    "--knowledge": "knowledge",
    "--root": "root",
    "--color": "color",
}
_SWITCHES: dict[str, tuple[str, bool]] = {
    "--verbose": ("verbose", True),
    "-v": ("verbose", True),
    "--no-probe": ("probe", False),
    "--probe": ("probe", True),
    "--no-mask": ("mask", False),
    "--mask": ("mask", True),
    "--tracebacks-only": ("tracebacks_only", True),
    "--passthrough": ("passthrough", True),
    "--no-passthrough": ("passthrough", False),
}


def parse_quickly(arguments: Sequence[str]) -> ExplainOptions | None:
    """The options of `explain ARGUMENTS`, or None where the full command line has to read them."""
    given: dict[str, Any] = {}
    files: list[str] = []
    rest = list(arguments)
    while rest:
        word = rest.pop(0)
        if word in _SWITCHES:
            name, value = _SWITCHES[word]
            given[name] = value
        elif word in _VALUES and rest and not rest[0].startswith("-"):
            given[_VALUES[word]] = rest.pop(0)
        elif word == "-" or not word.startswith("-"):
            files.append(word)
        else:
            return None
    return _checked(given, files)


def _checked(given: dict[str, Any], files: list[str]) -> ExplainOptions | None:
    if given.get("format", "text") not in FORMATS or given.get("color", "auto") not in COLOURS:
        return None
    if "top" in given:
        if not given["top"].isascii() or not given["top"].isdigit() or not 1 <= int(given["top"]) <= 100:
            return None
        given["top"] = int(given["top"])
    return ExplainOptions(files=tuple(files), **given)
