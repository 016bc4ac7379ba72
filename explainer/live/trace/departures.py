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
        queue, seen = [root], {root}
        while queue:
            one = self._flow.get(queue.pop())
            if one is None:
                continue
            is_cut = one.took_grad and not one.gave_grad and not one.in_segment
            if is_cut and (one.name in _CUTS or one.off is not None) and len(self._found) < MAX_TOLD:
                self._found.setdefault(one.off or one.place, one)
            new = {each for each in one.inputs if each >= begun} - seen
            seen |= new
            queue.extend(new)

    def told(self) -> list[Operation]:
        """An operation for each line, or for each that switches grad mode off, as first seen."""
        return list(self._found.values())
