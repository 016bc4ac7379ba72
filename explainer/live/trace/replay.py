"""Checkpointed segments: their first pass and their replay, told apart, and where the two part."""

from __future__ import annotations

import functools
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
    """The passes through one checkpointed call; the second and later ones are replays."""

    passes: list[list[Seen]] = field(default_factory=list)


class Replays:
    """The segments that were run lately."""

    def __init__(self) -> None:
        self._segments: deque[Segment] = deque(maxlen=MAX_SEGMENTS)
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
            segment = Segment()
            self._segments.append(segment)
            return checkpoint(self._noted(function, segment), *args, **keywords)

        return watched

    def _noted(self, function: Callable[..., Any], segment: Segment) -> Callable[..., Any]:
        def noted(*args: Any, **keywords: Any) -> Any:
            segment.passes.append([])
            self.open.append(segment)
            try:
                return function(*args, **keywords)
            finally:
                self.open.remove(segment)

        return noted

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
