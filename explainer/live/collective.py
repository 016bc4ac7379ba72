"""Notes the collectives that this process enters: operation, shape, group and number; no tensor is kept alive.

What C++ enters by itself (DistributedDataParallel's reducer) passes by no Python function: there the process group's own
sequence number says how far this rank has come.
"""

from __future__ import annotations

import functools
import sys
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from .frame import leave_no_frame

KEPT = 8
NAMES = (
    "all_reduce", "all_gather", "all_gather_into_tensor", "all_gather_object", "all_gather_coalesced", "all_reduce_coalesced",
    "all_to_all", "all_to_all_single", "barrier", "broadcast", "broadcast_object_list", "gather", "gather_object",
    "monitored_barrier", "reduce", "reduce_scatter", "reduce_scatter_tensor", "scatter", "scatter_object_list", "send", "recv",
    "isend", "irecv",
)  # fmt: skip


class Collectives:
    """The last collectives of this process, and how many it has entered in all."""

    def __init__(self) -> None:
        self._last: deque[list[Any]] = deque(maxlen=KEPT)
        self._count = 0
        self._is_in = False
        self._is_compiling: Callable[[], bool] = lambda: False

    def watch(self, module: Any, on_group: Callable[[], None], on_made: Callable[[], None]) -> None:
        """Wrap the functions of `torch.distributed`; `on_group` is called before a group is made, `on_made` after it."""
        inner = sys.modules.get("torch.distributed.distributed_c10d")
        if inner is None:
            return
        compiler = getattr(sys.modules["torch"], "compiler", None)
        self._is_compiling = getattr(compiler, "is_compiling", self._is_compiling)
        for name in NAMES:
            if hasattr(inner, name):
                _replace((module, inner), name, self._noted(getattr(inner, name), name))
        make = inner.init_process_group

        @functools.wraps(make)
        def made(*arguments: Any, **keywords: Any) -> Any:
            on_group()
            result = make(*arguments, **keywords)
            on_made()
            return result

        _replace((module, inner), "init_process_group", made)

    def _noted(self, function: Callable[..., Any], name: str) -> Callable[..., Any]:
        @functools.wraps(function)
        def noted(*arguments: Any, **keywords: Any) -> Any:
            __tracebackhide__ = True
            # Inside of another collective it is a part of it; a compiler sees the function itself.
            if self._is_in or self._is_compiling():
                return function(*arguments, **keywords)
            self._is_in = True
            self._count += 1
            entry = [name, self._count, _shape(arguments, keywords), keywords.get("group"), time.monotonic(), False]
            self._last.append(entry)
            try:
                result = function(*arguments, **keywords)
                entry[5] = True
            except Exception as error:
                leave_no_frame(error)
                raise
            finally:
                self._is_in = False
            return result

        return noted

    def told(self) -> list[dict[str, Any]]:
        """The last collectives, oldest first; `done` where the call has returned."""
        return [
            {
                "op": op,
                "number": number,
                "shape": list(shape[0]) if shape else None,
                "dtype": str(shape[1]).removeprefix("torch.") if shape else None,
                "group": _group(group),
                "monotonic": at,
                "done": is_done,
            }
            for op, number, shape, group, at, is_done in list(self._last)
        ]


def sequence() -> int | None:
    """How many collectives the default group of this process has started, those of C++ included; None where it cannot tell."""
    inner = sys.modules.get("torch.distributed.distributed_c10d")
    with suppress(Exception):
        if inner is not None and inner.is_initialized():
            return int(inner._get_default_group()._get_sequence_number_for_group())  # noqa: SLF001 - there is no public one
    return None


def _shape(arguments: tuple[Any, ...], keywords: dict[str, Any]) -> tuple[Any, Any] | None:
    """Shape and dtype of the first tensor that a collective was given."""
    for one in (*arguments[:2], *keywords.values()):
        if hasattr(one, "shape"):
            return one.shape, one.dtype
    return None


def _group(group: Any) -> str | None:
    return str(getattr(group, "group_name", None) or type(group).__name__) if group is not None else None


def _replace(modules: tuple[Any, ...], name: str, function: Any) -> None:
    for module in modules:
        if hasattr(module, name):
            setattr(module, name, function)
