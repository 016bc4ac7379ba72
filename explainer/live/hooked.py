"""Hooks on tensors that change the gradient they are given in place, while another branch has the same tensor.

Where two branches are added, both are given one and the same gradient: what a hook of the first writes the second goes on
with. `grad.mul_(0.1)` of a gradient that nobody else has is harmless, so that it is counted who has it (run on torch 2.13).
"""

from __future__ import annotations

import functools
import math
import sys
from contextlib import suppress
from typing import Any

from .frame import leave_no_frame
from .trace.place import Places

LEAST = 2  # calls in which a hook changes what another branch has
MAX_LOOKED_AT = 8  # calls of one hook whose gradients are summed up, each of them shared
MAX_HOOKS = 200
MAX_DEPTH = 10

_Held = tuple[int, int, int, int]
"""How many have a gradient, how many of them in Python, and the same of the tensor that it is a view of as a whole."""


class Hooked:
    """Notes which hooks of the program write a gradient that another branch has."""

    def __init__(self, torch: Any) -> None:
        self._torch = torch
        self._places = Places(torch)
        self._register = torch.Tensor.register_hook
        self._seen: dict[Any, _Seen] = {}
        self._alone: dict[str, list[_Held]] = {}
        self._asked: set[str] = set()
        self._measured: list[_Held] | None = None

    def watch(self) -> None:
        """Look at what hooks of tensors do, those of the program's own functions."""
        register = self._register

        @functools.wraps(register)
        def registering(tensor: Any, hook: Any) -> Any:
            __tracebackhide__ = True
            try:
                return register(tensor, self._watched(hook))
            except Exception as error:
                leave_no_frame(error)
                raise

        self._torch.Tensor.register_hook = registering

    def before_step(self) -> None:
        """Measure, once a hook has run, who has a gradient that no other branch is given: outside of a backward."""
        task = getattr(self._torch._C, "_current_graph_task_id", lambda: -1)  # noqa: SLF001
        for device in self._asked if task() == -1 else ():
            self._alone[device] = []
            with suppress(Exception):  # a torch that does not count who has a tensor
                self._alone[device] = self._measure(device)
        if task() == -1:
            self._asked.clear()

    def at_the_end(self) -> list[dict[str, Any]]:
        """The functions of the hooks that wrote what another branch had."""
        return [
            {"file": code.co_filename, "line": code.co_firstlineno, "function": code.co_name}
            for code, seen in self._seen.items()
            if seen.changed >= LEAST
        ]

    def _watched(self, hook: Any) -> Any:
        code = _code_of(hook)
        if code is None or len(self._seen) >= MAX_HOOKS or not self._places.is_own(code):
            return hook
        return _Watched(hook, self, self._seen.setdefault(code, _Seen()))

    def look(self, gradient: Any, seen: _Seen | None) -> tuple[float, float] | None:
        """What a gradient sums up to, where a hook is about to get it that another branch has too."""
        if self._measured is not None and seen is None:
            self._measured.append(_held(gradient))
        if seen is None or seen.is_known or self._torch.is_grad_enabled() or type(gradient) is not self._torch.Tensor:
            return None
        alone = self._alone.get(gradient.device.type)
        if alone is None:
            self._asked.add(gradient.device.type)
            return None
        return self._sums(gradient) if alone and _is_shared(_held(gradient), alone) else None

    def compare(self, gradient: Any, seen: _Seen, before: tuple[float, float]) -> None:
        """Whether the hook has changed what it was given."""
        after = self._sums(gradient)
        seen.looked += 1
        seen.changed += after != before and all(map(math.isfinite, (*before, *after)))

    def _sums(self, gradient: Any) -> tuple[float, float]:
        torch = self._torch
        with torch._C.DisableTorchFunction():  # noqa: SLF001
            size = torch.linalg.vector_norm(gradient, dtype=torch.float32)
            return float(gradient.sum(dtype=torch.float32)), float(size)

    def _measure(self, device: str) -> list[_Held]:
        """Who has a gradient that is computed for one tensor alone, and one that is a view of such a gradient."""
        torch, self._measured = self._torch, []
        try:
            with torch.enable_grad(), torch._C.DisableTorchFunction():  # noqa: SLF001
                for shape in ((2,), (1, 2)):
                    leaf = torch.zeros(2, device=device, requires_grad=True)
                    made = leaf.exp().view(shape) if len(shape) > 1 else leaf.exp()
                    self._register(made, _Watched(_look_only, self, None))
                    end = (made.view(2) if len(shape) > 1 else made) * 2
                    engine = torch.autograd.Variable._execution_engine  # noqa: SLF001
                    engine.run_backward((end,), (torch.ones_like(end),), False, False, (), True, accumulate_grad=True)  # noqa: FBT003
            return self._measured if len(self._measured) == 2 else []
        finally:
            self._measured = None


class _Seen:
    """What was seen of the hooks of one function."""

    def __init__(self) -> None:
        self.looked = 0
        self.changed = 0

    @property
    def is_known(self) -> bool:
        return self.changed >= LEAST or self.looked >= MAX_LOOKED_AT


class _Watched:
    """A hook of the program, with a look at its gradient before and after."""

    def __init__(self, hook: Any, hooked: Hooked, seen: _Seen | None) -> None:
        functools.update_wrapper(self, hook)
        self._hook, self._hooked, self._seen = hook, hooked, seen

    def __call__(self, gradient: Any) -> Any:
        __tracebackhide__ = True
        before = None
        with suppress(Exception):  # gradients of a kind of their own may refuse any question
            before = self._hooked.look(gradient, self._seen)
        try:
            result = self._hook(gradient)
        except Exception as error:
            leave_no_frame(error)
            raise
        if before is not None and self._seen is not None:
            with suppress(Exception):
                self._hooked.compare(gradient, self._seen, before)
        return result


def _look_only(_: Any) -> None:
    """A hook that does nothing."""


def _held(gradient: Any) -> _Held:
    base = gradient._base  # noqa: SLF001
    if base is None or base.numel() != gradient.numel():  # a part of it is nobody else's
        return gradient._use_count(), sys.getrefcount(gradient), 0, 0  # noqa: SLF001
    return gradient._use_count(), sys.getrefcount(gradient), base._use_count(), sys.getrefcount(base)  # noqa: SLF001


def _is_shared(held: _Held, alone: list[_Held]) -> bool:
    """Whether autograd has a gradient more often than one of its own; what Python has besides is no branch."""
    plain, viewed = alone
    is_given = held[0] > plain[0] and held[1] == plain[1]
    return is_given or (held[2] > viewed[2] and held[1] == viewed[1] and held[3] == viewed[3])


def _code_of(hook: Any) -> Any:
    """The code that a hook runs: of a function, a method, a partial, or an object that can be called."""
    if isinstance(hook, _Watched):
        return None
    for _ in range(MAX_DEPTH):
        inner = hook.func if isinstance(hook, functools.partial) else getattr(hook, "__wrapped__", None)
        if inner is None:
            break
        hook = inner
    found: Any = getattr(hook, "__func__", hook)
    if not hasattr(found, "__code__") and callable(hook):
        found = type(hook).__call__
    return getattr(found, "__code__", None)
