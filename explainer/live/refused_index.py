"""Which index a lookup or a loss refused: torch's own message names a label, and neither the id nor the rows of an embedding."""

from __future__ import annotations

from contextlib import suppress
from types import FrameType
from typing import Any

_IGNORED = -100  # the default of `ignore_index`
_NEAREST = 4  # frames in which torch's Python function is looked for, the innermost first


def refused_index(torch: Any, frames: list[FrameType]) -> str | None:
    """The index farthest outside its table, the rows or classes, and the lowest one beside it: `57 of 54, from 0`; None for other failures.

    Of the values no more is read than these two.
    """
    with suppress(Exception):  # a subclass may refuse anything, an accelerator that asserted refuses all
        given = _given(torch, frames)
        return _told(*given) if given is not None else None
    return None


def refused_labels(torch: Any, frames: list[FrameType]) -> str | None:
    """From which to which number the labels go that a loss of classes refused, and how many there are: `-1 to 1, 2 of them`."""
    with suppress(Exception):  # as above
        given = _given(torch, frames, only_labels=True)
        if given is None or _told(*given) is None:
            return None
        index, _, ignored = given
        index = index[index != ignored]
        return f"{int(index.min())} to {int(index.max())}, {int(index.unique().numel())} of them"
    return None


def _given(torch: Any, frames: list[FrameType], *, only_labels: bool = False) -> tuple[Any, int, int | None] | None:
    """The index that the innermost lookup or loss was given, the rows or classes, and what the loss leaves out."""
    for frame in reversed(frames[-_NEAREST:]):
        check = _CHECKS.get(frame.f_code.co_name)
        if check is not None and "torch/nn/functional.py" in frame.f_code.co_filename.replace("\\", "/"):
            index, size, ignored = check(torch, frame.f_locals)
            return (index.detach().flatten(), size, ignored) if ignored is not None or not only_labels else None
    return None


def _told(index: Any, size: int, ignored: int | None) -> str | None:
    if ignored is not None:
        index = index[index != ignored]
    lowest, highest = int(index.min()), int(index.max())
    if lowest >= 0 and highest < size:
        return None
    return f"{highest if highest >= size else lowest} of {size}, from {lowest}"


def _looked_up(torch: Any, given: dict[str, Any]) -> tuple[Any, int, int | None]:
    """`F.embedding(input, weight)`; before it fails, `embedding_bag` has the two in this order as well."""
    index, table = given["input"], given["weight"]
    index, table = (table, index) if torch.is_floating_point(index) else (index, table)
    return index, int(table.shape[0]), None


def _compared(torch: Any, given: dict[str, Any]) -> tuple[Any, int, int | None]:
    """`F.cross_entropy(input, target)` and `F.nll_loss`."""
    assert not torch.is_floating_point(given["target"])
    scores = given["input"]
    classes = int(scores.shape[1 if scores.dim() > 1 else 0])
    return given["target"], classes, given.get("ignore_index", _IGNORED)


_CHECKS = {"embedding": _looked_up, "embedding_bag": _looked_up, "cross_entropy": _compared, "nll_loss": _compared}
