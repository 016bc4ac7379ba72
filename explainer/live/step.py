"""Counts optimizer steps and, where asked, looks at losses and gradients and stops the program after enough of them.

Global optimizer hooks are there from torch 2.0 on; they fire for every optimizer, fused and foreach ones included, and not
for a step that GradScaler skips, but for one that a fused optimizer makes void.
"""

from __future__ import annotations

import math
import os
import statistics
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

from .dropped import Dropped
from .early_clip import EarlyClips
from .frame import leave_no_frame
from .frozen_adapter import FrozenAdapters
from .gradient import MAX_WHOLE, norms_of, summarise, values_of
from .hooked import Hooked
from .idle_adapter import IdleAdapters
from .idle_schedule import IdleSchedules
from .machine import Usage, is_capturing, look_at_machine, try_bf16, wait_for_devices
from .misscaled import Misscaled
from .name import Names
from .narrow_reduction import NarrowReductions
from .refused import Refused
from .renewed import Renewed
from .segment import Segments
from .skipped import Skipped
from .stuck import Stuck
from .switched_adapter import SwitchedAdapters
from .unfrozen import Unfrozen
from .unloaded import Unloaded
from .unowned import Unowned
from .unscaled import Unscaled
from .unsynced import Unsynced

MAX_STEPS_KEPT = 200
LOOKS = 3
TELLING = 0.1  # seconds between two steps that are told of and were not looked at
LATER = frozenset(base * 10**power for power in range(1, 9) for base in (1, 3))
MAX_PARAMETERS = 20_000
BACKWARD = "backward"  # in the place of an optimizer's name


def watch(recorder: Any, options: dict[str, Any]) -> None:
    """Register the hooks."""
    from torch.optim import optimizer as module

    watcher = Verifier(recorder, options) if options["mode"] == "verify" else Watcher(recorder, options)
    # First: a release of a library that one of the others does not know keeps no step from being seen.
    module.register_optimizer_step_post_hook(watcher.after_step)
    module.register_optimizer_step_pre_hook(watcher.before_step)
    watcher.unowned.note_makers()
    watcher.idle_schedules.watch()
    watcher.skipped.watch()
    watcher.misscaled.watch()
    watcher.early_clips.watch()
    watcher.unscaled.watch()
    watcher.hooked.watch()
    watcher.unloaded.watch()
    watcher.refused.watch()
    watcher.dropped.watch()
    watcher.idle_adapters.watch()
    watcher.frozen_adapters.watch()
    watcher.switched_adapters.watch()
    watcher.segments.watch()
    watcher.narrow_reductions.watch()
    watcher.unsynced.watch()


