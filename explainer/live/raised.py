"""Notes an exception of autograd where it is raised: with the modes of that moment, and whatever the program does with it.

A program may catch it and print one line of it, and a mode such as `torch.no_grad()` has ended before an excepthook runs.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from .frame import leave_no_frame


def watch(recorder: Any) -> None:
    """Put a wrapper round `torch.autograd.backward` and `grad`, through which every backward goes."""
    import torch

    for name in ("backward", "grad"):
        setattr(torch.autograd, name, _noted(getattr(torch.autograd, name), recorder))


def _noted(function: Callable[..., Any], recorder: Any) -> Callable[..., Any]:
    @functools.wraps(function)
    def noted(*arguments: Any, **keywords: Any) -> Any:
        __tracebackhide__ = True
        try:
            return function(*arguments, **keywords)
        except Exception as error:
            recorder.note(error, "raised")
            leave_no_frame(error)
            raise

    return noted
