"""What values say that were refused: floats with fractions where indices are taken, or scores where probabilities are.

A cast to integers would change what the first say; the others are finite, and never passed a sigmoid. A mask that is stored as 0 and 255
is no probability once it is a float. float64 values may lie so close
that float32 takes many for the same, as times in seconds since 1970 do: a cast before they are subtracted would lose what they say.
"""

from __future__ import annotations

import re
from contextlib import suppress
from types import FrameType
from typing import Any

MAX_VALUES = 1_000_000
MAX_COMPARED = 4096  # among these, values drawn at random are told apart by float32 but for one or two
_KEPT = 0.95
_DOUBLE = re.compile(r"\b(?:[Dd]ouble|float64)\b")
_TAKEN = ("target", "input", "index", "indices")
_REFUSED = re.compile(r"\b(?:Long|Int|int64|int32/int64)\b")


def fractions(torch: Any, frames: list[FrameType], message: str) -> str | None:
    """The argument of torch's innermost Python function that holds fractions, `target`; None where none does.

    Only of a failure whose message asks for integers; the one bit is all that is read of the values.
    """
    if not frames or not _REFUSED.search(message):
        return None
    given = frames[-1].f_locals
    if "torch/nn/functional.py" not in frames[-1].f_code.co_filename.replace("\\", "/"):
        return None
    for name in _TAKEN:
        value = given.get(name)
        if isinstance(value, torch.Tensor) and value.is_floating_point() and (name != "input" or "target" not in given):
            with suppress(Exception):  # a subclass may refuse anything
                some = value.detach().flatten()[:MAX_VALUES]
                return name if bool((some != some.round()).any()) else None
    return None


def scores(torch: Any, frames: list[FrameType], message: str) -> str | None:
    """The argument of a loss on probabilities that is finite and lies outside 0 to 1, `input`; None where none does."""
    if not frames or "all elements of input should be between 0 and 1" not in message:
        return None
    value = frames[-1].f_locals.get("input")
    if isinstance(value, torch.Tensor) and value.is_floating_point():
        with suppress(Exception):  # a subclass may refuse anything
            return "input" if bool(torch.isfinite(value.detach().flatten()[:MAX_VALUES]).all()) else None
    return None


def beyond_one(torch: Any, frames: list[FrameType]) -> str | None:
    """What an integer target of a binary cross-entropy holds beyond 0 and 1: `255 alone` beside 0, `7 at most` of several; else None."""
    if not frames or not frames[-1].f_code.co_name.startswith("binary_cross_entropy"):
        return None
    value = frames[-1].f_locals.get("target")
    if isinstance(value, torch.Tensor) and not value.is_floating_point() and value.dtype != torch.bool:
        with suppress(Exception):  # a subclass may refuse anything
            some = value.detach().flatten()[:MAX_VALUES]
            top = int(some.max())
            is_alone = bool(((some == 0) | (some == top)).all())
            return f"{top} {'alone' if is_alone else 'at most'}" if top > 1 else None
    return None


def coarse(torch: Any, frames: list[FrameType], message: str) -> list[str]:
    """The names of float64 tensors in frames whose different values float32 takes for the same, of one in twenty or more.

    Only of a failure whose message speaks of float64; the one bit is all that is read of the values.
    """
    found: set[str] = set()
    for frame in frames if _DOUBLE.search(message) else ():
        for name, value in frame.f_locals.items():
            if isinstance(value, torch.Tensor) and value.dtype == torch.float64:
                with suppress(Exception):  # a subclass may refuse anything
                    some = value.detach().flatten()[:MAX_COMPARED].unique()
                    if some.float().unique().numel() < _KEPT * some.numel():
                        found.add(name)
    return sorted(found)
