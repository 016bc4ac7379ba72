"""Samples without their gradient that a loss depends on, and terms of it through which nothing trains for that.

A sample that is never asked for its probability is meant to train what it is drawn from where that is stepped with the loss:
a critic's own loss may take a policy's samples as data.

The actor's loss `alpha * log_prob - critic(state, action)` with `action = policy.sample()`: the probability trains the actor, and the
critic's value only leaves gradients in the critic, which are cleared before that steps; nothing at all where it is frozen.
A term that trains the critic, by a step with those gradients, is meant; so is a sample that the program cuts off by itself.
"""

from __future__ import annotations

import weakref
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from .drawn import Drawn
from .flow import Flow, Operation
from .place import Place

LEAST = 2  # steps with such a term
MAX_BACKWARDS = 24
MAX_TERMS = 200
MAX_OPERATIONS = 10_000
MAX_OPEN = 8
_SUMS = frozenset(
    ("add", "sub", "rsub", "__add__", "__radd__", "__sub__", "__rsub__", "__iadd__", "__isub__", "add_", "sub_", "stack")
)  # fmt: skip
# What hands one term on, scaled or added up over its elements.
_SCALED = frozenset(
    ("mul", "div", "neg", "__mul__", "__rmul__", "__truediv__", "true_divide", "mul_", "div_", "__neg__", "mean", "sum", "squeeze",
     "unsqueeze", "view", "reshape", "flatten", "float", "to")
)  # fmt: skip
_CUTS = frozenset(("detach", "detach_", "data", "item", "tolist", "numpy"))


@dataclass(slots=True)
class _Idle:
    """A term of one backward that depends on a sample: the leaves that it reaches, and those that the sample is drawn from.

    `before` are the sizes of what has a gradient before that backward, `gradients` those that it left, once they are known.
    """

    draw: Operation
    reached: frozenset[int]
    meant: frozenset[int]
    before: dict[int, float] = field(default_factory=dict)
    gradients: dict[int, Any] | None = None
    is_stepped: bool = False
    is_cleared: bool = False
    is_used: bool = False
    is_unknown: bool = False


@dataclass(slots=True)
class _Behind:
    """What a term is computed from: leaves with a graph, draws, and whether weights were applied to such a sample."""

    leaves: set[int] = field(default_factory=set)
    draws: dict[int, Operation] = field(default_factory=dict)
    has_weights: bool = False


