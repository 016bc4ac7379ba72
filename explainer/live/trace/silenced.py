"""Where NumPy divided by zero or computed NaN under `errstate(divide="ignore")`: it says nothing then, and data goes on as infinity.

To a log it says which operation it was, to a function it does not.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import ExitStack
from typing import Any

from .place import Place, describe

KINDS = ("divide", "invalid")
MAX_PLACES = 5


class Silenced:
    """The lines at which NumPy was told to be silent and had something to say, each once, in the order of time."""

    def __init__(self, here: Callable[[int], Place | None]) -> None:
        self._here = here
        self._places: dict[Place, str] = {}

    def watch(self, numpy: Any, undo: ExitStack) -> None:
        """Have NumPy write here where the program would have it ignore; what it computes stays the same."""
        plain, heard = numpy.errstate, self._heard

        def begin(self: Any, **given: Any) -> None:
            plain.__init__(self, **heard(given))

        undo.callback(setattr, numpy, "errstate", plain)
        numpy.errstate = type(plain.__name__, (plain,), {"__init__": begin})

    def told(self) -> list[dict[str, Any]]:
        """Each place with what NumPy would have said there."""
        return [{"says": says, **describe(place)} for place, says in self._places.items()]

    def _heard(self, given: Mapping[str, Any]) -> dict[str, Any]:
        ignored = [one for one in KINDS if given.get(one, given.get("all")) == "ignore"]
        if not ignored or "call" in given:
            return dict(given)
        return {**given, **dict.fromkeys(ignored, "log"), "call": self}

    def write(self, says: str) -> None:
        """NumPy says what it met: `Warning: divide by zero encountered in log`."""
        place = self._here(2)
        if place is not None and len(self._places) < MAX_PLACES:
            self._places.setdefault(place, says.strip().removeprefix("Warning: "))
