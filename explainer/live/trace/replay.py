"""Checkpointed segments: their first pass and their replay, told apart, and where the two part.

Shapes that agree hide a replay that draws other random numbers than the first pass: that is asked of torch's generators, where
a segment is told not to restore them.
"""

from __future__ import annotations

import functools
import hashlib
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from .place import Place, describe

MAX_SEGMENTS = 256
MAX_SEEN = 2_000

Seen = tuple[str, tuple[tuple[tuple[int, ...], str], ...], Place | None]
"""An operation of a segment: its name, shape and dtype of what it made, its line."""


@dataclass(slots=True)
class Segment:
    """The passes through one checkpointed call; the second and later ones are replays.

    `began` is the state of the generators before the first pass, where replays do not restore it and the pass has drawn.
    """

    place: Place | None = None
    restores: bool = True
    passes: list[list[Seen]] = field(default_factory=list)
    began: str | None = None


class Replays:
    """The segments that were run lately."""

    def __init__(self, torch: Any, here: Callable[[int], Place | None]) -> None:
        self._torch, self._here = torch, here
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
        def noted(*args: Any, **keywords: Any) -> Any:
            segment.passes.append([])
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

    def saw(self, name: str, outputs: list[Any], place: Place | None) -> None:
        """An operation ran inside a segment."""
        seen = self.open[-1].passes[-1]
        if len(seen) < MAX_SEEN:
            seen.append((name, tuple((tuple(one.shape), str(one.dtype)) for one in outputs), place))

    def parted(self) -> dict[str, Any] | None:
        """The first operation at which a replay is not what the first pass was, of the latest such segment."""
        for segment in reversed(self._segments):
            for again in segment.passes[1:]:
                for first, second in zip(segment.passes[0], again, strict=False):
                    if first[:2] != second[:2]:
                        return {**describe(second[2]), "kind": "parted", "first": _say(first), "second": _say(second)}
                # A replay may stop early, once it has what backward needs; it never runs on.
                if len(again) > len(segment.passes[0]):
                    extra = again[len(segment.passes[0])]
                    return {**describe(extra[2]), "kind": "parted", "first": None, "second": _say(extra)}
        return None


def _say(seen: Seen) -> str:
    name, made, _ = seen
    return f"{name} -> " + ", ".join(f"{dtype.removeprefix('torch.')}{list(shape)}" for shape, dtype in made)
