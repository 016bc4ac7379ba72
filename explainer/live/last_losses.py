"""The latest losses that were sent backward: kept on their devices, and read once, when the program ends.

A loss can be infinite while every gradient is finite (a logarithm of 0 behind a ReLU): the program trains on, and prints `inf`.
"""

from __future__ import annotations

import math
from collections import deque
from contextlib import suppress
from typing import Any

KEPT = 3  # a GradScaler, or one odd batch, may make one that is not finite
MAX_BYTES = 4096  # an element of a large tensor would keep all of it alive


class LastLosses:
    """The last few scalars of which a gradient was asked."""

    def __init__(self) -> None:
        self._kept: deque[Any] = deque(maxlen=KEPT)

    def saw(self, roots: Any) -> None:
        """A backward begins with these; several roots are no loss."""
        with suppress(Exception):  # a subclass of tensors may refuse anything, and the program must run
            is_scalar = roots.numel() == 1 and roots.is_floating_point() and not roots.is_meta
            if is_scalar and roots.untyped_storage().nbytes() <= MAX_BYTES:
                self._kept.append(roots.detach())

    def at_the_end(self) -> str:
        """What the last losses are, where none of as many as are kept is finite; "" elsewhere."""
        if len(self._kept) < KEPT:
            return ""
        with suppress(Exception):  # a device may be gone by now
            values = [float(one) for one in self._kept]
            if not any(map(math.isfinite, values)):
                return f"{values[-1]}"
        return ""
