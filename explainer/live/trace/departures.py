"""Where values leave the graph on the way to a loss that has one: most often meant, and where a gradient ends that is missed.

What a step of a training loop takes from earlier ones is not on this way, nor integers and choices, which no gradient goes through.
"""

from __future__ import annotations

from .flow import Flow, Operation
from .place import Place

MAX_BACKWARDS = 4  # that are looked at
MAX_TOLD = 8
_CUTS = frozenset(("detach", "detach_", "data", "item", "tolist", "numpy", "__float__", "__array__"))


class Departures:
    """Looks at the first few graphs of a program, when their backward begins."""

    def __init__(self, flow: Flow) -> None:
        self._flow = flow
        self._begun = 0
        self._looked_at = 0
        self._found: dict[Place | None, Operation] = {}

    def saw_backward(self, root: int | None) -> None:
        """A backward is about to begin at what the operation with this number made."""
        begun, self._begun = self._begun, len(self._flow)
        if root is None or self._looked_at >= MAX_BACKWARDS:
            return
        self._looked_at += 1
        for _, one in self._flow.upstream(root, begun):
            is_cut = one.took_grad and not one.gave_grad and not one.in_segment
            if is_cut and (one.name in _CUTS or one.off is not None) and len(self._found) < MAX_TOLD:
                self._found.setdefault(one.off or one.place, one)

    def told(self) -> list[Operation] | None:
        """An operation for each line, or for each that switches grad mode off, as first seen; None where there was no graph."""
        return list(self._found.values()) if self._looked_at else None
