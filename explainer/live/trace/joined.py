"""Where a loss goes back into the graph of another network's loss, whose backward has used it up and whose optimizer has stepped.

A policy that is trained on the states of a world model, a student on the scores of a teacher that has just learned. Told only where
to cut there changes nothing that an optimizer takes: all weights below belong to what has stepped, and the loss has others to train.
"""

from __future__ import annotations

import gc
import weakref
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from types import FrameType
from typing import Any

from .flow import Flow, Operation
from .graph import MAX_NODES, Pass, below, sequence_of
from .place import describe

MAX_LINES = 4
MAX_HELD = 4
MAX_LOCALS = 200
MAX_PARTS = 64
_PAIR = 2
# Operations whose node has the two tensors in the order in which they are given.
_OF_TWO = frozenset(
    ("l1_loss", "mse_loss", "smooth_l1_loss", "huber_loss", "add", "__add__", "sub", "__sub__", "mul", "__mul__", "div",
     "__truediv__")
)  # fmt: skip
_DEPTH = 3
_FORMS: dict[type, str] = {dict: "dict", list: "list", tuple: "tuple"}


@dataclass(slots=True)
class _Cleared:
    """An optimizer or a module whose gradients were cleared: the operations before which that was so first and last."""

    kept: weakref.ref[Any]
    first: int
    last: int


