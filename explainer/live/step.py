"""Counts optimizer steps and, where asked, looks at losses and gradients and stops the program after enough of them.

Global optimizer hooks are there from torch 2.0 on; they fire for every optimizer, fused and foreach ones included, and not
for a step that GradScaler skips.
"""

from __future__ import annotations

import math
import os
import sys
import time
from typing import Any

from .frame import leave_no_frame

MAX_STEPS_KEPT = 200
LOOKS = 3
MAX_PARAMETERS = 20_000


def watch(recorder: Any, options: dict[str, Any]) -> None:
    """Register the hooks."""
    from torch.optim import optimizer as module

    watcher = _Watcher(recorder, options)
    module.register_optimizer_step_post_hook(watcher.after_step)
    module.register_optimizer_step_pre_hook(watcher.before_step)
    if options["mode"] == "verify":
        _watch_backward(watcher)
    else:
        recorder.at_end.append(watcher.look_at_the_end)


def _watch_backward(watcher: _Watcher) -> None:
    """Note the loss of each backward."""
    import torch

    backward = torch.Tensor.backward

    def noted(self: Any, *arguments: Any, **keywords: Any) -> Any:
        __tracebackhide__ = True
        watcher.saw_loss(self)
        try:
            return backward(self, *arguments, **keywords)
        except Exception as error:
            leave_no_frame(error)
            raise

    noted.__doc__ = backward.__doc__
    torch.Tensor.backward = noted


class _Watcher:
    """What is known of the optimizers of this process, by the order in which they first stepped."""

    def __init__(self, recorder: Any, options: dict[str, Any]) -> None:
        self._recorder = recorder
        self._enough: int | None = options.get("steps") if options["mode"] != "run" else None
        self._past: dict[str, int] = options.get("past") or {}
        self._order: dict[int, str] = {}
        self._keep: list[Any] = []
        self._names: dict[int, str] | None = None
        self._parameters: dict[str, dict[str, Any]] = {}
        recorder.parts["steps"] = {}
        self._steps: dict[str, int] = recorder.parts["steps"]
        self._rows: list[dict[str, Any]] = []
        self._losses: list[float] = []
        self._began = time.monotonic()
        recorder.parts.update(rows=self._rows, losses=self._losses, parameters=self._parameters)

    def _key(self, optimizer: Any) -> str:
        """A name for an optimizer: its place in the order of first steps, and its class."""
        if id(optimizer) not in self._order:
            self._keep.append(optimizer)
            self._order[id(optimizer)] = f"{len(self._order)} {type(optimizer).__name__}"
        return self._order[id(optimizer)]

    def saw_loss(self, loss: Any) -> None:
        """Keep the value of a loss; the mean where it has several."""
        if len(self._losses) < MAX_STEPS_KEPT:
            self._losses.append(float(loss.detach().float().mean()))

    def before_step(self, optimizer: Any, *_: Any) -> None:
        """Look at the gradients that the step is about to use."""
        key = self._key(optimizer)
        if len(self._rows) >= MAX_STEPS_KEPT:
            return
        if self._enough is None and self._steps.get(key, 0) >= LOOKS:
            return  # a run that is not verified is only looked at where it begins, and at its end
        names = self._named() if self._enough is not None else {}
        square, finite, given, zero = 0.0, True, 0, 0
        owned = [parameter for group in optimizer.param_groups for parameter in group["params"]]
        for index, parameter in enumerate(owned):
            seen = self._seen(names.get(id(parameter), f"{key}[{index}]"), parameter, key)
            gradient = parameter.grad
            if gradient is None:
                continue
            values = gradient.coalesce().values() if gradient.is_sparse else gradient
            values = values.to_local() if hasattr(values, "to_local") else values
            norm = float(values.detach().float().norm())
            given += 1
            zero += norm == 0.0
            finite &= math.isfinite(norm)
            square += norm * norm
            seen["given"] += 1
            seen["moved"] += norm != 0.0
            seen["bad"] += not math.isfinite(norm)
        self._rows.append(
            {"optimizer": key, "step": self._steps.get(key, 0), "parameters": len(owned), "given": given, "zero": zero,
             "finite": finite, "norm": math.sqrt(square) if finite else None}
        )  # fmt: skip

    def _seen(self, name: str, parameter: Any, key: str) -> dict[str, Any]:
        if name not in self._parameters and len(self._parameters) < MAX_PARAMETERS:
            self._parameters[name] = {
                "optimizer": key, "trains": bool(parameter.requires_grad), "shape": list(parameter.shape),
                "dtype": str(parameter.dtype), "device": str(parameter.device), "given": 0, "moved": 0, "bad": 0,
            }  # fmt: skip
        return self._parameters.get(name) or {"given": 0, "moved": 0, "bad": 0}

    def _named(self) -> dict[int, str]:
        """The names of parameters: of the modules that no other module holds."""
        if self._names is None:
            import gc

            import torch

            modules = [one for one in gc.get_objects() if issubclass(type(one), torch.nn.Module)]  # a proxy may be dead
            inner = {id(child) for one in modules for child in one.children()}
            self._names = {}
            for one in sorted(
                (one for one in modules if id(one) not in inner), key=lambda one: -sum(1 for _ in one.modules())
            ):
                for name, parameter in one.named_parameters():
                    self._names.setdefault(id(parameter), f"{type(one).__name__}.{name}")
        return self._names

    def look_at_the_end(self) -> None:
        """Whether the parameters that were trained are finite now: one question to the device for each optimizer."""
        import torch

        for optimizer in self._keep:
            owned = [one.detach() for group in optimizer.param_groups for one in group["params"]]
            floating = [
                one for one in owned if one.is_floating_point() and not one.is_meta and type(one).__name__ != "DTensor"
            ]
            if floating and not bool(torch.stack([one.float().sum().isfinite().cpu() for one in floating]).all()):
                self._recorder.parts.setdefault("not_finite", []).append(self._key(optimizer))

    def after_step(self, optimizer: Any, *_: Any) -> None:
        """Count, and end the program where it has made enough."""
        key = self._key(optimizer)
        self._steps[key] = self._steps.get(key, 0) + 1
        if self._enough is not None and self._is_enough():
            self._recorder.parts["stopped"] = True
            self._recorder.look_at_the_end()
            self._recorder.parts["step_seconds"] = (time.monotonic() - self._began) / max(sum(self._steps.values()), 1)
            self._recorder.write()
            _leave()

    def _is_enough(self) -> bool:
        """Each optimizer has made its steps, and each that stepped before the failure one more than it had then."""
        assert self._enough is not None
        if min(self._steps.values()) < self._enough:
            return False
        return all(self._steps.get(key, 0) > before for key, before in self._past.items())


def _leave() -> None:
    """End the process as one that has done its work; nothing of it runs on."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError):
            continue
    os._exit(0)
