"""What targets hold that a loss refused: class indices in a dtype of several labels at once, rows of several classes.

Where a configuration does not say the kind of problem, its models take it from the labels: int64 and int32 are classes, anything
else is a row of probabilities for each sample, whose loss then speaks of sizes alone.
"""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from types import FrameType
from typing import Any

from .frame import is_installed, is_ours

_SEVERAL = "multi_label_classification"
_REFUSED = "must be the same as input size"
_MAX_FILE = 1 << 20


def class_targets(torch: Any, frames: list[FrameType], message: str) -> str | None:
    """The dtype of whole numbers, one for each sample, that a loss of several labels refused; None where that is not what failed.

    Nor where the program itself asks for several labels: then it is the rows that are missing.
    """
    if not frames or _REFUSED not in message:
        return None
    target, scores = (frames[-1].f_locals.get(name) for name in ("target", "input"))
    if not isinstance(target, torch.Tensor) or not isinstance(scores, torch.Tensor) or scores.dim() != 2:
        return None
    if scores.shape[1] < 2 or target.numel() != scores.shape[0] or target.shape[:1] != scores.shape[:1]:
        return None
    if not any(_takes_several(frame) for frame in frames) or _is_asked_for():
        return None
    with suppress(Exception):  # a subclass may refuse anything
        some = target.detach().double()
        if bool((some == some.round()).all()) and bool((some >= 0).all()):
            return str(target.dtype).removeprefix("torch.")
    return None


def hot_rows(torch: Any, frames: list[FrameType], message: str) -> str | None:
    """How many classes a row of 0 and 1 names where cross-entropy refused whole numbers: "0 to 3", "1 to 1" of one-hot rows.

    Other rows than these are no distribution over the classes, and no cast makes them one.
    """
    if not frames or "for target with class probabilities" not in message:
        return None
    target, scores = (frames[-1].f_locals.get(name) for name in ("target", "input"))
    if not isinstance(target, torch.Tensor) or not isinstance(scores, torch.Tensor):
        return None
    with suppress(Exception):  # a subclass may refuse anything
        some = target.detach()
        if some.shape != scores.shape or some.dim() != 2 or not bool(((some == 0) | (some == 1)).all()):
            return None
        named = some.sum(1)
        return f"{int(named.min())} to {int(named.max())}"
    return None


def _takes_several(frame: FrameType) -> bool:
    """Whether a frame of a library's model has a configuration that now names several labels."""
    if not frame.f_globals.get("__name__", "").startswith("transformers."):
        return False
    given = frame.f_locals
    config = given.get("config") or getattr(given.get("self"), "config", None)
    return getattr(config, "problem_type", None) == _SEVERAL


def _is_asked_for() -> bool:
    """Whether the command or a file of the program names the kind of problem."""
    return any(_SEVERAL in one for one in sys.argv) or any(_names_several(one) for one in own_files())


def own_files() -> list[str]:
    """The files of the program's own modules, as far as they are imported."""
    files = [getattr(one, "__file__", None) for one in list(sys.modules.values())]
    return [one for one in files if isinstance(one, str) and one.endswith(".py") and not _is_of_library(one)]


def _is_of_library(file: str) -> bool:
    return is_installed(file) or is_ours(file) or file.startswith((sys.base_prefix + os.sep, sys.prefix + os.sep))


def _names_several(file: str) -> bool:
    with suppress(OSError), open(file, encoding="utf-8", errors="replace") as text:
        return _SEVERAL in text.read(_MAX_FILE)
    return False