class SampledTerms:
    """Follows what becomes of the gradients of such terms."""

    def __init__(self, torch: Any, flow: Flow, drawn: Drawn) -> None:
        self._torch = torch
        self._flow = flow
        self._drawn = drawn
        self._open: list[_Idle] = []
        self._owned: dict[int, weakref.ref[Any]] = {}
        self._backwards = 0
        self._idle: dict[Place | None, Operation] = {}
        self._count: Counter[Place | None] = Counter()
        self._trained: set[Place | None] = set()
        self._behind_loss: list[tuple[Place | None, frozenset[int]]] = []
        self._wanted: set[Place | None] = set()
        self._has_stepped = False
        self._is_spent = False

    def saw_backward(self, root: Any) -> None:
        """A backward is about to start at a tensor."""
        with suppress(Exception):  # gradients of a kind of their own may refuse any question
            self._settle()
            number = self._flow.maker(root) if self._drawn.has_any and self._backwards < MAX_BACKWARDS else None
            if number is not None:
                self._backwards += 1
                self._note_draws(number)
                self._open = [*self._open, *self._look(number)][-MAX_OPEN:]

    def saw_step(self, optimizer: Any) -> None:
        """An optimizer is about to step: with what such a term has left, or with the gradients of what the sample is drawn from."""
        with suppress(Exception):
            if self._torch._C._current_graph_task_id() != -1:  # noqa: SLF001 - a step inside of the backward
                self._open = []
            self._see_step(optimizer)

    def _see_step(self, optimizer: Any) -> None:
        own = {id(one): weakref.ref(one) for group in optimizer.param_groups for one in group["params"]}
        self._owned.update(own)
        self._wanted.update(place for place, leaves in self._behind_loss if not leaves.isdisjoint(own))
        self._has_stepped = self._is_spent = True
        self._settle()
        for one in self._open:
            one.is_stepped |= not one.meant.isdisjoint(own)
            one.is_used |= any(key in own and self._is_still(key, kept) for key, kept in (one.gradients or {}).items())
        self._settle()

    def lines(self) -> list[Operation]:
        """The draws of the samples; of a program without an optimizer all that met a graph."""
        plain = [one for one in self._drawn.lines() if one.place in self._wanted or not self._has_stepped]
        idle = [place for place, count in self._count.items() if count >= LEAST and place not in self._trained]
        return [*plain, *(self._idle[place] for place in idle)]

    def _note_draws(self, root: int) -> None:
        """What a loss depends on by way of samples; what stood behind those before it has been stepped with, or was not."""
        if self._is_spent:
            self._behind_loss, self._is_spent = [], False
        for number, draw in self._behind(root).draws.items():
            if len(self._behind_loss) < MAX_TERMS:
                self._behind_loss.append((draw.place, frozenset(self._behind(number, is_draw=True).leaves)))

    def _settle(self) -> None:
        """Note which gradients the last backward has left, and which of those that were noted are gone by now."""
        for one in self._open:
            if one.gradients is None:
                one.is_unknown = bool(one.reached) and one.reached.isdisjoint(self._owned)
                left = {key: now for key in one.reached if (now := self._gradient(key)) is not None}
                given = [key for key, now in left.items() if _total(now) != one.before.get(key, 0.0)]
                one.is_unknown |= bool(left) and not given  # a weight of zero tells nothing
                one.gradients = {key: weakref.ref(left[key]) for key in given}
                one.is_cleared = bool(one.reached) and not left
            elif one.gradients:
                one.is_cleared |= not any(self._is_still(*each) for each in one.gradients.items())
        self._open = [one for one in self._open if not (one.is_unknown or self._is_closed(one))]

    def _is_closed(self, one: _Idle) -> bool:
        """Whether it is known what a term was for: it trained, or came to nothing while what its sample is drawn from has stepped."""
        place = one.draw.place
        if one.is_used:
            self._trained.add(place)
        elif one.is_stepped and (one.is_cleared or not one.reached):
            self._count[place] += 1
            self._idle[place] = one.draw
        else:
            return False
        return True

    def _gradient(self, key: int) -> Any:
        """The gradient of a parameter of an optimizer that has stepped."""
        parameter = self._owned[key]() if key in self._owned else None
        return parameter.grad if parameter is not None else None

    def _is_still(self, key: int, kept: Any) -> bool:
        now = self._gradient(key)
        return now is not None and now is kept() and bool(now.any())

    def _look(self, root: int) -> Iterator[_Idle]:
        """The terms that depend on a sample and do not train what it is drawn from, where another term does."""
        behind = [(self._has_graph(one), self._behind(one)) for one in self._terms(root)]
        for has_graph, one in behind:
            others = {leaf for _, other in behind if other is not one for leaf in other.leaves}
            for number, draw in one.draws.items():
                meant = self._behind(number, is_draw=True).leaves
                if meant & others and not meant & one.leaves and (has_graph or one.has_weights):
                    sizes = {key: _total(now) for key in one.leaves if (now := self._gradient(key)) is not None}
                    yield _Idle(draw, frozenset(one.leaves), frozenset(meant), sizes)

    def _terms(self, root: int) -> Iterator[int]:
        """The operations whose results a loss adds up, with a graph or without. Of two factors with a graph neither is a term."""
        queue, seen = [root], {root}
        while queue and len(seen) < MAX_TERMS:
            number = queue.pop()
            operation = self._flow.get(number)
            if operation is None:
                continue
            parts = [one for one in operation.inputs if operation.name in _SUMS or self._has_graph(one)]
            is_handed_on = operation.name in _SUMS or (operation.name in _SCALED and len(parts) == 1)
            if not operation.gave_grad or not is_handed_on:
                yield number
                continue
            queue += [one for one in parts if one not in seen]
            seen.update(parts)

    def _has_graph(self, number: int) -> bool:
        operation = self._flow.get(number)
        return operation is not None and operation.gave_grad

    def _behind(self, number: int, *, is_draw: bool = False) -> _Behind:
        """What a term is computed from, or what is drawn from; not through what the program cuts off."""
        found = _Behind()
        queue, seen = [number], {number}
        for each in queue:
            operation = self._flow.get(each)
            if operation is None or len(seen) > MAX_OPERATIONS:
                continue
            is_first = is_draw and each == number
            if not is_draw and self._drawn.root_of(each) is operation:
                found.draws[each] = operation
                continue
            # The first pass of a checkpointed segment has no graph; its replay has.
            is_off = not operation.grad_mode or (operation.took_grad and not operation.gave_grad)
            if not is_first and (operation.name in _CUTS or (is_off and not operation.in_segment)):
                continue
            if operation.gave_grad:
                found.leaves.update(operation.leaves)
            followed = [one for one in operation.inputs if self._drawn.root_of(one) is not None]
            weights = (self._flow.leaf(one) for one in operation.leaves if followed)
            found.has_weights |= any(isinstance(one, self._torch.nn.Parameter) for one in weights)
            # What asks for a sample's probability trains by that.
            given = (
                [one for one in operation.inputs if one not in followed]
                if self._drawn.is_scored(each)
                else operation.inputs
            )
            queue += [one for one in given if one not in seen]
            seen.update(given)
        return found


def _total(gradient: Any) -> float:
    return float(gradient.abs().sum())
