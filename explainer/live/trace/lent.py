"""Arrays of NumPy that have the memory of what a graph computed: what is written there, the loss reads, unseen by autograd."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from .exits import ON_THE_WAY
from .flow import Flow, Operation
from .place import Place
from .shared import Shared

LENDING = ("numpy", "__array__")


class Lent:
    """What let its memory out since the last step, and who read it when the array had been overwritten."""

    def __init__(self, flow: Flow) -> None:
        self._flow = flow
        self._shared = Shared()
        self._overwritten: dict[Place | None, Operation] = {}
        self.holds, self.changed, self.forget = self._shared.holds, self._shared.changed, self._shared.forget

    def lend(self, tensor: Any, operation: Operation) -> None:
        """An array was made of a tensor, which may be an alias of what a graph computed."""
        for number, above in self._flow.upstream(operation.inputs[0]):
            if above.gave_grad:
                self._shared.add(tensor, operation.place, number)
            if above.gave_grad or above.name not in ON_THE_WAY:
                return

    def saw_read(self, tensors: Iterable[Any], operation: Operation) -> None:
        """An operation took tensors of a graph, of which some may have memory that was let out."""
        for place in self._shared.overwritten(tensors):
            self._overwritten.setdefault(place, operation)

    def told(self) -> Iterator[tuple[Place | None, Operation]]:
        """The line that let each such array out, and the operation that read what was written there."""
        yield from self._overwritten.items()
