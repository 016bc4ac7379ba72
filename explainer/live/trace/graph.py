"""Backward passes: which nodes each one used up, and saved tensors that were written behind autograd's back."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from ..saved import names_of, saved_of, tells_hooks  # noqa: TID252 - `live` is loaded under a name of its own
from ..storage import storage_of  # noqa: TID252 - `live` is loaded under a name of its own
from .place import Place
from .replay import Replays
from .write import Write, Writes

MAX_PASSES = 64
MAX_NODES = 20_000
_RUNNING = ("running_mean", "running_var")


@dataclass(frozen=True, slots=True)
class Pass:
    """One backward: its line, the lines that led to it, whether it kept the graph, how many operations there were.

    `nodes` are those that it went through, by autograd's numbers, and `leaves` the ids of the tensors at their ends. The numbers are
    those of one `thread`. `made` is the line that made what was differentiated.
    """

    place: Place | None
    stack: tuple[Place, ...]
    keeps: bool
    at: int
    nodes: frozenset[int] = field(default_factory=frozenset)
    leaves: frozenset[int] = field(default_factory=frozenset)
    thread: int = 0
    made: Place | None = None


class Graphs:
    """Looks at each graph before a backward goes through it."""

    def __init__(self, writes: Writes, replays: Replays) -> None:
        self._writes = writes
        self._replays = replays
        self._saved: dict[str, tuple[str, ...]] = {}
        self.passes: deque[Pass] = deque(maxlen=MAX_PASSES)

    def before_backward(
        self,
        roots: Any,
        places: tuple[Place | None, tuple[Place, ...], Place | None],
        *,
        keeps: bool,
        at: int,
        thread: int,
    ) -> Iterator[tuple[Any, str, Any, Write]]:
        """The saved tensors that were written without their version moving: node, name, tensor, first such write.

        The pass is logged, by its place, its stack and the line that made the root, as one before the operation with the number `at`.
        """
        numbers: list[int] = []
        leaves: set[int] = set()
        for node in walk(roots):
            if hasattr(node, "variable"):
                leaves.add(id(node.variable))
            number = sequence_of(node)
            if number is None:
                continue
            numbers.append(number)
            if len(self._writes):
                yield from self._hidden(node, number, thread)
        place, stack, made = places
        self.passes.append(Pass(place, stack, keeps, at, frozenset(numbers), frozenset(leaves), thread, made))

    def _hidden(self, node: Any, number: int, thread: int) -> Iterator[tuple[Any, str, Any, Write]]:
        if hasattr(node, "saved_tensors"):
            return  # a custom Function's: its own forward, checkpointing's above all, may write before it saves
        for name, tensor in self._kept(node):
            storage = storage_of(tensor)
            if storage is None or not self._writes.holds(storage):
                continue
            writes = self._writes.after(tensor, number, thread)
            if writes:
                yield node, name, tensor, writes[0]

    def _kept(self, node: Any) -> Iterator[tuple[str, Any]]:
        """The tensors that a node saved and whose version did not move, with their names there."""
        is_batch = getattr(node, "_saved_training", False)  # whose gradients are those of the batch's own statistics
        for name in self._names(node):
            if is_batch and name in _RUNNING:
                continue
            if self._replays.has_any and not tells_hooks(node, name):
                continue  # to look may run a checkpoint's segment
            try:
                saved = saved_of(node, name)
            except (RuntimeError, AttributeError):  # moved, or let go
                continue
            for tensor in saved if isinstance(saved, (list, tuple)) else (saved,):
                if hasattr(tensor, "untyped_storage"):
                    yield name, tensor

    def freed_by(self, root: Any) -> Pass | None:
        """The pass that used up a node which the graph of `root` still needs."""
        freed = {
            number
            for node in walk([root])
            if is_freed(node, self._names(node)) and (number := sequence_of(node)) is not None
        }
        earlier = list(self.passes)[:-1]  # the last one is that which failed
        return next((one for one in reversed(earlier) if not one.keeps and freed & one.nodes), None)

    def has_come_round(self) -> bool:
        """Whether the last backward is one that was asked for before, by the same lines: a loop is in another round."""
        return any(one.stack == self.passes[-1].stack for one in list(self.passes)[:-1])

    def is_made_anew(self) -> bool:
        """Whether the last backward is of what no earlier one was of by the same lines: several losses may come by these in turn."""
        last = self.passes[-1]
        return all(one.stack != last.stack or one.made != last.made for one in list(self.passes)[:-1])

    def went_before(self) -> int:
        """The operation before which a backward went through a loss of the same line, asked for by the same lines; 0 without one."""
        if not self.passes:
            return 0
        last = self.passes[-1]
        earlier = (
            one.at for one in reversed(list(self.passes)[:-1]) if (one.stack, one.made) == (last.stack, last.made)
        )
        return next(earlier, 0)

    def began(self) -> int:
        """The operation with which the round of the last backward began: the first behind the backward of the round before."""
        earlier = (one.at for one in reversed(list(self.passes)[:-1]) if one.stack == self.passes[-1].stack)
        return next(earlier, 0)

    def _names(self, node: Any) -> tuple[str, ...]:
        names = self._saved.get(node.name())
        if names is None:
            names = self._saved[node.name()] = tuple(names_of(node))
        return names


def walk(roots: Any) -> Iterator[Any]:
    """The nodes below some tensors, at most 20,000."""
    return below([root.grad_fn for root in roots if getattr(root, "grad_fn", None) is not None])


def below(nodes: Iterable[Any]) -> Iterator[Any]:
    """Some nodes and those below them, at most 20,000."""
    seen: set[Any] = set()
    queue = list(nodes)
    while queue and len(seen) < MAX_NODES:
        node = queue.pop()
        if node in seen:
            continue
        seen.add(node)
        yield node
        queue.extend(one for one, _ in node.next_functions if one is not None)


def sequence_of(node: Any) -> int | None:
    """Autograd's number of a node; None for the end of a leaf, which has no place in the order."""
    if not hasattr(node, "_sequence_nr") or hasattr(node, "variable"):
        return None
    number = int(node._sequence_nr())  # noqa: SLF001
    return number if number < 1 << 62 else None


def reaches_any(node: Any, since: int, leaves: frozenset[int]) -> bool:
    """Whether the nodes that were made since a number of autograd's lead to one of some leaves, by their ids."""
    queue, seen = [node], {node}
    while queue and len(seen) < MAX_NODES:
        one = queue.pop()
        if one is None or hasattr(one, "variable"):
            if one is not None and id(one.variable) in leaves:
                return True
            continue
        number = sequence_of(one)
        if number is None or number < since:
            continue
        fresh = [each for each, _ in one.next_functions if each is not None and each not in seen]
        seen.update(fresh)
        queue += fresh
    return len(seen) >= MAX_NODES


def is_freed(node: Any, names: tuple[str, ...]) -> bool:
    """Whether the tensors of a node were let go by an earlier backward."""
    return any("have already been freed" in _complaint(node, name) for name in names)


def _complaint(node: Any, name: str) -> str:
    try:
        saved_of(node, name)
    except RuntimeError as error:
        return str(error)
    except (AttributeError, TypeError, ValueError):
        return ""
    return ""
