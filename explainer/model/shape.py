"""A shape of a cause as its folder holds it: the program that fails, the fixed one, and what was printed."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Printed:
    """What `broken.py` printed: the name of the recording (a torch release), the versions it states, the text."""

    name: str
    versions: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """One way in which a cause occurs. `fixed` is None where nothing is to be fixed; `printed` has the newest first."""

    name: str
    broken: str
    fixed: str | None = None
    printed: tuple[Printed, ...] = ()
