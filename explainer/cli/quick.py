"""Reads the common forms of `gradfix explain` and `ui` without importing typer, which costs more than explaining does.

It understands long options with their values, `-v`, files and `-`; anything else, a mistake included, is left to the
full command line (`cli.app`), which declares the options and prints help and errors. A test holds the two together.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from explainer.cli.options import COLOURS, FORMATS, ExplainOptions

if TYPE_CHECKING:
    from explainer.cli.ui import UiOptions

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


def parse_ui_quickly(arguments: Sequence[str]) -> UiOptions | None:
    """The options of `ui ARGUMENTS` where it opens one log, or runs a command; None for all else."""
    from explainer.cli.ui import UiOptions

    words = list(arguments)
    at = words.index("--") if "--" in words else len(words)
    command, words = tuple(words[at + 1 :]), words[:at]
    given: dict[str, Any] = dict(
        _SWITCHES[word] for word in words if word in ("--probe", "--no-probe", "--mask", "--no-mask")
    )
    files = [word for word in words if word not in _SWITCHES]
    if len(files) > 1 or any(word.startswith("-") and word != "-" for word in files) or (files and command):
        return None
    if len(files) + len(given) < len(words):
        return None
    return UiOptions(file=files[0] if files else None, command=command, **given)