class Watcher:
    """What is known of the optimizers of this process, by the order in which they first stepped."""

    def __init__(self, recorder: Any, options: dict[str, Any]) -> None:
        self._recorder = recorder
        self._enough: int | None = options.get("steps") if options["mode"] != "run" else None
        self._past: dict[str, int] = options.get("past") or {}
        self._names = Names()
        self._order: dict[int, str] = {}
        self._keep: list[Any] = []
        self._parameters: dict[str, dict[str, Any]] = {}
        self._steps: dict[str, int] = {}
        self._rows: list[dict[str, Any]] = []
        self._losses: list[float] = []
        self._told = 0.0
        self._run_on: float = options.get("run_on") or 0.0
        self._goes_on = False
        recorder.parts.update(steps=self._steps, rows=self._rows, losses=self._losses, parameters=self._parameters)
        recorder.steps_of = self._made
        recorder.at_end += [
            self.look_at_the_end,
            self.tell_unowned,
            self._tell_silent,
        ]
        self.skipped = Skipped(self._key, lambda key: self._steps.get(key, 0))
        self.unowned = Unowned(sys.modules["torch"])
        self.idle_schedules = IdleSchedules(sys.modules["torch"], self._made)
        self.misscaled = Misscaled(sys.modules["torch"])
        self.early_clips = EarlyClips(sys.modules["torch"])
        recorder.parts["early_clips"] = self.early_clips.told
        self.renewed = Renewed(sys.modules["torch"])
        recorder.parts["renewed"] = self.renewed.told
        self.unscaled = Unscaled(sys.modules["torch"], self.unowned.made)
        self.hooked = Hooked(sys.modules["torch"])
        self.unloaded = Unloaded(sys.modules["torch"])
        self.refused = Refused(sys.modules["torch"])
        self.dropped = Dropped()
        self.idle_adapters = IdleAdapters()
        self.frozen_adapters = FrozenAdapters()
        self.switched_adapters = SwitchedAdapters(self.idle_adapters.choose)
        self.segments = Segments()
        self.stuck = Stuck(self._key, lambda key: self._steps.get(key, 0))
        self.narrow_reductions = NarrowReductions(sys.modules["torch"], lambda: bool(self.skipped.used()))
        self.unfrozen = Unfrozen(self._key, lambda key: self._steps.get(key, 0))
        self.unsynced = Unsynced(sys.modules["torch"])

    def _key(self, optimizer: Any) -> str:
        """A name for an optimizer: its place in the order of first steps, and its class."""
        if id(optimizer) not in self._order:
            self._keep.append(optimizer)
            self._order[id(optimizer)] = f"{len(self._order)} {type(optimizer).__name__}"
        return self._order[id(optimizer)]

    def _made(self, optimizer: Any) -> int:
        """How many steps an optimizer has made."""
        return self._steps.get(self._order.get(id(optimizer), ""), 0)

    def before_step(self, optimizer: Any, arguments: Any, keywords: dict[str, Any]) -> Any:
        """Look at the gradients that the step is about to use; one that is given a closure makes them in there."""
        if is_capturing():
            return None
        closure = keywords.get("closure", arguments[1] if len(arguments) > 1 else None)
        if not callable(closure):
            self._see(optimizer)
            return None
        looking = _looking(closure, lambda: self._see(optimizer))
        if "closure" in keywords:
            return arguments, {**keywords, "closure": looking}
        return (arguments[0], looking, *arguments[2:]), keywords

    def _see(self, optimizer: Any) -> None:
        self.unowned.look(self._steps.get(self._key(optimizer), 0))
        self.idle_schedules.before_step(optimizer)
        self.misscaled.before_step()
        self.early_clips.before_step(optimizer)
        self.renewed.before_step(optimizer)
        self.hooked.before_step()
        self.unloaded.before_step()
        self.refused.before_step(optimizer)
        self.idle_adapters.before_step()
        self.frozen_adapters.before_step(optimizer)
        self.switched_adapters.before_step(optimizer)
        self.segments.before_step(optimizer)
        self.stuck.before_step(optimizer)
        self.unfrozen.before_step(optimizer)
        self.unsynced.before_step(optimizer)
        self.narrow_reductions.before_step()
        self._look(optimizer)

    def _look(self, optimizer: Any) -> None:
        """A run that is not to be ended is looked at where it begins, ever more seldom after that, and at its end."""
        made = self._steps.get(self._key(optimizer), 0)
        if (made < LOOKS or made in LATER or self._enough is not None) and not is_void(optimizer):
            self._look_at_gradients(optimizer)

    def _look_at_gradients(self, optimizer: Any) -> dict[str, Any] | None:
        """One row for the step that is to come: how many gradients there are, and their norm."""
        key = self._key(optimizer)
        if len(self._rows) >= MAX_STEPS_KEPT:
            return None
        factor = _unscaling(optimizer)
        square, finite, given, zero = 0.0, True, 0, 0
        owned, looked = parameters_of(optimizer), []
        for index, parameter in enumerate(owned):
            seen = self._seen(self._name(parameter, index, key), parameter, key)
            if parameter.grad is not None:
                looked.append((seen, values_of(parameter.grad)))
        for (seen, _), size in zip(looked, norms_of([values for _, values in looked]), strict=True):
            norm = factor * size
            given += 1
            zero += norm == 0.0
            finite &= math.isfinite(norm)
            square += norm * norm
            seen["given"] += 1
            seen["moved"] += norm != 0.0
            seen["bad"] += not math.isfinite(norm)
            seen["norm"] = norm if math.isfinite(norm) else None
        row = {"optimizer": key, "step": self._steps.get(key, 0), "parameters": len(owned), "given": given, "zero": zero,
               "norm": math.sqrt(square) if finite else None}  # fmt: skip
        self._rows.append(row)
        return row

    def _name(self, parameter: Any, index: int, key: str) -> str:
        named = self._names.of(parameter) if self._enough is not None else None
        return named or f"{key}[{index}]"

    def _seen(self, name: str, parameter: Any, key: str) -> dict[str, Any]:
        if name not in self._parameters and len(self._parameters) < MAX_PARAMETERS:
            self._parameters[name] = {
                "optimizer": key, "trains": bool(parameter.requires_grad), "shape": list(parameter.shape),
                "dtype": str(parameter.dtype), "device": str(parameter.device), "given": 0, "moved": 0, "bad": 0, "norm": None,
            }  # fmt: skip
        return self._parameters.get(name) or {"given": 0, "moved": 0, "bad": 0}

    def tell_unowned(self) -> None:
        """The parameters that had gradients for no optimizer."""
        unowned = self.unowned.at_the_end(self._keep)
        if unowned:
            self._recorder.parts["unowned"] = unowned

    def _tell_silent(self) -> None:
        """What went wrong without a word: steps left out, gradients of another size, loads that were refused or passed over."""
        for name in (
            "idle_schedules",
            "skipped",
            "misscaled",
            "unscaled",
            "hooked",
            "unloaded",
            "refused",
            "dropped",
            "idle_adapters",
            "frozen_adapters",
            "switched_adapters",
            "stuck",
            "unfrozen",
            "unsynced",
            "narrow_reductions",
        ):
            if told := getattr(self, name).at_the_end():
                self._recorder.parts[name] = told

    def look_at_the_end(self) -> None:
        """Whether the parameters that were trained are finite now: one question to the device for each optimizer."""
        import torch

        self._recorder.parts.setdefault("uses", self.skipped.used() + self.segments.used())
        if self._steps and (last := self._recorder.last_losses.at_the_end()):
            self._recorder.parts["last_loss"] = last
        elif self._steps and (count := self._recorder.last_losses.not_a_number()):
            self._recorder.parts["nan_losses"] = count
        for optimizer in self._keep:
            owned = [one.detach() for one in parameters_of(optimizer)]
            floating = [
                one for one in owned if one.is_floating_point() and not one.is_meta and type(one).__name__ != "DTensor"
            ]
            if floating and not bool(torch.stack([one.float().sum().isfinite().cpu() for one in floating]).all()):
                self._recorder.parts.setdefault("not_finite", []).append(self._key(optimizer))

    def after_step(self, optimizer: Any, *_: Any) -> None:
        """Count, and end the program where it has made enough."""
        self._count(optimizer)
        self._tell(self._key(optimizer))
        self._end_when_enough()

    def _count(self, optimizer: Any) -> None:
        key = self._key(optimizer)
        self._steps[key] = self._steps.get(key, 0) + 1
        self._recorder.last_losses.stepped()
        self.early_clips.after_step(optimizer)

    def _tell(self, key: str) -> None:
        """Say that a step was made: each one that was looked at, of the others not more than ten a second."""
        row = next((one for one in reversed(self._rows) if one["optimizer"] == key), None)
        is_seen = row is not None and row["step"] == self._steps[key] - 1
        now = time.monotonic()
        if not is_seen and now - self._told < TELLING:
            return
        self._told = now
        seen = {name: row.get(name) for name in ("norm", "loss", "seconds")} if row is not None and is_seen else {}
        memory = self._recorder.parts.get("machine", {}).get("memory")
        self._recorder.tell({"optimizer": key, "step": self._steps[key], "is_seen": is_seen, "memory": memory, **seen})

    def _end_when_enough(self) -> None:
        if self._enough is None or self._goes_on or not self._is_enough(self._enough):
            return
        self._recorder.parts["stopped"] = True
        self._recorder.look_at_the_end()
        self._recorder.write()
        # A rank that left by the clock would leave the others waiting for it.
        if not self._run_on or self._recorder.place.rank is not None:
            _leave()
        self._go_on()

    def _go_on(self) -> None:
        """Let the program go on for a while: it may fail at the end of its epoch, or where it evaluates.

        What is written stands for a run that is ended by the clock; one that ends or fails before that is written anew.
        """
        self._goes_on = True
        self._recorder.parts["stopped"] = False
        ending = threading.Timer(self._run_on, _leave)
        ending.daemon = True
        ending.start()

    def _is_enough(self, enough: int) -> bool:
        """Each optimizer has made its steps, as many as before the failure, and one of them a step more.

        Not each one more: an optimizer of an earlier stage is done with.
        """
        if min(self._steps.values()) < enough:
            return False
        is_there = all(self._steps.get(key, 0) >= before for key, before in self._past.items())
        return is_there and sum(self._steps.values()) > sum(self._past.values())


