"""Parameters that an optimizer owns, that the program uses, and that a cut keeps from ever getting a gradient.

So does an operation whose gradient is 0 everywhere, as that of `round` is: what stands before it gets zeros.
"""

from __future__ import annotations

import weakref
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from .flow import Flow, Operation
from .place import Place
from .scalars import Scalars

LEAST_STEPS = 2
MAX_LOOKED_AT = 32
MAX_OPERATIONS = 20_000
MAX_TAKERS = 32
MAX_ON_LINE = 4
MAX_VIEWS = 4
# What gives the values of a tensor without its graph, in its own storage: a write there changes the tensor itself.
_ALIASES = frozenset(("data", "detach", "detach_"))
SET_DATA = "data ="  # of a value that requires grad
PARAMETER = "Parameter"  # a new leaf of a value that requires grad
_OF_ALL = frozenset((SET_DATA, "copy_", PARAMETER))
# What has a gradient of 0 wherever it has one.
FLAT = frozenset(("round", "round_", "floor", "floor_", "ceil", "ceil_", "trunc", "trunc_", "fix", "sign", "sgn", "sign_", "floor_divide",
     "__floordiv__", "heaviside", "fake_quantize"))  # fmt: skip
_VIEWS = frozenset(
    ("__getitem__", "select", "narrow", "view", "view_as", "reshape", "flatten", "squeeze", "unsqueeze", "transpose", "permute", "t",
     "diagonal", "unflatten", "movedim", "swapaxes")
)  # fmt: skip


@dataclass(slots=True)
class _Owned:
    """A parameter of an optimizer: its total before a first step without a gradient, its steps, those with a gradient.

    `stepped` is how many operations there were at the last of them, `before` at the one before; `is_zero` where it had gradients,
    all of them of zeros.
    """

    kept: weakref.ref[Any]
    began: float | None
    steps: int = 0
    given: int = 0
    stepped: int = 0
    before: int = 0
    is_zero: bool = False


