"""Notes an exception of autograd where it is raised: with the modes of that moment, and whatever the program does with it.

A program may catch it and print one line of it, and a mode such as `torch.no_grad()` has ended before an excepthook runs.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

from .frame import leave_no_frame
from .imports import after_import
from .last_losses import LastLosses

MAX_OPERATIONS = 50
STOPS_REPLAY = (
    "_StopRecomputationError"  # how torch ends a checkpoint's replay that has what backward needs: no failure
)


def watch(recorder: Any) -> ExitStack:
    """Put a wrapper round `torch.autograd.backward` and `grad`, through which every backward goes; closing takes it off.

    And round the copy of a tensor, which is refused to one with a graph: what keeps the best model may go on without it. Of peft
    round what puts adapters on a model: a program may go on with the model as it is.
    """
    import torch

    undo = ExitStack()
    for owner, name in ((torch.autograd, "backward"), (torch.autograd, "grad"), (torch.Tensor, "__deepcopy__")):
        function = getattr(owner, name)
        noted = _noted(function, recorder, recorder.last_losses if name == "backward" else None)
        setattr(owner, name, noted)
        undo.callback(_put_back, owner, name, noted, function)
    after_import("peft.tuners.tuners_utils", lambda module: _watch_adapters(module.BaseTuner, recorder, undo))
    return undo


def _watch_adapters(tuner: Any, recorder: Any, undo: ExitStack) -> None:
    before = tuner.inject_adapter
    tuner.inject_adapter = _noted(before, recorder, None)
    undo.callback(_put_back, tuner, "inject_adapter", tuner.inject_adapter, before)


def of_operations(recorder: Any) -> Callable[[Exception], None]:
    """Notes what operations raise, for a program that tells one line of it; a few, as some are tried and meant to fail."""
    left = MAX_OPERATIONS

    def note(error: Exception) -> None:
        nonlocal left
        if type(error).__name__ == STOPS_REPLAY:
            return
        left -= 1
        if left >= 0:
            recorder.note(error, "raised")

    return note


def _put_back(module: Any, name: str, ours: Any, before: Any) -> None:
    """Put a function back, but where another one has come over ours."""
    if getattr(module, name) is ours:
        setattr(module, name, before)


def _noted(function: Callable[..., Any], recorder: Any, losses: LastLosses | None) -> Callable[..., Any]:
    @functools.wraps(function)
    def noted(*arguments: Any, **keywords: Any) -> Any:
        __tracebackhide__ = True
        if losses is not None and arguments:
            losses.saw(arguments[0])
        try:
            return function(*arguments, **keywords)
        except Exception as error:
            recorder.note(error, "raised")
            leave_no_frame(error)
            raise

    return noted
