"""How an error is told: one line on standard error, and one JSON object on standard output where JSON was asked for."""

from __future__ import annotations

import itertools
import sys
from collections.abc import Sequence

SCHEMA = "gradfix.error/1"
_TAKES_A_PROGRAM = frozenset(("run", "verify"))
_SWITCHES = frozenset(
    ("--fix", "--unsafe-fixes", "--trace", "--keep-unproved", "--probe", "--no-probe", "--twin", "--allow-writes")
)


def fail(message: str, status: int, *, is_json: bool) -> int:
    """Tell of an error; its exit status."""
    from explainer.render.visible import one_line

    if is_json:
        print(error_object(message, status), flush=True)
    print(f"gradfix: {one_line(message, 600)}", file=sys.stderr)
    return status


def error_object(message: str, status: int) -> str:
    """The error as a line of JSON: `{"schema": "gradfix.error/1", "error": ..., "exit": ...}`."""
    import json

    return json.dumps({"schema": SCHEMA, "error": message, "exit": status})


def wants_json(words: Sequence[str]) -> bool:
    """Whether the words of a command line ask gradfix, not the program that it runs, for JSON; they need not be right."""
    own = list(_own(words))
    return "--format=json" in own or ("--format", "json") in itertools.pairwise(own)


def _own(words: Sequence[str]) -> Sequence[str]:
    """The words that are not those of a program to run."""
    if not words or words[0] not in _TAKES_A_PROGRAM:
        return words
    for at, word in enumerate(words[1:], start=1):
        before = words[at - 1]
        is_value = before.startswith("--") and before not in _SWITCHES and "=" not in before
        if word == "--" or not (word.startswith("-") or is_value):
            return words[:at]
    return words
