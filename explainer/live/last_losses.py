"""The losses that were sent backward: kept on their devices, and read once, when the program ends.

A loss can be infinite while every gradient is finite (a logarithm of 0 behind a ReLU): the program trains on, and prints `inf`.
It can be NaN in a few batches only, with gradients of 0 (a mean over labels that are all ignored): an average is NaN from then on.
"""

from __future__ import annotations

import math
import sys
from collections import deque
from contextlib import suppress
from typing import Any

KEPT = 3  # a GradScaler, or one odd batch, may make one that is not finite
FOLDED = 64  # read together, so that a step costs no operation of its own
MAX_BYTES = 4096  # an element of a large tensor would keep all of it alive


class LastLosses:
    """The last few scalars of which a gradient was asked, and how many of those that a step was made with were NaN."""

    def __init__(self) -> None:
        self._kept: deque[Any] = deque(maxlen=KEPT)
        self._latest: Any = None
        self._stepped: list[Any] = []
        self._counts: dict[Any, Any] = {}

    def saw(self, roots: Any) -> None:
        """A backward begins with these; several roots are no loss."""
        with suppress(Exception):  # a subclass of tensors may refuse anything, and the program must run
            is_scalar = roots.numel() == 1 and roots.is_floating_point() and not roots.is_meta
            if is_scalar and roots.untyped_storage().nbytes() <= MAX_BYTES:
                self._latest = roots.detach()
                self._kept.append(self._latest)

    def stepped(self) -> None:
        """An optimizer made a step: with the gradients of the latest loss."""
        if self._latest is None:
            return
        self._stepped.append(self._latest)
        self._latest = None
        if len(self._stepped) >= FOLDED:
            self._fold()

    def _fold(self) -> None:
        """Count those that are NaN, on their devices."""
        taken, self._stepped = self._stepped, []
        torch = sys.modules["torch"]
        with suppress(Exception), torch._C.DisableTorchFunction():  # noqa: SLF001 - no operation of the program's
            for kind in {(one.device, one.dtype) for one in taken}:
                alike = [one.reshape(()) for one in taken if (one.device, one.dtype) == kind]
                self._counts[kind] = self._counts.get(kind, 0) + torch.stack(alike).isnan().sum()

    def not_a_number(self) -> int:
        """With how many losses that were NaN a step was made."""
        self._fold()
        with suppress(Exception):  # a device may be gone by now
            return sum(int(one) for one in self._counts.values())
        return 0

    def at_the_end(self) -> str:
        """What the last losses are, where none of as many as are kept is finite; "" elsewhere."""
        if len(self._kept) < KEPT:
            return ""
        with suppress(Exception):  # a device may be gone by now
            values = [float(one) for one in self._kept]
            if not any(map(math.isfinite, values)):
                return f"{values[-1]}"
        return ""
