"""Watches the optimizer steps of the process that it lives in, and calls back after each look; it holds no optimizer alive."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

from .gradient import values_of
from .step import LATER, LOOKS, Watcher, is_void, parameters_of

EVERY = 10
PATIENCE = 100


def follow(recorder: Any, on_look: Callable[[int], None]) -> ExitStack:
    """Look at every optimizer's steps from now on; `on_look(step)` may raise. Closing the stack ends it."""
    from torch.optim import optimizer as module

    follower, undo = Follower(recorder, on_look), ExitStack()
    undo.callback(module.register_optimizer_step_post_hook(follower.after_step).remove)
    undo.callback(module.register_optimizer_step_pre_hook(follower.before_step).remove)
    undo.callback(follower.renewed.end)
    return undo


class Follower(Watcher):
    """Looks when a watched run does, and in between where a flag says that gradients were not finite."""

    def __init__(self, recorder: Any, on_look: Callable[[int], None]) -> None:
        super().__init__(recorder, {"mode": "run"})
        self._keep: Any = _Living(self._order)
        self._on_look = on_look
        self._flags: dict[str, Flag] = {}

    def _name(self, parameter: Any, index: int, key: str) -> str:
        return self._names.of(parameter) or f"{key}[{index}]"

    def _look(self, optimizer: Any) -> None:
        key = self._key(optimizer)
        made, flag = self._steps.get(key, 0), self._flags.setdefault(key, Flag())
        if made < LOOKS or made in LATER or flag.is_raised(made):
            if not is_void(optimizer):
                self._look_at_gradients(optimizer)
                self._on_look(made)
        elif made % EVERY == 0:
            flag.raise_if_bad(parameters_of(optimizer))


class Flag:
    """Whether gradients were not finite, computed on their devices and read at a later step: no step waits for it."""

    def __init__(self) -> None:
        self._waiting: list[tuple[Any, Any]] = []
        self._not_before = 0

    def raise_if_bad(self, parameters: list[Any]) -> None:
        """Start the computation for the gradients that are there now."""
        import torch

        by_kind: dict[Any, list[Any]] = {}
        for one in parameters:
            if one.grad is not None and not one.grad.is_meta:
                values = values_of(one.grad)
                by_kind.setdefault((values.device, values.dtype), []).append(values)
        if any(device.type == "cuda" for device, _ in by_kind) and torch.cuda.is_current_stream_capturing():
            return
        self._waiting = [_on_its_way(torch, values) for values in by_kind.values()]

    def is_raised(self, step: int) -> bool:
        """Whether what was started is done and found a fault. A false alarm, as of an overflowing norm, is not asked for soon again."""
        done = [one for one in self._waiting if one[1] is None or one[1].query()]
        self._waiting = [one for one in self._waiting if one not in done]
        if step < self._not_before or not any(bool(bad) for bad, _ in done):
            return False
        self._not_before = step + PATIENCE
        return True


def _on_its_way(torch: Any, values: list[Any]) -> tuple[Any, Any]:
    """The answer, on the CPU once the event is over; without an event where the device gives it at once or only by waiting."""
    norms = torch._foreach_norm(values)  # noqa: SLF001 - as clip_grad_norm_ does
    bad = ~torch.stack(norms).isfinite().all()
    if bad.device.type != "cuda":
        return bad, None
    answer = torch.empty((), dtype=torch.bool, pin_memory=True)
    answer.copy_(bad, non_blocking=True)
    event = torch.cuda.Event()
    event.record()
    return answer, event


class _Living:
    """The optimizers seen, as long as the program has them."""

    def __init__(self, order: dict[int, str]) -> None:
        self._order = order
        self._seen: list[weakref.ref[Any]] = []

    def append(self, optimizer: Any) -> None:
        number, order = id(optimizer), self._order

        def forget(_: object) -> None:  # the next object may get the same id; the name stays taken
            order[-number - 1] = order.pop(number)

        self._seen.append(weakref.ref(optimizer, forget))

    def __iter__(self) -> Iterator[Any]:
        return (one for ref in self._seen if (one := ref()) is not None)
