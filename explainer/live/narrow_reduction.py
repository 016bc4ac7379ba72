"""Gradients that DistributedDataParallel reduces in float16 and that this cannot hold: they come back as zero, or as a few steps of it.

Its steps are 6e-8 apart there: below a millionth a gradient is one of sixteen numbers, below 3e-8 it is zero. Where a GradScaler
makes gradients larger for the way, what is seen before a step may be small again: nothing is told.
"""

from __future__ import annotations

import functools
import weakref
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from .frame import leave_no_frame
from .trace.place import Places, describe

LOOKS = 3
LEAST = 2.0**-20
MAX_MODULES = 8
_HOOKS = ("fp16_compress",)


class NarrowReductions:
    """Looks at the gradients of modules that were given such a hook, at their first steps."""

    def __init__(self, torch: Any, is_scaled: Callable[[], bool]) -> None:
        self._torch = torch
        self._is_scaled = is_scaled
        self._places = Places(torch)
        self._notes: list[_Note] = []

    def watch(self) -> None:
        """Note which hook a module's communication is given."""
        module = self._torch.nn.parallel.DistributedDataParallel
        register = module.register_comm_hook

        @functools.wraps(register)
        def registering(this: Any, *arguments: Any, **keywords: Any) -> Any:
            __tracebackhide__ = True
            try:
                result = register(this, *arguments, **keywords)
            except Exception as error:
                leave_no_frame(error)
                raise
            hook = keywords.get("hook", arguments[1] if len(arguments) > 1 else None)
            with suppress(Exception):
                self._note(this, getattr(hook, "__qualname__", ""))
            return result

        module.register_comm_hook = registering

    def before_step(self) -> None:
        """Look at the gradients that have come back, at the first few steps."""
        for one in self._notes:
            if len(one.largest) < LOOKS:
                with suppress(Exception):  # a module that is gone, or gradients of a kind of their own
                    one.look(self._torch)

    def at_the_end(self) -> list[dict[str, Any]]:
        """The lines that gave such hooks, where no gradient was one that float16 holds, as at `LEAST`."""
        return [
            {**one.told, "largest": max(one.largest)}
            for one in self._notes
            if one.largest and max(one.largest) < LEAST and not self._is_scaled()
        ]

    def _note(self, module: Any, name: str) -> None:
        if any(one in name for one in _HOOKS) and len(self._notes) < MAX_MODULES:
            self._notes.append(_Note(weakref.ref(module), {"hook": name, **describe(self._places.here(3))}))


class _Note:
    """A module with such a hook, the line that gave it, and the largest gradient at each look."""

    def __init__(self, module: weakref.ref[Any], told: dict[str, Any]) -> None:
        self._module = module
        self.told = told
        self.largest: list[float] = []

    def look(self, torch: Any) -> None:
        module = self._module()
        given = [] if module is None else [one.grad for one in module.parameters() if one.grad is not None]
        if given:
            self.largest.append(float(torch.stack([one.detach().abs().max().float() for one in given]).max()))