class Joined:
    """Knows which optimizers have stepped, and been cleared, since which operation."""

    def __init__(self, torch: Any, flow: Flow) -> None:
        self._torch = torch
        self._flow = flow
        self._stepped: dict[int, tuple[weakref.ref[Any], int]] = {}
        self._cleared: dict[int, _Cleared] = {}

    def saw_step(self, optimizer: Any) -> None:
        """An optimizer is about to step."""
        self._stepped[id(optimizer)] = weakref.ref(optimizer), len(self._flow)

    def saw_clear(self, owner: Any) -> None:
        """An optimizer, or a module, is about to clear gradients."""
        now = len(self._flow)
        seen = self._cleared.setdefault(id(owner), _Cleared(weakref.ref(owner), now, now))
        seen.last = now

    def told(self, loss: Any, passed: Pass, frames: Iterable[FrameType]) -> dict[str, Any] | None:
        """What takes the freed graph up, and the names in the running functions that hold a part of it."""
        stepped = self._stepped_since(passed)
        if not stepped:
            return None
        edges, own = _edges(loss, passed)
        if not edges or not self._is_apart(stepped, own, _weights(below(one for _, one, _ in edges))):
            return None
        lines = list(self._lines(edges, passed))
        if not lines:
            return None
        return {
            "lines": lines[:MAX_LINES],
            "held": list(self._held(loss, passed, frames))[:MAX_HELD],
            "is_cleared": all(self._is_cleared(one, passed) for one in stepped),
        }

    def strayed(self, loss: Any, passed: Pass, frames: Iterable[FrameType]) -> dict[str, Any] | None:
        """The line that made an earlier loss which went back through what this one trains; and the names that hold that.

        Only where what it left there was thrown away: the optimizer that stepped for it owns none of those weights, and the one
        that does was cleared since. `passed` is its backward.
        """
        stepped = self._stepped_since(passed)
        edges, _ = _edges(loss, passed)
        shared = {id(one) for one in _weights(below(one for _, one, _ in edges))}
        owned = {id(one) for optimizer in stepped for one in _parameters(optimizer)}
        owners = [one for one in self._optimizers() if shared & {id(each) for each in _parameters(one)}]
        is_apart = bool(shared and owners) and not shared & owned and bool(passed.leaves & owned)
        if not is_apart or passed.made is None or not all(self._is_cleared_since(one, passed) for one in owners):
            return None
        names = [one["operation"] for one in self._held(loss, passed, frames) if one["form"] == "tensor"]
        return {**describe(passed.made), "names": list(dict.fromkeys(names))} if names else None

    def is_another_turn(self, loss: Any, passed: Pass) -> bool:
        """Whether a loss trains weights that nothing has stepped since a backward: those of another network, whose turn it is."""
        stepped = self._stepped_since(passed)
        owned = {id(one) for optimizer in stepped for one in _parameters(optimizer)}
        others = {id(one) for each in self._optimizers() if each not in stepped for one in _parameters(each)}
        return bool(stepped) and any(id(one) in others - owned for one in _weights(below([loss.grad_fn])))

    def _is_cleared_since(self, optimizer: Any, passed: Pass) -> bool:
        """Whether the gradients of an optimizer were cleared behind a backward."""
        return any(one.last >= passed.at for one in self._clears_of(optimizer))

    def _clears_of(self, optimizer: Any) -> list[_Cleared]:
        """What clears all gradients of an optimizer: itself, or a module that holds its parameters."""
        own = {id(one) for one in _parameters(optimizer)}
        return [one for one in self._cleared.values() if own <= {id(each) for each in _cleared_by(one.kept())}]

    def _stepped_since(self, passed: Pass) -> list[Any]:
        """The optimizers that have stepped since a backward."""
        return [one for ref, at in self._stepped.values() if at >= passed.at and (one := ref()) is not None]

    def is_waiting(self, passed: Pass) -> bool | None:
        """Whether no optimizer has stepped since a backward; None where the program has none."""
        if any(at >= passed.at for _, at in self._stepped.values()):
            return False
        return True if any(self._optimizers()) else None

    def _optimizers(self) -> Iterator[Any]:
        kind = self._torch.optim.Optimizer
        return (one for one in gc.get_objects() if issubclass(type(one), kind))  # a proxy may be dead

    def _is_cleared(self, optimizer: Any, passed: Pass) -> bool:
        """Whether an optimizer is cleared before its backward and not behind its step: it takes nothing of what this loss leaves."""
        _, stepped = self._stepped[id(optimizer)]
        clears = self._clears_of(optimizer)
        return any(one.first <= passed.at for one in clears) and all(one.last <= stepped for one in clears)

    def _is_apart(self, stepped: list[Any], own: list[Any], shared: list[Any]) -> bool:
        """Whether what stepped owns all weights of the freed part alone, and another optimizer owns some of the loss's."""
        owned = {id(one) for optimizer in stepped for one in _parameters(optimizer)}
        others = {
            id(one)
            for optimizer in self._optimizers()
            if all(optimizer is not each for each in stepped)
            for one in _parameters(optimizer)
        }
        is_shared = bool(shared) and all(id(one) in owned and id(one) not in others for one in shared)
        return is_shared and any(id(one) in others for one in own)

    def _lines(self, edges: list[tuple[Any, Any, int]], passed: Pass) -> Iterator[dict[str, Any]]:
        """The operations that take the freed graph up, each line once; none where one ran before that was freed."""
        found: dict[tuple[Any, str], tuple[int, dict[str, Any]]] = {}
        operands: dict[tuple[Any, str], set[int]] = {}
        for node, freed, index in edges:
            taken, made = (self._flow.number_of_node(sequence_of(one) or 0) for one in (node, freed))
            operation = self._flow.get(taken) if taken is not None else None
            source = self._flow.get(made) if made is not None else None
            if taken is None or operation is None or source is None or taken < passed.at:
                return
            key = operation.place, operation.name
            operands.setdefault(key, set()).add(index if len(node.next_functions) == _PAIR else -1)
            if key not in found or taken < found[key][0]:
                found[key] = taken, self._line(operation, source, passed)
        for key, (_, told) in sorted(found.items(), key=lambda item: item[1][0]):
            (operand, *others) = operands[key]
            yield {**told, "operand": None if others or operand < 0 or key[1] not in _OF_TWO else operand}

    def _line(self, operation: Operation, source: Operation, passed: Pass) -> dict[str, Any]:
        before = (one for number, one in self._flow.since(0) if number < passed.at)
        return {
            "operation": operation.name, **describe(operation.place), "made": describe(source.place),
            "is_alone": len(operation.inputs) + len(operation.leaves) == 1,
            "is_whole": not operation.leaves and all(one < passed.at for one in operation.inputs),
            "is_first": all(one.place != operation.place for one in before),
        }  # fmt: skip

    def _held(self, loss: Any, passed: Pass, frames: Iterable[FrameType]) -> Iterator[dict[str, Any]]:
        """The names of the running functions, the innermost first, whose tensors the freed graph made and this loss goes back to.

        `line` is that of the backward in its function, 0 where another function ran it.
        """
        reached = passed.nodes & {sequence_of(node) for node in below([loss.grad_fn])}
        lines = {code: describe((code, offset))["line"] for code, offset in passed.stack}
        for frame in reversed(list(frames)):
            code = frame.f_code
            for name, value in list(_names(frame))[:MAX_LOCALS]:
                form = self._form(value, reached, passed)
                if form is not None and value is not loss:
                    yield {
                        "operation": name, "form": form, "file": code.co_filename, "function": code.co_name,
                        "line": lines.get(code, 0), "first": code.co_firstlineno,
                    }  # fmt: skip

    def _form(self, value: Any, reached: frozenset[int], passed: Pass, depth: int = 0) -> str | None:
        """`tensor`, `dict[tensor]`, `list[tuple[tensor]]`; None where a part is no tensor of the freed graph."""
        if isinstance(value, self._torch.Tensor):
            if depth and not value.requires_grad:
                return "tensor"  # data beside it
            number = sequence_of(value.grad_fn) if value.grad_fn is not None else None
            return "tensor" if number in passed.nodes and (number in reached or depth) else None
        kind = _FORMS.get(type(value))
        if kind is None or not value or len(value) > MAX_PARTS or depth >= _DEPTH:
            return None
        parts = list(value.values()) if kind == "dict" else list(value)
        forms = {self._form(one, reached, passed, depth + 1) for one in parts}
        form = forms.pop() if len(forms) == 1 else None
        is_reached = depth or any(sequence_of(one.grad_fn) in reached for one in _tensors(parts, self._torch))
        return f"{kind}[{form}]" if form is not None and is_reached else None


