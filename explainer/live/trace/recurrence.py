"""A recurrence whose state is cut between all of its steps, though one backward goes through them all.

`h = cell(x, h.detach())` in the loop over time: each step trains on its own input, and nothing learns from what came before it.
Cuts once a window leave some steps joined, a second way from step to step (attention, another state) does as well, and a network
that is trained on its own predictions hands on what the loss reads as it is: none of these is told.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise

from .flow import Flow, Operation
from .place import Place

STEPS = 4  # of a recurrence, at least
MAX_BACKWARDS = 4  # that are looked at
MAX_PASSES = 64
MAX_TOLD = 4
_CUTS = frozenset(("detach", "detach_", "data"))
_CELLS = frozenset(("lstm_cell", "gru_cell", "rnn_tanh_cell", "rnn_relu_cell"))

Key = tuple[Place | None, str, int]
"""A line, the operation in it, and a leaf that this takes."""

Takers = dict[int, list[int]]


@dataclass(frozen=True, slots=True)
class _Cut:
    """What made the state that one pass hands to the next, and where that is cut."""

    state: int
    cut: Operation


class Recurrence:
    """Looks at the first few graphs of a program, when their backward begins."""

    def __init__(self, flow: Flow) -> None:
        self._flow = flow
        self._begun = 0
        self._looked_at = 0
        self._cuts: dict[tuple[Place | None, str], tuple[Place | None, Operation]] = {}
        self._whole: set[Place | None] = set()

    def saw_backward(self, root: int | None) -> None:
        """A backward is about to begin at what the operation with this number made."""
        begun, self._begun = self._begun, len(self._flow)
        if root is None or root < begun or self._looked_at >= MAX_BACKWARDS:
            return
        self._looked_at += 1
        step = dict(self._flow.since(begun))
        takers, repeated = _takers(step), self._repeated(step)
        trained = {number for numbers in repeated.values() for number in numbers}
        for (place, name, _), passes in repeated.items():
            if self._is_joined(passes, takers, trained, root):
                self._whole.add(place)
            else:
                found = list(_cuts_between(passes, step))
                if len(found) >= STEPS - 1 and (name in _CELLS or self._is_hidden(found, step, takers)):
                    self._cuts |= {(one.cut.place, one.cut.name): (place, one.cut) for one in found}

    def told(self) -> list[Operation]:
        """The cuts, each line once, of recurrences that are cut in every graph."""
        return [cut for place, cut in self._cuts.values() if place not in self._whole][:MAX_TOLD]

    def _repeated(self, step: dict[int, Operation]) -> dict[Key, list[int]]:
        """The operations that take the same weights on the same line, again and again."""
        found: dict[Key, list[int]] = defaultdict(list)
        for number, one in step.items():
            if one.gave_grad and not one.replay:
                for leaf in one.leaves:
                    found[one.place, one.name, leaf].append(number)
        return {
            key: passes[:MAX_PASSES]
            for key, passes in found.items()
            if len(passes) >= STEPS and self._is_weight(key[2])
        }

    def _is_weight(self, leaf: int) -> bool:
        """Whether a leaf is what a layer has: not data, and no coefficient that trains."""
        tensor = self._flow.leaf(leaf)
        return tensor is not None and bool(tensor.requires_grad) and tensor.ndim > 1

    def _is_joined(self, passes: list[int], takers: Takers, trained: set[int], root: int) -> bool:
        """Whether the graph leads from one pass to a later one, by any way, or past the loss."""
        for before, at in pairwise(passes):
            below = _below(before, takers)
            if root not in below or any(at <= one < passes[-1] and one in trained for one in below):
                return True
        return False

    def _is_hidden(self, found: list[_Cut], step: dict[int, Operation], takers: Takers) -> bool:
        """Whether the loss reads the state through another layer: what it reads as it is may be a prediction."""
        return all(
            any(self._is_weight(leaf) for one in _below(each.state, takers) - {each.state} for leaf in step[one].leaves)
            for each in found
        )


def _takers(step: dict[int, Operation]) -> Takers:
    """For each operation those that took its result and handed the graph on."""
    found: Takers = defaultdict(list)
    for number, one in step.items():
        if one.gave_grad:
            for each in one.inputs:
                found[each].append(number)
    return found


def _cuts_between(passes: list[int], step: dict[int, Operation]) -> Iterator[_Cut]:
    """The cuts of what one pass made, on the way to what the next takes of it; one for each pass."""
    for before, at in pairwise(passes):
        for one in _above(step[at].inputs, before, step, with_graph=False):
            cut = step[one]
            if cut.took_grad and not cut.gave_grad and cut.name in _CUTS and not cut.in_segment:
                made = [
                    each for each in cut.inputs if before in (each, *_above([each], before - 1, step, with_graph=True))
                ]
                if made:
                    yield _Cut(made[0], cut)
                    break


def _above(numbers: Iterable[int], after: int, step: dict[int, Operation], *, with_graph: bool) -> Iterator[int]:
    """The operations behind one that some values came of, themselves included: with the graph all the way, or without one."""
    queue = [one for one in numbers if one > after]
    seen = set(queue)
    while queue:
        number = queue.pop()
        one = step.get(number)
        if one is not None and one.gave_grad is with_graph:
            yield number
            new = {each for each in one.inputs if each > after} - seen
            seen |= new
            queue.extend(new)


def _below(number: int, takers: Takers) -> set[int]:
    """An operation, and what was computed of it with the graph all the way."""
    seen, queue = {number}, [number]
    while queue:
        new = set(takers.get(queue.pop(), ())) - seen
        seen |= new
        queue.extend(new)
    return seen
