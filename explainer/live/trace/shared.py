"""Tensors that share memory with an array of NumPy: what the program writes into the array, autograd does not see."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import Any

from .place import Place

MAX_KEPT = 2_000
MAX_ELEMENTS = 250_000  # of one array whose bytes are looked at
MAX_TOGETHER = 4_000_000
SHARING = "from_numpy"


class Shared:
    """The tensors made of arrays since the last step, and a digest of their bytes as they were."""

    def __init__(self) -> None:
        self._kept: deque[tuple[Any, int, Place | None, int]] = deque(maxlen=MAX_KEPT)
        self._elements = 0

    def add(self, tensor: Any, place: Place | None, number: int) -> None:
        """Remember a tensor that the operation with that number has made of an array, whose memory it has."""
        if not tensor.is_floating_point() or not 0 < tensor.numel() <= MAX_ELEMENTS:
            return
        self._elements += tensor.numel()
        while self._kept and self._elements > MAX_TOGETHER:
            self._elements -= self._kept.popleft()[0].numel()
        self._kept.append((tensor, _digest(tensor), place, number))

    def changed(self) -> Iterator[tuple[Any, Place | None, int]]:
        """The tensors whose memory was written since, each once, with the line and number of what made them."""
        for _ in range(len(self._kept)):
            tensor, digest, place, number = self._kept.popleft()
            now = _digest(tensor)
            if now != digest:
                yield tensor, place, number
            self._kept.append((tensor, now, place, number))

    def forget(self) -> None:
        """A step was made: the graphs before it are used up."""
        self._kept.clear()
        self._elements = 0


def _digest(tensor: Any) -> int:
    return hash(tensor.detach().contiguous().numpy().tobytes())
