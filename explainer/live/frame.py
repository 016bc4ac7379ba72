"""Keeps our own frames out of the tracebacks that the program sees."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable
from types import TracebackType
from typing import Any

_HERE = os.path.dirname(__file__) + os.sep


def is_ours(path: str) -> bool:
    """Whether a file is one of this folder."""
    return path.startswith(_HERE)


def is_installed(path: str) -> bool:
    """Whether a file belongs to a library or to Python, not to the program."""
    plain = path.replace("\\", "/")
    return "site-packages/" in plain or "/lib/python" in plain or "dist-packages/" in plain


def leave_no_frame(error: BaseException) -> None:
    """Take the frame of the caller, a wrapper of ours, out of a traceback that starts with it.

    From Python 3.11 on a bare `raise` that follows keeps what stands here; 3.10 adds the frame again, and
    `without_our_frames` takes it out where the traceback is printed.
    """
    trace = error.__traceback__
    if trace is not None and trace.tb_next is not None and is_ours(trace.tb_frame.f_code.co_filename):
        error.__traceback__ = trace.tb_next


def without_our_frames(trace: TracebackType | None) -> TracebackType | None:
    """The traceback without frames of this folder; the links are changed in place, as Python allows."""
    while trace is not None and trace.tb_next is not None and is_ours(trace.tb_frame.f_code.co_filename):
        trace = trace.tb_next
    here = trace
    while here is not None and here.tb_next is not None:
        following = here.tb_next
        if following.tb_next is not None and is_ours(following.tb_frame.f_code.co_filename):
            here.tb_next = following.tb_next
        else:
            here = following
    return trace


def behind(
    call: Callable[..., Any], note: Callable[[tuple[Any, ...], dict[str, Any], Any], None]
) -> Callable[..., Any]:
    """A function of a library that tells `note` of its arguments, keywords and result; its errors show no frame of ours.

    The caller of the function stands two frames above `note`.
    """

    @functools.wraps(call)
    def calling(*arguments: Any, **keywords: Any) -> Any:
        __tracebackhide__ = True
        try:
            result = call(*arguments, **keywords)
        except Exception as error:
            leave_no_frame(error)
            raise
        note(arguments, keywords, result)
        return result

    return calling