def _edges(loss: Any, passed: Pass) -> tuple[list[tuple[Any, Any, int]], list[Any]]:
    """Each node of a loss's own graph with a freed one that it leads to, and at which place; and the weights that its own graph reaches."""
    edges: list[tuple[Any, Any, int]] = []
    weights: list[Any] = []
    seen, queue = {loss.grad_fn}, [loss.grad_fn]
    while queue and len(seen) < MAX_NODES:
        node = queue.pop()
        if hasattr(node, "variable"):
            weights.append(node.variable)
        for index, (one, _) in enumerate(node.next_functions):
            if one is None:
                continue
            if sequence_of(one) in passed.nodes:
                edges.append((node, one, index))
            elif one not in seen:
                seen.add(one)
                queue.append(one)
    return edges, weights


def _weights(nodes: Iterable[Any]) -> list[Any]:
    return [node.variable for node in nodes if hasattr(node, "variable")]


def _parameters(optimizer: Any) -> Iterator[Any]:
    for group in optimizer.param_groups:
        yield from group["params"]


def _cleared_by(owner: Any) -> Iterable[Any]:
    """The parameters whose gradients an optimizer or a module clears."""
    return () if owner is None else _parameters(owner) if hasattr(owner, "param_groups") else owner.parameters()


def _names(frame: FrameType) -> Iterator[tuple[str, Any]]:
    """The local names of a function, and the plain attributes of its `self`."""
    for name, value in frame.f_locals.items():
        yield name, value
        held = getattr(value, "__dict__", None) if name == "self" else None
        if isinstance(held, dict):
            yield from ((f"self.{key}", one) for key, one in held.items() if not key.startswith("_"))


def _tensors(parts: Iterable[Any], torch: Any) -> Iterator[Any]:
    for one in parts:
        if isinstance(one, torch.Tensor):
            if one.grad_fn is not None:
                yield one
        elif type(one) in _FORMS:
            yield from _tensors(one.values() if isinstance(one, dict) else one, torch)
