"""Puts a tracer into a process: into its threads, its backward passes, its checkpoints, its optimizer steps."""

from __future__ import annotations

import functools
import os
import sys
import threading
from contextlib import ExitStack
from typing import Any

from .bound import replace_bound
from .tracer import Tracer


def arm(torch: Any, *, finite: bool = True, late: bool = False) -> tuple[Tracer, ExitStack]:
    """Trace everything that this process does with torch from now on; closing the stack takes it all out again.

    With `late` the program runs already, and may have bound names of torch to its own.
    """
    tracer, undo = Tracer(torch, finite=finite), ExitStack()
    _watch_engine(torch, tracer, undo)
    _watch_threads(tracer, undo)
    _watch_steps(torch, tracer, undo)
    tracer.saved_constants.watch(undo)
    from torch.utils import checkpoint

    _replace(torch, "from_numpy", tracer.watched(torch.from_numpy), undo)  # which tells no mode of itself
    for name in ("as_tensor", "asarray"):
        _replace(torch, name, tracer.sharing(getattr(torch, name)), undo)
    leaf = tracer.new_leaves.watched(torch.nn.Parameter.__new__)
    _replace(torch.nn.Parameter, "__new__", staticmethod(leaf), undo)
    plain, watched = checkpoint.checkpoint, tracer.replays.watched(checkpoint.checkpoint)
    _replace(checkpoint, "checkpoint", watched, undo)
    if late:
        replace_bound(plain, watched, undo)
    numpy = sys.modules.get("numpy")  # which torch itself imports where it is installed
    if finite and numpy is not None:
        tracer.silenced.watch(numpy, undo)
    undo.enter_context(tracer)
    os.register_at_fork(after_in_child=lambda: _in_child(torch, tracer))
    return tracer, undo


def _replace(owner: Any, name: str, new: Any, undo: ExitStack) -> None:
    undo.callback(setattr, owner, name, vars(owner).get(name, getattr(owner, name)))
    setattr(owner, name, new)


def _in_child(torch: Any, tracer: Tracer) -> None:
    """A forked child trains as its parent would; a DataLoader's worker, which multiprocessing knows a moment later, goes on untraced."""
    util = sys.modules.get("multiprocessing.util")
    if util is not None:
        util.register_after_fork(tracer, lambda one: _leave(torch, one) if _is_worker() else None)


def _is_worker() -> bool:
    process = sys.modules["multiprocessing.process"].current_process()
    target = getattr(process, "_target", None)
    return (getattr(target, "__module__", None) or "").startswith("torch.utils.data")


def _leave(torch: Any, tracer: Tracer) -> None:
    stack = torch.overrides._get_current_function_mode_stack()  # noqa: SLF001
    if stack and stack[-1] is tracer:
        tracer.__exit__(None, None, None)


def _watch_steps(torch: Any, tracer: Tracer, undo: ExitStack) -> None:
    """Judge the gradients of each step; those that GradScaler leaves out overflowed on purpose."""
    from torch.optim import optimizer as module

    before = module.register_optimizer_step_pre_hook(tracer.before_step)
    after = module.register_optimizer_step_post_hook(lambda optimizer, *_: tracer.after_step(optimizer))
    undo.callback(before.remove)
    undo.callback(after.remove)
    for owner, saw in ((torch.optim.Optimizer, tracer.cleared.saw_clear), (torch.nn.Module, tracer.cleared.saw_module)):
        _replace(owner, "zero_grad", tracer.clearing(owner.zero_grad, saw), undo)
    make, update = torch.optim.Optimizer.__init__, torch.amp.GradScaler.update

    @functools.wraps(make)
    def made(self: Any, *args: Any, **keywords: Any) -> None:
        tracer.has_optimizer = True
        tracer.starved.saw_optimizer(self)
        make(self, *args, **keywords)

    def updated(self: Any, *args: Any, **keywords: Any) -> Any:
        tracer.forget()
        tracer.cleared.saw_read()
        return update(self, *args, **keywords)

    _replace(torch.amp.GradScaler, "update", updated, undo)
    _replace(torch.optim.Optimizer, "__init__", made, undo)


def _watch_engine(torch: Any, tracer: Tracer, undo: ExitStack) -> None:
    """See each backward, and what it runs again: torch takes modes away while it is inside a call of its own."""
    engine = torch.autograd._engine_run_backward  # noqa: SLF001 - where backward and grad meet

    def run(roots: Any, *args: Any, **keywords: Any) -> Any:
        __tracebackhide__ = True
        tracer.note_backward(roots, args)
        with tracer.inside():
            return engine(roots, *args, **keywords)

    _replace(torch.autograd, "_engine_run_backward", run, undo)


def _watch_threads(tracer: Tracer, undo: ExitStack) -> None:
    """Modes belong to a thread: enter new ones too."""
    run = threading.Thread.run

    def traced(self: threading.Thread) -> None:
        with tracer:
            run(self)

    _replace(threading.Thread, "run", traced, undo)
