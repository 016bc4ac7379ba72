"""Weights in half precision that steps do not move: each step is smaller than what they can hold beside their value."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from contextlib import suppress
from typing import Any

LEAST = 8  # steps; the first ones of a warm-up may be small
MAX_LOOKED_AT = 4
MAX_VALUES = 1024
MAX_OPTIMIZERS = 16
_HALF = ("torch.bfloat16", "torch.float16")


class Stuck:
    """Keeps a few values of each optimizer's half-precision weights from before its first step."""

    def __init__(self, key: Callable[[Any], str], steps: Callable[[str], int]) -> None:
        self._key = key
        self._steps = steps
        self._kept: dict[str, list[tuple[weakref.ref[Any], Any]]] = {}
        self._optimizers: dict[str, weakref.ref[Any]] = {}

    def before_step(self, optimizer: Any) -> None:
        """An optimizer is about to step; before its first step its weights are as they were made."""
        key = self._key(optimizer)
        if key in self._kept or len(self._kept) >= MAX_OPTIMIZERS:
            return
        with suppress(Exception):  # a sharded or quantized parameter may refuse to be read
            owned = [one for group in optimizer.param_groups for one in group["params"] if one.grad is not None]
            is_half = bool(owned) and all(str(one.dtype) in _HALF for one in owned)
            chosen = [one for one in owned if is_half and bool(one.grad.any())][:MAX_LOOKED_AT]
            self._optimizers[key] = weakref.ref(optimizer)
            self._kept[key] = [(weakref.ref(one), _some(one).clone()) for one in chosen]

    def at_the_end(self) -> list[dict[str, Any]]:
        """The optimizers none of whose weights have moved, though they had gradients and a learning rate."""
        found = []
        for key, kept in self._kept.items():
            optimizer = self._optimizers[key]()
            rates = [float(group.get("lr", 0.0)) for group in optimizer.param_groups] if optimizer is not None else []
            alive = [(one, before) for ref, before in kept if (one := ref()) is not None]
            if self._steps(key) < LEAST or not alive or not all(rate > 0.0 for rate in rates or [0.0]):
                continue
            with suppress(Exception):
                if all(bool((_some(one) == before).all()) for one, before in alive):
                    dtype = str(alive[0][0].dtype).removeprefix("torch.")
                    found.append({"optimizer": key, "steps": self._steps(key), "dtype": dtype})
        return found


def _some(parameter: Any) -> Any:
    return parameter.detach().flatten()[:MAX_VALUES]
