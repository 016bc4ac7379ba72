"""Puts a tracer into a process: into its threads, its backward passes, its checkpoints, its optimizer steps."""

from __future__ import annotations

import os
import threading
from typing import Any

from .tracer import Tracer


def arm(torch: Any, *, finite: bool = True) -> Tracer:
    """Trace everything that this process does with torch from now on, to its end."""
    tracer = Tracer(torch, finite=finite)
    _watch_engine(torch, tracer)
    _watch_threads(tracer)
    from torch.utils import checkpoint

    tracer.replays.watch(checkpoint)
    _watch_steps(torch, tracer)
    tracer.__enter__()
    os.register_at_fork(after_in_child=lambda: _leave(torch, tracer))
    return tracer


def _leave(torch: Any, tracer: Tracer) -> None:
    """A forked child is a DataLoader's worker far more often than a trainer: it goes on untraced."""
    if torch._C._len_torch_function_stack():  # noqa: SLF001
        tracer.__exit__(None, None, None)


def _watch_steps(torch: Any, tracer: Tracer) -> None:
    """Judge the gradients of each step; those that GradScaler leaves out overflowed on purpose."""
    from torch.optim import optimizer as module

    module.register_optimizer_step_pre_hook(tracer.before_step)
    module.register_optimizer_step_post_hook(lambda optimizer, *_: tracer.after_step(optimizer))
    update = torch.amp.GradScaler.update

    def updated(self: Any, *args: Any, **keywords: Any) -> Any:
        tracer.forget()
        return update(self, *args, **keywords)

    torch.amp.GradScaler.update = updated


def _watch_engine(torch: Any, tracer: Tracer) -> None:
    """See each backward, and what it runs again: torch takes modes away while it is inside a call of its own."""
    engine = torch.autograd._engine_run_backward  # noqa: SLF001 - where backward and grad meet

    def run(roots: Any, *args: Any, **keywords: Any) -> Any:
        __tracebackhide__ = True
        tracer.note_backward(roots, args)
        with tracer.inside():
            return engine(roots, *args, **keywords)

    torch.autograd._engine_run_backward = run  # noqa: SLF001


def _watch_threads(tracer: Tracer) -> None:
    """Modes belong to a thread: enter new ones too."""
    run = threading.Thread.run

    def traced(self: threading.Thread) -> None:
        with tracer:
            run(self)

    threading.Thread.run = traced  # type: ignore[method-assign]
