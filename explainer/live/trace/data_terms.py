"""Terms of a loss that are computed of data alone, beside an output of the model that nothing reads: data meets itself there.

`{**outputs, **batch}` with a key that both have hands the loss the target for the prediction. A term without a graph is healthy by
itself (a regulariser of data, a constant), and so is an output that nothing reads (a pooler). Told only where the term has taken data
of the shape of that output in each graph that was looked at, and parameters behind the output never get a gradient.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from .added import ADDS
from .flow import Flow, Operation
from .place import Place
from .starved import Starved

LEAST_GRAPHS = 2
MAX_GRAPHS = 8  # that are looked at
MAX_TERMS = 64
MAX_SHAPES = 20_000  # of one step
MAX_UPSTREAM = 400
MAX_UNREAD = 16
# What hands the values of terms on to the loss.
_SUMS = ADDS | {"stack", "cat"}
_SCALED = frozenset(
    ("mul", "__mul__", "__rmul__", "mul_", "div", "__truediv__", "true_divide", "div_", "sum", "mean", "squeeze")
)
# What compares a prediction with its target.
_DIFFERENCES = frozenset(
    ("sub", "rsub", "__sub__", "__rsub__", "cross_entropy", "binary_cross_entropy", "binary_cross_entropy_with_logits", "kl_div",
     "cosine_similarity", "pairwise_distance", "dist")
)  # fmt: skip

Shape = tuple[int, ...]


@dataclass(slots=True)
class _Found:
    """What takes the data for such a term, in how many graphs, and the leaves behind the outputs of that shape."""

    operation: Operation
    graphs: int = 0
    leaves: set[int] = field(default_factory=set)


_Comparing = tuple[tuple[Place | None, str], Operation, set[Shape]]


class DataTerms:
    """Looks at the sum that each of the first few backwards starts from."""

    def __init__(self, torch: Any, flow: Flow, starved: Starved) -> None:
        self._parameter = torch.nn.Parameter
        self._flow = flow
        self._starved = starved
        self._begun = 0
        self._left = MAX_GRAPHS
        self._with_term = 0
        self._shapes: dict[
            int, set[Shape]
        ] = {}  # of what this step has made: its outputs may be gone when the backward begins
        self._found: dict[tuple[Place | None, str], _Found] = {}

    def saw(self, number: int, outputs: list[Any]) -> None:
        """An operation has made some tensors."""
        if self._left and len(self._shapes) < MAX_SHAPES:
            self._shapes[number] = {tuple(one.shape) for one in outputs if _is_numbers(one)}

    def saw_backward(self, root: int | None) -> None:
        """A backward is about to begin at what the operation with this number made."""
        begun, self._begun = self._begun, len(self._flow)
        if not self._left:
            return
        if root is not None and root >= begun:
            self._left -= 1
            comparing = [each for one in self._terms(root) for each in self._comparing(one)]
            if comparing:
                self._with_term += 1
                self._look(comparing, self._unread(begun))
        self._shapes.clear()

    def _look(self, comparing: list[_Comparing], unread: list[tuple[set[Shape], set[int]]]) -> None:
        for key, operation, shapes in comparing:
            leaves = {leaf for given, found in unread if given & shapes for leaf in found}
            if leaves:
                found = self._found.setdefault(key, _Found(operation))
                found.graphs += 1
                found.leaves |= leaves

    def told(self) -> list[tuple[Operation, int]]:
        """What takes data for such a term in every graph, and how many parameters behind the output never got a gradient."""
        hungry = self._starved.never_given()
        counted = [(one, len(one.leaves & hungry)) for one in self._found.values()]
        return [
            (one.operation, count)
            for one, count in counted
            if count and one.graphs >= max(LEAST_GRAPHS, self._with_term)
        ]

    def _terms(self, root: int) -> Iterator[int]:
        """The terms of a sum that have no graph, and are no leaves."""
        queue, seen = [root], {root}
        while queue and len(seen) < MAX_TERMS:
            operation = self._flow.get(queue.pop())
            if operation is None or operation.name not in _SUMS | _SCALED:
                continue
            for one in operation.inputs:
                below = self._flow.get(one)
                if below is None or one in seen:
                    continue
                seen.add(one)
                if below.gave_grad:
                    queue.append(one)
                elif operation.name in _SUMS:
                    yield one

    def _comparing(self, term: int) -> Iterator[_Comparing]:
        """The comparisons behind a term, with the shapes that they took; none where anything but data went in."""
        behind = list(islice(self._flow.upstream(term), MAX_UPSTREAM))
        leaves = [leaf for _, one in behind for each in one.leaves if (leaf := self._flow.leaf(each)) is not None]
        if len(behind) == MAX_UPSTREAM or any(one.took_grad for _, one in behind):
            return
        if any(one.requires_grad or isinstance(one, self._parameter) for one in leaves):
            return  # a network that is not trained, as a teacher
        for _, one in behind:
            if len(one.inputs) + len(one.leaves) > 1 and (one.name in _DIFFERENCES or one.name.endswith("_loss")):
                yield (one.place, one.name), one, self._taken(one)

    def _taken(self, operation: Operation) -> set[Shape]:
        """The shapes of the numbers that an operation took."""
        given = [self._flow.leaf(one) for one in operation.leaves]
        given.extend(
            tensor for one in operation.inputs if one not in self._shapes for tensor in self._flow.made_by(one)
        )
        found = {tuple(one.shape) for one in given if one is not None and _is_numbers(one)}
        return found.union(*(self._shapes.get(one, ()) for one in operation.inputs))

    def _unread(self, begun: int) -> list[tuple[set[Shape], set[int]]]:
        """The shapes of what has a graph in this step and goes into none, and the leaves behind each."""
        step = dict(self._flow.since(begun))
        taken = Counter(one for operation in step.values() if operation.gave_grad for one in operation.inputs)
        ends = [number for number, one in step.items() if one.gave_grad and not taken[number] and not one.in_segment]
        return [(self._shapes.get(number, set()), self._leaves_behind(number)) for number in ends[:MAX_UNREAD]]

    def _leaves_behind(self, number: int) -> set[int]:
        return {each for _, one in islice(self._flow.upstream(number), MAX_UPSTREAM) for each in one.leaves}


def _is_numbers(tensor: Any) -> bool:
    return bool(tensor.is_floating_point() and tensor.numel() > 1)