class Verifier(Watcher):
    """Looks at every step, keeps the first one's gradients, and ends the program where it has made enough."""

    def __init__(self, recorder: Any, options: dict[str, Any]) -> None:
        super().__init__(recorder, options)
        recorder.at_end.remove(self.look_at_the_end)
        self._usage = Usage()
        self._usage.watch()
        self._since: list[tuple[int, float]] = []
        self._backwards = 0
        self._left_out: list[int] = []
        self._first: dict[str, dict[str, Any]] = {}
        self._whole = MAX_WHOLE
        self._ended: dict[str, float] = {}
        self._looked = 0.0
        self._bf16: bool | None = None
        self._wants_backward = bool(options.get("first_backward"))
        recorder.parts.update(first=self._first, left_out=self._left_out)
        recorder.at_end.append(self._leave_out)
        self._watch_backward()

    def _watch_backward(self) -> None:
        """Note the loss of each backward."""
        import torch

        backward = torch.Tensor.backward

        def noted(loss: Any, *arguments: Any, **keywords: Any) -> Any:
            __tracebackhide__ = True
            self._saw_loss(loss)
            try:
                told = backward(loss, *arguments, **keywords)
            except Exception as error:
                leave_no_frame(error)
                raise
            self._saw_backward()
            return told

        noted.__doc__ = backward.__doc__
        torch.Tensor.backward = noted

    def _saw_loss(self, loss: Any) -> None:
        """Keep the value of a loss; the mean where it has several. One of a capture has none yet."""
        if is_capturing():
            return
        if len(self._losses) < MAX_STEPS_KEPT or len(self._since) < MAX_STEPS_KEPT:
            value = float(loss.detach().float().mean())
            self._since.append((self._backwards, value))
            if len(self._losses) < MAX_STEPS_KEPT:
                self._losses.append(value)
        self._backwards += 1

    def _saw_backward(self) -> None:
        """Keep the gradients that the first backward leaves, as if they were those of an optimizer's first step."""
        if not self._wants_backward or is_capturing():
            return
        self._wants_backward = False
        owned = {id(one): one for optimizer in self.unowned.made() for one in parameters_of(optimizer)}
        gradients = self._summed_up(list(owned.values()), BACKWARD, factor=1.0)
        self._first[BACKWARD] = {"losses": self._losses[:1], "gradients": gradients}

    def _leave_out(self) -> None:
        """Forget losses that are not finite: the program made no step with their gradients."""
        if self._steps:
            self._left_out += [number for number, value in self._since if not math.isfinite(value)]
            self._since = [one for one in self._since if math.isfinite(one[1])]

    def _look(self, optimizer: Any) -> None:
        key = self._key(optimizer)
        if is_void(optimizer):
            self._steps.setdefault(key, 0)
            self._leave_out()
            self._since.clear()
            return
        wait_for_devices()
        began = time.monotonic()
        is_first = self._steps.setdefault(key, 0) == 0
        row = self._look_at_gradients(optimizer)
        # Finite gradients behind a later, finite loss: what came before was thrown away, by the program or a GradScaler.
        if row is not None and row["norm"] is not None and self._since and math.isfinite(self._since[-1][1]):
            self._leave_out()
        losses = [value for _, value in self._since]
        if is_first:
            self._first[key] = {"losses": losses, "gradients": list(self._summaries(optimizer, key))}
        if row is not None:
            row["loss"] = sum(losses) / len(losses) if losses else None
        self._since.clear()
        wait_for_devices()
        self._looked += time.monotonic() - began

    def _summaries(self, optimizer: Any, key: str) -> list[dict[str, Any]]:
        """The gradients of a first step, whole ones as long as there is room for them."""
        return self._summed_up(parameters_of(optimizer), key, factor=_unscaling(optimizer))

    def _summed_up(self, parameters: list[Any], key: str, *, factor: float) -> list[dict[str, Any]]:
        told = []
        for index, parameter in enumerate(parameters[:MAX_PARAMETERS]):
            name = self._name(parameter, index, key)
            try:
                one = summarise(name, parameter.grad, parameter.shape, factor=factor, whole=self._whole)
            except Exception as fault:  # noqa: BLE001 - tensors of a kind of their own may refuse any operation
                one = {
                    "name": name,
                    "shape": list(parameter.shape),
                    "why_not": f"{type(fault).__name__}: {fault}"[:200],
                }
            self._whole -= len(one.get("values", ()))
            told.append(one)
        return told

    def after_step(self, optimizer: Any, *_: Any) -> None:
        """Count a step that was made, with its time and what it ran on."""
        if is_void(optimizer):
            return
        self._count(optimizer)
        wait_for_devices()
        self._clock(self._key(optimizer))
        began = time.monotonic()
        self._describe()
        self._looked += time.monotonic() - began
        self._tell(self._key(optimizer))
        self._end_when_enough()

    def _clock(self, key: str) -> None:
        """The time since this optimizer's last step, without that of our looking."""
        now = time.monotonic() - self._looked
        row = next((one for one in reversed(self._rows) if one["optimizer"] == key), None)
        if key in self._ended and row is not None:
            row["seconds"] = now - self._ended[key]
        self._ended[key] = now
        first = next(iter(self._ended))
        seconds = [one["seconds"] for one in self._rows if one["optimizer"] == first and "seconds" in one]
        if seconds:
            self._recorder.parts["step_seconds"] = statistics.median(seconds)

    def _describe(self) -> None:
        devices = {one["device"] for one in self._parameters.values()}
        machine = look_at_machine(devices)
        if self._bf16 is None:
            self._bf16 = try_bf16(devices)
        self._recorder.parts.update(
            machine={**machine, "bf16": self._bf16},
            dtypes=sorted({one["dtype"].removeprefix("torch.") for one in self._parameters.values()}),
            autocast=sorted(self._usage.autocast),
            uses=self._usage.names() + self.skipped.used() + self.segments.used(),
        )
        rank = _rank()
        if rank is not None:
            self._recorder.parts["rank"] = rank


