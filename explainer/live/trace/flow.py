"""Which operation made which tensor from which others: the flow of values, in a bounded log."""

from __future__ import annotations

import weakref
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from .place import Place

MAX_OPERATIONS = 60_000
MAX_LEAVES = 400


@dataclass(slots=True)
class Operation:
    """One call of torch: its name and line, the operations that its inputs came from, and what it did to the graph.

    `sequence` is autograd's counter before the call: the nodes that it made have that number and those behind it.
    `wrote` are the operations that had made the tensors which it wrote in place; `fills` says that one of these was a parameter.
    `is_number` is asked of what took a graph and gave none: whether it made one number, as a term of a loss is.
    `replay` says that a checkpoint ran its segment again, `in_segment` that this is inside one, whose first pass has grad
    mode off; `node` is autograd's name for it, where values are watched; `off` where the program had switched grad mode off.
    """

    name: str
    place: Place | None
    inputs: tuple[int, ...]
    leaves: tuple[int, ...]
    took_grad: bool = False
    gave_grad: bool = False
    grad_mode: bool = False
    replay: bool = False
    in_segment: bool = False
    node: str | None = None
    off: Place | None = None
    sequence: int = 0
    wrote: tuple[int, ...] = ()
    fills: bool = False
    is_number: bool = False


class Flow:
    """The operations so far, by number, the oldest dropped; and which of them made a tensor that still lives."""

    def __init__(self) -> None:
        self._log: list[Operation] = []
        self._dropped = 0
        self._makers: dict[int, tuple[weakref.ref[Any], int]] = {}
        self._leaves: dict[int, Any] = {}

    def __len__(self) -> int:
        return self._dropped + len(self._log)

    def add(self, operation: Operation, outputs: Sequence[Any]) -> int:
        """Log an operation and what it made; its number."""
        log = self._log
        if len(log) >= MAX_OPERATIONS:
            half = MAX_OPERATIONS // 2
            del log[:half]
            self._dropped += half
            self._makers = {key: one for key, one in self._makers.items() if one[1] >= self._dropped}
        number = self._dropped + len(log)
        log.append(operation)
        makers = self._makers
        for tensor in outputs:
            makers[id(tensor)] = weakref.ref(tensor), number
        return number

    def maker(self, tensor: Any) -> int | None:
        """The number of the operation that made a tensor; None for one that came from elsewhere."""
        found = self._makers.get(id(tensor))
        return found[1] if found is not None and found[0]() is tensor and found[1] >= self._dropped else None

    def made_by(self, number: int) -> list[Any]:
        """The tensors that an operation made, of those that still live."""
        return [tensor for ref, one in self._makers.values() if one == number and (tensor := ref()) is not None]

    def sort(self, tensors: Sequence[Any]) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """The makers of some tensors, and the identities of those that none made, which live until `forget_leaves`."""
        inputs, leaves = [], []
        for tensor in tensors:
            number = self.maker(tensor)
            if number is not None:
                inputs.append(number)
            else:
                leaves.append(id(tensor))
                if len(self._leaves) < MAX_LEAVES:
                    self._leaves[id(tensor)] = tensor
        return tuple(inputs), tuple(leaves)

    def leaf(self, identity: int) -> Any:
        """A tensor that came from elsewhere, while it is kept."""
        return self._leaves.get(identity)

    def forget_leaves(self) -> None:
        """Let go of the tensors that were kept for their values."""
        self._leaves.clear()

    def get(self, number: int) -> Operation | None:
        """An operation that has not been dropped."""
        index = number - self._dropped
        return self._log[index] if 0 <= index < len(self._log) else None

    def maker_of_node(self, sequence: int) -> Operation | None:
        """The operation that made the autograd node with that number, outside of checkpoints, whose replay makes it anew."""
        number = self.number_of_node(sequence)
        return self.get(number) if number is not None else None

    def number_of_node(self, sequence: int) -> int | None:
        """As `maker_of_node`, the number of the operation."""
        for index in range(len(self._log) - 1, -1, -1):
            operation = self._log[index]
            if operation.gave_grad and operation.sequence <= sequence:
                return None if operation.in_segment or operation.replay else self._dropped + index
        return None

    def upstream(self, number: int, since: int = 0) -> Iterator[tuple[int, Operation]]:
        """An operation and those that its values came from, nearest first, none older than `since`."""
        queue, seen = [number], {number}
        while queue:
            current = queue.pop(0)
            operation = self.get(current)
            if operation is None:
                continue
            yield current, operation
            for one in operation.inputs:
                if one not in seen and one >= since:
                    seen.add(one)
                    queue.append(one)

    def consumers(self, number: int) -> Iterator[tuple[int, Operation]]:
        """The operations that took what an operation made, oldest first."""
        for index in range(max(number - self._dropped + 1, 0), len(self._log)):
            if number in self._log[index].inputs:
                yield self._dropped + index, self._log[index]

    def consumers_of_leaf(self, identity: int) -> Iterator[tuple[int, Operation]]:
        """The operations that took a tensor which came from elsewhere, newest first."""
        for index in range(len(self._log) - 1, -1, -1):
            if identity in self._log[index].leaves:
                yield self._dropped + index, self._log[index]

    def since(self, number: int) -> Iterator[tuple[int, Operation]]:
        """The operations from one on."""
        for index in range(max(number - self._dropped, 0), len(self._log)):
            yield self._dropped + index, self._log[index]