class Starved:
    """Counts the steps in which each parameter had a gradient."""

    def __init__(self, flow: Flow, scalars: Scalars) -> None:
        self._flow = flow
        self._scalars = scalars
        self._owned: dict[int, _Owned] = {}
        self._fitted: set[tuple[Any, str]] = (
            set()
        )  # lines whose parameters an optimizer steps: a graph ends there on purpose
        self._held: dict[int, Any] = {}  # the function that made the model may be over when it is asked for
        self._optimizers: list[weakref.ref[Any]] = []
        self.has_flat = False  # whether an operation with a gradient of 0 took what a graph computes
        self._is_cut_or_cleared = False  # no parameter has a gradient behind a backward

    @property
    def has_stepped(self) -> bool:
        """Whether an optimizer has made a step: what is made before is the model."""
        return bool(self._owned)

    def saw_optimizer(self, optimizer: Any) -> None:
        """An optimizer is being made."""
        self._optimizers.append(weakref.ref(optimizer))

    def saw_none(self, *, has_backward: bool) -> None:
        """The program failed of a gradient that is None: it may be one of its parameters', while others have theirs.

        Where none has one behind a backward, that has reached none of them, or they were cleared since.
        """
        made = [one for kept in self._optimizers if (one := kept()) is not None]
        owned = [one for each in made for group in each.param_groups for one in group["params"]]
        if all(one.grad is None for one in owned):
            if not has_backward:
                return
            self._is_cut_or_cleared = True
        for one in owned:
            known = self._owned.setdefault(id(one), _Owned(weakref.ref(one), _total(one)))
            if one.grad is None:
                known.steps, known.stepped = max(known.steps, LEAST_STEPS), len(self._flow)
            else:
                known.given += 1

    def saw_new_leaf(self, data: Any, parameter: Any, place: Place | None) -> None:
        """A parameter is made of what requires grad: an operation that takes a graph and gives none."""
        inputs, leaves = self._flow.sort([data])
        self._flow.add(Operation(PARAMETER, place, inputs, leaves, took_grad=True, grad_mode=True), [parameter])

    def saw_step(self, optimizer: Any) -> None:
        """An optimizer is about to step."""
        for group in optimizer.param_groups:
            for one in group["params"]:
                made = self._flow.get(number) if (number := self._flow.maker(one)) is not None else None
                if made is not None and made.name == PARAMETER:
                    self._fitted.add((made.place, made.name))
                owned = self._owned.get(id(one))
                if owned is None:
                    began = _total(one) if one.grad is None else None
                    owned = self._owned[id(one)] = _Owned(weakref.ref(one), began)
                owned.steps += 1
                if one.grad is not None:
                    owned.is_zero = self.has_flat and not _has_values(one.grad)
                    owned.given += not owned.is_zero
                owned.before, owned.stepped = owned.stepped, len(self._flow)
                self._hold(one, owned)

    def _hold(self, parameter: Any, owned: _Owned) -> None:
        """Keep alive what has had no gradient so far."""
        if owned.given:
            self._held.pop(id(parameter), None)
        elif owned.steps >= LEAST_STEPS and len(self._held) < MAX_LOOKED_AT:
            self._held[id(parameter)] = parameter

    def cuts(self) -> list[tuple[Operation, int, bool]]:
        """The cuts between such parameters and a loss that others train on: how many parameters each starves, and whether it alone does."""
        found: dict[tuple[Any, str], tuple[Operation, int, bool]] = {}
        hungry = self._never_given()[:MAX_LOOKED_AT]
        takers = self._takers() if hungry else {}
        for parameter in hungry:
            cuts = self._cuts_behind(parameter, takers)
            # A network that makes the weights of layers sets all of them: none of those lines is right without the others.
            is_one = len(cuts) == 1 or {cut.name for cut in cuts.values()} <= _OF_ALL
            for key, cut in cuts.items():
                _, count, is_alone = found.get(key, (cut, 0, True))
                found[key] = cut, count + 1, is_alone and is_one
        return list(found.values())

    def never_given(self) -> set[int]:
        """The identities of the parameters that an optimizer has stepped and that never got a gradient, nor changed by other means."""
        return {id(one) for one in self._never_given()}

    def _never_given(self) -> list[Any]:
        return [one for one in self._hungry() if one.requires_grad and one.is_leaf and not self._is_moved(one)]

    def _hungry(self) -> Iterator[Any]:
        for owned in self._owned.values():
            parameter = owned.kept()
            if parameter is not None and owned.steps >= LEAST_STEPS and not owned.given:
                yield parameter

    def _is_moved(self, parameter: Any) -> bool:
        """Whether a parameter without a gradient changed all the same: an average, or a copy, that the program keeps by hand."""
        began = self._owned[id(parameter)].began
        return began is not None and began != _total(parameter)

    def _takers(self) -> dict[int, list[int]]:
        """Which of the latest operations took what an operation made."""
        takers: dict[int, list[int]] = defaultdict(list)
        for number, operation in self._flow.since(len(self._flow) - MAX_OPERATIONS):
            for one in operation.inputs:
                takers[one].append(number)
        return takers

    def _cuts_behind(self, parameter: Any, takers: dict[int, list[int]]) -> dict[tuple[Any, str], Operation]:
        """The cuts on the ways from a parameter whose results go on into what does train, nearest first, each line once."""
        is_zero = self._owned[id(parameter)].is_zero  # a graph leads to it, and what it gives is 0
        queue = self._first_takers(id(parameter))
        seen = set(queue)
        found: dict[tuple[Any, str], Operation] = {}
        while queue:
            number = queue.pop(0)
            operation = self._flow.get(number)
            if operation is None:
                continue
            if not is_zero and operation.took_grad and self._is_into_alias(number, operation, takers):
                found.setdefault((operation.place, operation.name), operation)
                continue
            if self._is_cut_or_cleared and operation.gave_grad and number not in takers:
                return {}  # a loss, by which it may well have had its gradient
            is_cut = operation.took_grad and not operation.gave_grad and not operation.in_segment
            if (operation.name in FLAT and operation.took_grad) if is_zero else is_cut:
                key = operation.place, operation.name
                if key not in found and key not in self._fitted and self._goes_on(number, takers):
                    found[key] = operation
                continue
            for one in takers.get(number, ()):
                if one not in seen:
                    seen.add(one)
                    queue.append(one)
        return found

    def _first_takers(self, identity: int) -> list[int]:
        """The latest operation on each line that took a parameter for its optimizer's step, newest first: one may only print it.

        A network that runs once for each term of a loss takes its parameters several times in the last step, not all for what is
        trained. What ran behind that step, an evaluation, trained nothing.
        """
        owned = self._owned[identity]
        counts: dict[tuple[Any, str], int] = defaultdict(int)
        found: list[int] = []
        for number, operation in self._flow.consumers_of_leaf(identity):
            key = operation.place, operation.name
            is_again = counts[key] > 0 and (number < owned.before or counts[key] >= MAX_ON_LINE)
            if number < owned.stepped and not is_again:
                counts[key] += 1
                found.append(number)
            if len(found) >= MAX_TAKERS:
                break
        return found

    def _is_into_alias(self, number: int, operation: Operation, takers: dict[int, list[int]]) -> bool:
        """Whether an operation writes what requires grad through `.data` or a detached alias, and the tensor behind goes on."""
        return any(
            self._is_used_after(number, source, takers)
            for one in operation.wrote
            if (source := self._alias_behind(one)) is not None
        )

    def _alias_behind(self, number: int) -> Operation | None:
        """The `.data` or `detach()` that what an operation made is, or is a part of."""
        for _ in range(MAX_VIEWS):
            operation = self._flow.get(number)
            if operation is None or operation.name in _ALIASES:
                return operation
            if operation.name not in _VIEWS or not operation.inputs:
                return None
            number = operation.inputs[0]
        return None

    def _is_used_after(self, number: int, source: Operation, takers: dict[int, list[int]]) -> bool:
        """Whether the tensor behind an alias, or what is computed of it, becomes part of a graph after the write."""
        inputs, leaves = set(source.inputs), set(source.leaves)
        return any(
            (inputs.intersection(one.inputs) or leaves.intersection(one.leaves))
            and (one.gave_grad or self._goes_on(each, takers))
            for each, one in self._flow.since(number + 1)
        )

    def _goes_on(self, number: int, takers: dict[int, list[int]]) -> bool:
        """Whether anything that comes of an operation is part of a graph again: a cut for a log or a metric is none."""
        queue, seen = [number], {number}
        while queue:
            number = queue.pop(0)
            for one in (*takers.get(number, ()), *self._scalars.takers(number)):
                operation = self._flow.get(one)
                if operation is not None and operation.gave_grad:
                    return True
                if one not in seen:
                    seen.add(one)
                    queue.append(one)
        return False


def _has_values(gradient: Any) -> bool:
    own = gradient.to_local() if hasattr(gradient, "to_local") else gradient
    return own.is_sparse or own.is_meta or bool(own.any())


def _total(tensor: Any) -> float:
    """A sum of the values that shows whether they changed."""
    own = tensor.to_local() if hasattr(tensor, "to_local") else tensor
    return float(own.detach().abs().double().sum()) if not own.is_meta else 0.0