def _looking(closure: Callable[..., Any], look: Callable[[], None]) -> Callable[..., Any]:
    """A closure that looks at the gradients once it has made them; LBFGS calls it many times, the first counts."""
    looked = False

    def evaluated(*arguments: Any, **keywords: Any) -> Any:
        nonlocal looked
        loss = closure(*arguments, **keywords)
        if not looked:
            looked = True
            look()
        return loss

    return evaluated


def parameters_of(optimizer: Any) -> list[Any]:
    """The parameters of all its groups, each once: a list may name one twice."""
    return list({id(one): one for group in optimizer.param_groups for one in group["params"]}.values())


def is_void(optimizer: Any) -> bool:
    """Whether GradScaler has told a fused optimizer, which takes no answer from the CPU, to make this step void."""
    found: Any = getattr(optimizer, "found_inf", None)
    return hasattr(found, "item") and bool(found.item())


def _unscaling(optimizer: Any) -> float:
    """What a gradient is to be multiplied with where a fused optimizer takes the loss scale off by itself."""
    scale: Any = getattr(optimizer, "grad_scale", None)
    return 1 / float(scale.item()) if hasattr(scale, "item") else 1.0


def _rank() -> str | None:
    """The process's number in torch.distributed, as `mp.spawn` sets no variable."""
    import torch

    group = torch.distributed
    return str(group.get_rank()) if group.is_available() and group.is_initialized() else None


def _leave() -> None:
    """End the process as one that has done its work; nothing of it runs on."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError):
            continue
    os._exit(0)
