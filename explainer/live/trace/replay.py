"""Checkpointed segments: their first pass and their replay, told apart, and where the two part.

Shapes that agree hide a replay that draws other random numbers than the first pass: that is asked of torch's generators, where
a segment is told not to restore them. They hide other values too, and a function that reads a variable which has moved on.
"""

from __future__ import annotations

import functools
import hashlib
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from .captured import captured, moved_on
from .place import Place, describe
from .values import Computed, Parting, Values
from .write import Write, Writes

MAX_SEGMENTS = 256
MAX_SEEN = 2_000

Seen = tuple[str, tuple[tuple[tuple[int, ...], str], ...], Place | None]
"""An operation of a segment: its name, shape and dtype of what it made, its line."""


@dataclass(slots=True)
class Segment:
    """The passes through one checkpointed call; the second and later ones are replays.

    `began` is the state of the generators before the first pass, where replays do not restore it and the pass has drawn;
    `computed` what the operations of the first pass gave; `moved_on` the variable of the segment's function that is another
    object in a replay. `is_off` says that grad mode was off where the latest pass began, as it is in the first of the reentrant form.
    """

    place: Place | None = None
    restores: bool = True
    passes: list[list[Seen]] = field(default_factory=list)
    began: str | None = None
    computed: list[Computed | None] = field(default_factory=list)
    moved_on: str | None = None
    is_off: bool = False


@dataclass(frozen=True, slots=True)
class Told:
    """A segment whose replay gives other values: the first such operation, and what was written of what that reads, if anything."""

    parting: Parting
    write: Write | None
    is_parameter: bool


class Replays:
    """The segments that were run lately."""

    def __init__(self, torch: Any, here: Callable[[int], Place | None], writes: Writes, *, values: bool = True) -> None:
        self._torch, self._here, self._writes = torch, here, writes
        self._values = Values(torch) if values else None
        self._other: dict[Place | None, Told] = {}
        self._segments: deque[Segment] = deque(maxlen=MAX_SEGMENTS)
        self._redrawn: dict[Place | None, None] = {}
        self.open: list[Segment] = []

    @property
    def has_any(self) -> bool:
        """Whether the program checkpoints at all."""
        return bool(self._segments)

    @property
    def is_again(self) -> bool:
        """Whether a replay is running."""
        return any(len(one.passes) > 1 for one in self.open)

    def watched(self, checkpoint: Callable[..., Any]) -> Callable[..., Any]:
        """`torch.utils.checkpoint.checkpoint`, with each segment noted."""

        @functools.wraps(checkpoint)
        def watched(function: Callable[..., Any], *args: Any, **keywords: Any) -> Any:
            segment = Segment(self._here(2), restores=bool(keywords.get("preserve_rng_state", True)))
            self._segments.append(segment)
            return checkpoint(self._noted(function, segment), *args, **keywords)

        return watched

    def _noted(self, function: Callable[..., Any], segment: Segment) -> Callable[..., Any]:
        held = captured(function)

        def noted(*args: Any, **keywords: Any) -> Any:
            segment.passes.append([])
            segment.is_off = not self._torch.is_grad_enabled()
            if len(segment.passes) > 1:
                segment.moved_on = moved_on(function, held)
            self.open.append(segment)
            before = None if segment.restores else self._generators()
            if len(segment.passes) > 1 and segment.began not in (None, before):
                self._redrawn[segment.place] = None
            try:
                return function(*args, **keywords)
            finally:
                self.open.remove(segment)
                if len(segment.passes) == 1 and before is not None and self._generators() != before:
                    segment.began = before

        return noted

    def _generators(self) -> str:
        """The state of torch's own generators, as a digest: 5 kB on the CPU, 16 bytes on a GPU that is in use."""
        with self._torch._C.DisableTorchFunction():  # noqa: SLF001 - no operation of the program
            cuda = self._torch.cuda
            states = [self._torch.get_rng_state(), *([cuda.get_rng_state()] if cuda.is_initialized() else [])]
            return hashlib.blake2b(b"".join(bytes(one.numpy()) for one in states), digest_size=16).hexdigest()

    def redrawn(self) -> list[Place | None]:
        """The lines that checkpoint a segment whose replay draws other random numbers than its first pass."""
        return list(self._redrawn)

    def saw(self, name: str, outputs: list[Any], place: Place | None, number: int, tensors: list[Any]) -> None:
        """An operation ran inside a segment, the one with that number, of some tensors."""
        segment = self.open[-1]
        seen = segment.passes[-1]
        if len(seen) >= MAX_SEEN:
            return
        seen.append((name, tuple((tuple(one.shape), str(one.dtype)) for one in outputs), place))
        if self._values is None or segment.place in self._other:
            return
        if len(segment.passes) == 1:
            segment.computed.append(self._values.computed(name, number, outputs, tensors))
            return
        at = len(seen) - 1
        first = segment.computed[at] if at < len(segment.computed) else None
        if first is not None and seen[at][:2] == segment.passes[0][at][:2]:
            self._values.again(Parting(segment, name, place, number, first), outputs)

    def compare(self) -> None:
        """Hold what the replays of this step gave against their first passes."""
        for parting in self._values.partings() if self._values is not None else ():
            if parting.owner.place not in self._other:
                self._other[parting.owner.place] = self._told(parting)
        for segment in self._segments:
            if len(segment.passes) > 1:  # one that is still to be replayed is compared in a later step
                segment.computed.clear()

    def _told(self, parting: Parting) -> Told:
        """A parting, and the first write between its two passes into what it reads."""
        for leaf in (one() for one in parting.first.leaves):
            if leaf is not None and (writes := self._writes.between(leaf, parting.first.number, parting.number)):
                return Told(parting, writes[0], bool(leaf.is_leaf and leaf.requires_grad))
        return Told(parting, None, is_parameter=False)

    def others(self) -> list[Told]:
        """The segments whose replay gave other values, by the line that checkpoints them."""
        self.compare()
        return list(self._other.values())

    def parted(self) -> dict[str, Any] | None:
        """The first operation at which a replay is not what the first pass was, of the latest such segment."""
        for segment in reversed(self._segments):
            for again in segment.passes[1:]:
                for first, second in zip(segment.passes[0], again, strict=False):
                    if first[:2] != second[:2]:
                        return self._parted(segment, second, _say(first))
                # A replay may stop early, once it has what backward needs; it never runs on.
                if len(again) > len(segment.passes[0]):
                    return self._parted(segment, again[len(segment.passes[0])], None)
        return None

    @staticmethod
    def _parted(segment: Segment, second: Seen, first: str | None) -> dict[str, Any]:
        return {
            **describe(second[2]), "kind": "parted", "first": first, "second": _say(second),
            "moved_on": segment.moved_on, "segment": describe(segment.place),
        }  # fmt: skip


def _say(seen: Seen) -> str:
    name, made, _ = seen
    return f"{name} -> " + ", ".join(f"{dtype.removeprefix('torch.')}{list(shape)}" for shape, dtype in made)
