"""Samples that a model draws without their gradient where the distribution could give it, and that the loss then trains on.

`Normal(mean, std).sample()` runs with grad mode off: what is computed with it trains, and the mean and the deviation do not
through it. Where `log_prob` is asked of the sample its score is the gradient that is meant.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Sequence

from .flow import Operation
from .place import Place

MAX_FOLLOWED = 4_096


class Drawn:
    """Follows samples, and what is computed of them without a graph, until they meet one."""

    def __init__(self) -> None:
        self._roots: OrderedDict[int, Operation] = OrderedDict()
        self._met: dict[Place | None, Operation] = {}
        self._scored: set[Place | None] = set()
        self._scores: OrderedDict[int, None] = OrderedDict()

    def begin(self, number: int, operation: Operation) -> None:
        """An operation draws from what requires grad."""
        self._keep(number, operation)

    def is_followed(self, inputs: Iterable[int]) -> bool:
        """Whether an operation takes a sample."""
        return bool(self._roots) and any(one in self._roots for one in inputs)

    @property
    def has_any(self) -> bool:
        """Whether a sample was drawn."""
        return bool(self._roots)

    def root_of(self, number: int) -> Operation | None:
        """The draw behind what an operation gave without a graph; of a draw itself that."""
        return self._roots.get(number)

    def is_scored(self, number: int) -> bool:
        """Whether an operation took a sample for its probability."""
        return number in self._scores

    def follow(self, number: int, operation: Operation, *, is_scored: bool) -> None:
        """An operation took a sample: for its probability, into a graph, or to compute more of the same."""
        for one in operation.inputs:
            root = self._roots.get(one)
            if root is None:
                continue
            if is_scored:
                self._scored.add(root.place)
                self._scores[number] = None
                if len(self._scores) > MAX_FOLLOWED:
                    self._scores.popitem(last=False)
            elif operation.gave_grad:
                self._met[root.place] = root
            else:
                self._keep(number, root)

    def _keep(self, number: int, root: Operation) -> None:
        self._roots[number] = root
        if len(self._roots) > MAX_FOLLOWED:
            self._roots.popitem(last=False)

    def lines(self) -> Sequence[Operation]:
        """The draws whose samples met a graph and were never asked for their probability."""
        return [one for place, one in self._met.items() if place not in self._scored]
