"""The in-place writes of a program, by storage and byte range: also those that bump no version counter."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from ..storage import storage_of  # noqa: TID252 - `live` is loaded under a name of its own
from .place import Place

MAX_WRITES = 20_000


@dataclass(frozen=True, slots=True)
class Write:
    """One write: the operation, where, in whose thread, and between which autograd nodes.

    `sequence` is autograd's counter before the write: a node with a lower number was there already. `version` is the
    counter of the tensor that was written, after the write; an alias made by `.data` has one of its own.
    """

    name: str
    place: Place | None
    thread: int
    sequence: int
    storage: int
    start: int
    end: int
    version: int
    shape: tuple[int, ...]
    grad_mode: bool
    number: int


class Writes:
    """The latest writes."""

    def __init__(self) -> None:
        self._log: deque[Write] = deque(maxlen=MAX_WRITES)
        self._by_storage: dict[int, int] = {}

    def add(self, write: Write) -> None:
        """Log a write."""
        if len(self._log) == MAX_WRITES:
            oldest = self._log[0].storage
            self._by_storage[oldest] -= 1
            if not self._by_storage[oldest]:
                del self._by_storage[oldest]
        self._log.append(write)
        self._by_storage[write.storage] = self._by_storage.get(write.storage, 0) + 1

    def __len__(self) -> int:
        return len(self._log)

    def after(self, tensor: Any, sequence: int, thread: int) -> list[Write]:
        """The writes into a tensor's bytes that came after the autograd node with that number saved it, oldest first."""
        return [one for one in self._into(tensor) if one.thread == thread and one.sequence > sequence]

    def between(self, tensor: Any, first: int, last: int) -> list[Write]:
        """The writes into a tensor's bytes that came between the operations with those numbers, oldest first."""
        return [one for one in self._into(tensor) if first < one.number < last]

    def of_version(self, shape: tuple[int, ...], version: int) -> list[Write]:
        """The writes after which a tensor of a shape had a version, oldest first."""
        return [one for one in self._log if one.version == version and one.shape == shape]

    def _into(self, tensor: Any) -> Iterator[Write]:
        storage = storage_of(tensor)
        if storage is None or storage not in self._by_storage:
            return
        start, end = extent(tensor)
        for one in self._log:
            if one.storage == storage and one.start < end and start < one.end:
                yield one

    def holds(self, storage: int) -> bool:
        """Whether any write into a storage is known."""
        return storage in self._by_storage


def extent(tensor: Any) -> tuple[int, int]:
    """The bytes of its storage that a tensor can reach: from the first to behind the last."""
    size = tensor.element_size()
    start = tensor.storage_offset() * size
    if not tensor.numel():
        return start, start
    reach = sum((length - 1) * abs(stride) for length, stride in zip(tensor.shape, tensor.stride(), strict=True))
    return start, start + (reach + 1) * size
