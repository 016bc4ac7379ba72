"""Tensors that share memory with an array of NumPy: what the program writes into the array, autograd does not see.

They are made of arrays (`from_numpy`), or let an array out that has their memory (`numpy`).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from typing import Any

from ..storage import storage_of  # noqa: TID252 - `live` is loaded under a name of its own
from .place import Place

MAX_KEPT = 2_000
MAX_ELEMENTS = 250_000  # of one array whose bytes are looked at
MAX_TOGETHER = 4_000_000
SHARING = "from_numpy"


class Shared:
    """The tensors that came to share memory since the last step, and a digest of their bytes as they were."""

    def __init__(self) -> None:
        self._kept: deque[tuple[Any, int, Place | None, int]] = deque(maxlen=MAX_KEPT)
        self._elements = 0

    def add(self, tensor: Any, place: Place | None, number: int) -> None:
        """Remember a tensor that shares its memory with an array, and the operation that made it."""
        if not tensor.is_floating_point() or not 0 < tensor.numel() <= MAX_ELEMENTS:
            return
        self._elements += tensor.numel()
        while self._kept and self._elements > MAX_TOGETHER:
            self._elements -= self._kept.popleft()[0].numel()
        self._kept.append((tensor, _digest(tensor), place, number))

    def holds(self, numbers: Iterable[int]) -> bool:
        """Whether what one of these operations has made is kept."""
        return bool(self._kept) and any(number in numbers for _, _, _, number in self._kept)

    def overwritten(self, tensors: Iterable[Any]) -> Iterator[Place | None]:
        """The lines that shared the memory of some tensors, where it was written since."""
        for tensor in tensors:
            storage = storage_of(tensor)
            for kept, digest, place, _ in self._kept:
                if storage_of(kept) == storage and _digest(kept) != digest:
                    yield place

    def changed(self) -> Iterator[tuple[Any, Place | None, int]]:
        """The tensors whose memory was written since, each once, with the line that shared it and that number."""
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
