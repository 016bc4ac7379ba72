"""Segments of reentrant checkpointing that run without a graph, since no input requires grad, though layers in them train.

torch warns of any such segment; a program may have filtered the warning, and a frozen segment is right to be one.
"""

from __future__ import annotations

import sys
import weakref
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

from .frame import behind
from .imports import after_import

USED = "checkpoint without inputs"  # as where torch has warned
LEAST_STEPS = 2
MAX_PARAMETERS = 2_000
_DEPTH = 3
_FRAMES = 6


class Segments:
    """Follows the trainable parameters of such segments until one has a gradient."""

    def __init__(self) -> None:
        self._inside: dict[int, tuple[weakref.ref[Any], int]] = {}
        self._trained: set[int] = set()
        self._segments: set[frozenset[int]] = set()

    def watch(self) -> None:
        """Look at the inputs of each segment where torch does."""
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
        module.check_backward_validity = behind(module.check_backward_validity, self._look)

    def _look(self, arguments: tuple[Any, ...], keywords: dict[str, Any], result: Any) -> None:  # noqa: ARG002
        inputs = arguments[0] if arguments else keywords.get("inputs", ())
        if len(self._inside) >= MAX_PARAMETERS or any(getattr(one, "requires_grad", False) for one in inputs):
            return
        with suppress(Exception):  # what stands round a segment may be anything
            own = [one for one in _parameters((_function(), *inputs), 0) if one.requires_grad]
            for one in own:
                if id(one) not in self._trained and len(self._inside) < MAX_PARAMETERS:
                    self._inside.setdefault(id(one), (weakref.ref(one), 0))
            if own and len(self._segments) < MAX_PARAMETERS:
                self._segments.add(frozenset(map(id, own)))


def _function() -> Any:
    """What the segment runs, as the function of torch that asks holds it."""
    frame = sys._getframe(2)  # noqa: SLF001 - `behind` is between
    for _ in range(_FRAMES):
        if "run_function" in frame.f_locals:
            return frame.f_locals["run_function"]
        if frame.f_back is None:
            break
        frame = frame.f_back
    return None


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
