"""Losses that grow from step to step until they overflow: training diverges, and no operation is at fault.

The values stay on their device until they are asked for.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Sequence
from typing import Any

from .finite import numbers_of

MAX_KEPT = 32
LEAST = 4  # losses before there is a course to speak of
LATELY = 5  # a diverging loss may come back once
GROWN = 100.0  # against the median of what came before
AT_ONCE = 1e6  # from one loss to the next: no course is needed
LARGE = 10.0  # a loss near 0 may grow a hundredfold and be fine


class Growth:
    """The latest losses that were sent backward."""

    def __init__(self, torch: Any) -> None:
        self._torch = torch
        self._functorch = torch._C._functorch.peek_interpreter_stack  # noqa: SLF001 - its tensors must not outlive a transform
        self._values: deque[Any] = deque(maxlen=MAX_KEPT)

    def saw(self, losses: Sequence[Any]) -> None:
        """Losses are about to be sent backward; of several at once none is the loss."""
        if self._functorch() is not None:
            return
        if len(losses) == 1 and losses[0].numel() == 1 and losses[0].is_floating_point():
            self._values.append(losses[0])

    def told(self) -> tuple[float, float] | None:
        """The least of the latest finite losses and the last of them, where they have grown out of proportion."""
        values = [abs(one) for one in numbers_of(self._torch, list(self._values)) if math.isfinite(one)]
        if len(values) > 1 and values[-2] and values[-1] > max(LARGE, AT_ONCE * values[-2]):
            return values[-2], values[-1]
        if len(values) < LEAST:
            return None
        before, last = sorted(values[:-1]), values[-1]
        median = before[len(before) // 2]
        least = min(values[-LATELY:-1])
        return (least, last) if last > max(LARGE, GROWN * median) and last > GROWN * least else None
