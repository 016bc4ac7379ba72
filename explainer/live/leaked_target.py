"""A target that stands among the features of its own samples: the label's column was not taken out of the table."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress
from types import FrameType
from typing import Any

# A layer that got another number of features than it was built for.
_WIDTH = re.compile(r"shapes cannot be multiplied|running_mean should contain|normalized_shape|equal to input_size")
_FEWEST = 4  # samples: fewer say the same by chance
_MOST_VALUES = 1 << 22
_MOST_LOCALS = 60
_SAME = 1 - 1e-6  # of a correlation in float64: scaled columns are the same, too


def leaked_target(torch: Any, frames: list[FrameType], message: str) -> str | None:
    """Which column of a table is the target beside it: `column 5 of 6 in x is y`; None where none is.

    Of the values no more is told than this. A column that was scaled is still the target's.
    """
    if not _WIDTH.search(message):
        return None
    for frame in reversed(frames):
        held = list(_tensors(torch, frame))
        for name, table in held:
            if table.dim() != 2 or table.shape[0] < _FEWEST or table.numel() > _MOST_VALUES:
                continue
            for other, target in held:
                if target is not table and target.numel() == table.shape[0]:
                    with suppress(Exception):  # a subclass may refuse anything
                        at = _column(table, target)
                        if at is not None:
                            return f"column {at} of {table.shape[1]} in {name} is {other}"
    return None


def _tensors(torch: Any, frame: FrameType) -> Iterator[tuple[str, Any]]:
    """The tensors of a frame by their names, also those of a batch that is a dictionary, a list or a tuple."""
    for name, value in list(frame.f_locals.items())[:_MOST_LOCALS]:
        parts: list[tuple[str, Any]] = [(name, value)]
        if type(value) is dict:
            parts = [(f"{name}[{key!r}]", one) for key, one in list(value.items())[:20]]
        elif type(value) in (list, tuple):
            parts = [(f"{name}[{at}]", one) for at, one in enumerate(value[:20])]
        yield from ((path, one) for path, one in parts if isinstance(one, torch.Tensor))


def _column(table: Any, target: Any) -> int | None:
    """The one column that goes with the target, or against it, in every sample."""
    values, wanted = table.detach().double(), target.detach().reshape(-1).double()
    values, wanted = values - values.mean(0), wanted - wanted.mean()
    scale = values.norm(dim=0) * wanted.norm()
    same = ((wanted @ values).abs() > _SAME * scale) & (scale > 0)
    found = same.nonzero().flatten().tolist()
    return int(found[0]) if len(found) == 1 else None
