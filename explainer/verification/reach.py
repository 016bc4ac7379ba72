"""Says of a command, from its words alone, why its processes cannot be watched: interpreters and places that `live/` cannot enter."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence

_PYTHON = re.compile(r"(?:python|pypy)[\d.]*(?:\.exe)?")
_DEAF = {"I": "is isolated from PYTHONPATH", "E": "ignores PYTHONPATH", "S": "starts without `site`"}
_TAKES_A_WORD = "WX"
_ENDS = "cm"
_AWAY = {
    "ssh": "on another machine", "sbatch": "in a job of its own", "docker": "in a container", "podman": "in a container",
    "kubectl": "in a container", "ray": "on a cluster",
}  # fmt: skip


def why_unwatched(command: Sequence[str]) -> str | None:
    """One line that names what keeps gradfix out of the command's processes; None where nothing is seen to."""
    first = os.path.basename(command[0]) if command else ""
    if first in _AWAY:
        return f"`{first}` runs the program {_AWAY[first]}, where gradfix cannot watch it: run gradfix there"
    for index, word in enumerate(command):
        if _PYTHON.fullmatch(os.path.basename(word)):
            for flag in _flags(command[index + 1 :]):
                if flag in _DEAF:
                    return (
                        f"`python -{flag}` {_DEAF[flag]}, so that gradfix cannot watch the program: leave -{flag} out"
                    )
            return None
    return None


def _flags(words: Sequence[str]) -> Iterator[str]:
    """The single letters among an interpreter's own options."""
    rest = iter(words)
    for word in rest:
        if not word.startswith("-") or word.startswith("--") or word == "-":
            return
        for place, letter in enumerate(word[1:], 1):
            yield letter
            if letter in _ENDS:
                return
            if letter in _TAKES_A_WORD:
                if place == len(word) - 1:
                    next(rest, None)
                break
