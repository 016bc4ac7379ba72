"""Running statistics: which call of a network moved them, and which used them in a graph that a backward needs."""

from __future__ import annotations

from typing import Any

from .flow import Flow
from .place import Place, Places

MAX_READERS = 4_000
_NAMES = ("input", "running_mean", "running_var", "weight", "bias", "training")


class Statistics:
    """Sees each batch norm. Its line is that of the network's call: inside of the network both passes have the same ones."""

    def __init__(self, places: Places, flow: Flow) -> None:
        self._places = places
        self._flow = flow
        self._readers: dict[int, Place | None] = {}

    def moved(self, args: tuple[Any, ...], keywords: dict[str, Any], depth: int) -> tuple[list[Any], Place | None]:
        """The statistics that a batch norm, logged last, has moved, and the line; `depth` frames above this one it was called."""
        given = {**dict(zip(_NAMES, args, strict=False)), **keywords}
        kept = [one for name in _NAMES[1:3] if (one := given.get(name)) is not None]
        if not kept:
            return [], None
        place = self._places.caller(depth + 1)
        if given.get("training"):
            return kept, place
        operation = self._flow.get(len(self._flow) - 1)
        if operation is not None and operation.gave_grad and len(self._readers) < MAX_READERS:
            self._readers[operation.sequence] = place
        return [], None

    def reader(self, sequence: int) -> Place | None:
        """The line of the network's call in which the batch norm of that number used its running statistics."""
        return self._readers.get(sequence)
