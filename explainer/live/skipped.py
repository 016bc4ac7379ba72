"""Steps that GradScaler leaves out, since gradients are not finite: a few are how it finds its scale, many in a row no training."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from typing import Any

# From its default of 65,536 down to 1 a scale is halved 16 times; a program that trains needs a few of those at a time.
MANY = 20


class Skipped:
    """Counts, for each optimizer, how many of the last calls of `GradScaler.step` made no step.

    A fused optimizer is called for a step that it then makes void: whether it did, the device alone knows, and it is not asked.
    Of an object that only looks like an optimizer no step is seen, and nothing is counted.
    """

    def __init__(self, key: Callable[[Any], str], made: Callable[[str], int]) -> None:
        self._key, self._made = key, made
        self._asked: dict[str, int] = {}
        self._in_a_row: dict[str, int] = {}

    def watch(self) -> None:
        """Count from now on."""
        scaler = getattr(sys.modules["torch"].amp, "GradScaler", None)  # torch.cuda.amp's own is derived from it
        if scaler is None:
            return
        step = scaler.step

        @functools.wraps(step)
        def counted(this: Any, optimizer: Any, *arguments: Any, **keywords: Any) -> Any:
            __tracebackhide__ = True
            # torch marks the `step` that runs its hooks, by which steps are counted.
            if not this.is_enabled() or not getattr(type(optimizer).step, "hooked", False):
                return step(this, optimizer, *arguments, **keywords)
            key = self._key(optimizer)
            before = self._made(key)
            done = step(this, optimizer, *arguments, **keywords)
            self._asked[key] = self._asked.get(key, 0) + 1
            self._in_a_row[key] = 0 if self._made(key) > before else self._in_a_row.get(key, 0) + 1
            return done

        scaler.step = counted

    def used(self) -> list[str]:
        """`["grad scaler"]` where one was asked for a step: it leaves some out by design, and what counts steps is then ahead."""
        return ["grad scaler"] * bool(self._asked)

    def at_the_end(self) -> list[dict[str, Any]]:
        """The optimizers whose last steps were left out: many of them, or all that there were and more than a scale needs."""
        return [
            {"optimizer": key, "count": count, "asked": self._asked[key]}
            for key, count in self._in_a_row.items()
            if count >= MANY or (count == self._asked[key] >= MANY // 2)
        ]
