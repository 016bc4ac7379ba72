"""Segments of reentrant checkpointing that run without a graph, since no input requires grad, though layers in them train.

torch warns of any such segment; a program may have filtered the warning, and a frozen segment is right to be one.
"""

from __future__ import annotations

import functools
import weakref
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

from .frame import leave_no_frame
from .imports import after_import

USED = "checkpoint without inputs"
LEAST_STEPS = 2
MAX_PARAMETERS = 2_000
MAX_LOOKS = 500  # a hook of all modules stands while a segment is looked at
_DEPTH = 3


class Segments:
    """Follows the trainable parameters of such segments until one has a gradient."""

    def __init__(self) -> None:
        self._inside: dict[int, tuple[weakref.ref[Any], int]] = {}
        self._trained: set[int] = set()
        self._segments: set[frozenset[int]] = set()
        self._looks = 0

    def watch(self) -> None:
        """Look at the inputs of each segment before torch does, and at the layers that it runs."""
        after_import("torch.utils.checkpoint", self._watch)

    def before_step(self, optimizer: Any) -> None:
        """Count a step of the parameters that this optimizer owns; one that has a gradient is let go for good."""
        if not self._inside:
            return
        owned = {id(one) for group in optimizer.param_groups for one in group["params"]}
        for key, (kept, steps) in list(self._inside.items()):
            parameter = kept()
            if parameter is None or parameter.grad is not None:
                self._trained.add(key)
                del self._inside[key]
            elif key in owned:
                self._inside[key] = kept, steps + 1

    def used(self) -> list[str]:
        """That such a segment was there: steps were made of all its parameters, and none with a gradient.

        One that has a gradient shows that the segment has a graph in training; what is not used in it says nothing.
        """
        starved = {key for key, (_, steps) in self._inside.items() if steps >= LEAST_STEPS}
        return [USED] if any(one <= starved for one in self._segments) else []

    def _watch(self, module: Any) -> None:
        segment = module.CheckpointFunction
        apply = segment.apply

        @functools.wraps(apply)
        def applied(*arguments: Any, **keywords: Any) -> Any:
            __tracebackhide__ = True
            ran, hook = self._follow(arguments[2:])
            try:
                result = apply(*arguments, **keywords)
            except Exception as error:
                leave_no_frame(error)
                raise
            finally:
                if hook is not None:
                    hook.remove()
            self._look(arguments, ran)
            return result

        # Not `check_backward_validity`: its warning names who calls it, which would be this file.
        segment.apply = staticmethod(applied)

    def _follow(self, inputs: tuple[Any, ...]) -> tuple[dict[int, Any] | None, Any]:
        """What modules run from now on, and the hook that tells it; None for a segment that is right."""
        import torch

        is_full = len(self._inside) >= MAX_PARAMETERS
        if is_full or not torch.is_grad_enabled() or any(getattr(one, "requires_grad", False) for one in inputs):
            return None, None
        ran: dict[int, Any] = {}
        if self._looks >= MAX_LOOKS:
            return ran, None
        self._looks += 1
        hook = torch.nn.modules.module.register_module_forward_pre_hook(lambda one, _: ran.update({id(one): one}))
        return ran, hook

    def _look(self, arguments: tuple[Any, ...], ran: dict[int, Any] | None) -> None:
        """Note what was to train in a segment: in the modules that ran, else in all that its function holds."""
        if ran is None:
            return
        with suppress(Exception):  # what stands round a segment may be anything
            own = [part for one in ran.values() for part in one.parameters(recurse=False) if part.requires_grad]
            # Layers may be used without being called, as `F.linear(x, layer.weight)` does.
            values = (arguments[0], *arguments[2:])  # the second is whether the state of random draws is kept
            self._note(own or [one for one in _parameters(values, 0) if one.requires_grad])

    def _note(self, own: list[Any]) -> None:
        for one in own:
            if id(one) not in self._trained and len(self._inside) < MAX_PARAMETERS:
                self._inside.setdefault(id(one), (weakref.ref(one), 0))
        if own and len(self._segments) < MAX_PARAMETERS:
            self._segments.add(frozenset(map(id, own)))


def _read(value: Any, function: Any) -> list[Any]:
    """What a function reads of a module that it closes over: `self.trunk` of `lambda h: self.trunk(h)`; else the value itself."""
    parts = getattr(value, "_modules", None) or {}
    return [parts[name] for name in function.__code__.co_names if name in parts] or [value]


def _parameters(values: Any, depth: int) -> Iterator[Any]:
    """The parameters of the modules that some values are, hold or close over."""
    import torch

    for one in values if depth <= _DEPTH else ():
        if isinstance(one, torch.nn.Module):
            yield from one.parameters()
        elif isinstance(one, (list, tuple)):
            yield from _parameters(one, depth + 1)
        elif callable(one):
            closed = [
                part for cell in getattr(one, "__closure__", None) or () for part in _read(cell.cell_contents, one)
            ]
            own = [getattr(one, "__self__", None), getattr(one, "func", None), *getattr(one, "args", ())]
            yield from _parameters((*own, *closed), depth + 1)
