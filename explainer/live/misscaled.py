"""Gradients of another size than was meant, which train without a word: clipped while scaled, or a backward past Accelerate.

A clip between `scaler.scale(loss).backward()` and `scaler.step(optimizer)` without `scaler.unscale_(optimizer)` clips at a
norm that is the scale's factor too small. A plain `loss.backward()` under `accelerator.accumulate()` adds up gradients that
`accelerator.backward(loss)` would have divided; an optimizer that was not prepared steps after each batch of an update. A
Trainer's own loss that leaves `num_items_in_batch` out is a mean that is added up.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Any

from .frame import behind, leave_no_frame
from .imports import after_import
from .summed import ITEMS, ignoring
from .trace.place import Place, Places, describe

CLIPPED, ACCUMULATED, STEPPED, SUMMED = "clipped", "accumulated", "stepped", "summed"
MAX_PARAMETERS = 200
DELIBERATE = 0.01  # a limit of at least this part of the scale was multiplied by it


class Misscaled:
    """Notes the first line of each kind."""

    def __init__(self, torch: Any) -> None:
        self._torch = torch
        self._places = Places(torch)
        self._clip: tuple[frozenset[int], float, Place | None] | None = None
        self._found: dict[str, dict[str, Any]] = {}
        self._accumulates: list[tuple[int, Any]] = []
        self._is_inside = 0
        self._judged: set[type] = set()

    def watch(self) -> None:
        """Look at clips, at what the scaler steps, and at backward calls under Accelerate."""
        utils = self._torch.nn.utils
        for name in ("clip_grad_norm_", "clip_grad_value_"):
            for module in (utils, utils.clip_grad):
                setattr(module, name, self._clipping(getattr(module, name)))
        scaler = getattr(self._torch.amp, "GradScaler", None)
        if scaler is not None:
            scaler.step = self._stepping(scaler.step)
        after_import("transformers.trainer", lambda module: self._watch_trainer(module.Trainer))
        after_import("accelerate.accelerator", lambda module: self._watch_accelerate(module.Accelerator))

    def before_step(self) -> None:
        """Whether torch's own step runs for a batch after which Accelerate lets no optimizer step."""
        if self._accumulates and STEPPED not in self._found:
            count, accelerator = self._accumulates[-1]
            if count > 1 and not getattr(accelerator, "sync_gradients", True):
                self._note(STEPPED, self._places.here(3), float(count))

    def at_the_end(self) -> list[dict[str, Any]]:
        """What was seen, each kind once: its factor and its line."""
        return [{"kind": kind, **one} for kind, one in self._found.items()]

    def _note(self, kind: str, place: Place | None, factor: float) -> None:
        self._found.setdefault(kind, {"factor": factor, **describe(place)})

    def _clipping(self, clip: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(clip)
        def clipped(parameters: Any, limit: Any = None, *arguments: Any, **keywords: Any) -> Any:
            __tracebackhide__ = True
            given = parameters if isinstance(parameters, self._torch.Tensor) else list(parameters)
            named = keywords.get("max_norm", keywords.get("clip_value", limit))
            if isinstance(named, (int, float)):
                self._clip = _identities(given), float(named), self._places.here(2)
            try:
                return clip(given, *(() if limit is None else (limit,)), *arguments, **keywords)
            except Exception as error:
                leave_no_frame(error)
                raise

        return clipped

    def _stepping(self, step: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(step)
        def stepped(this: Any, optimizer: Any, *arguments: Any, **keywords: Any) -> Any:
            __tracebackhide__ = True
            with suppress(Exception):  # the program must run, also where torch is one that we do not know
                self._look(this, optimizer)
            try:
                return step(this, optimizer, *arguments, **keywords)
            except Exception as error:
                leave_no_frame(error)
                raise
            finally:
                self._clip = None  # a hook that clips within the step gets gradients that the scaler has unscaled

        return stepped

    def _look(self, scaler: Any, optimizer: Any) -> None:
        """Whether what the last clip took is stepped now, and was not unscaled."""
        if self._clip is None or CLIPPED in self._found or not scaler.is_enabled():
            return
        clipped, limit, place = self._clip
        if all(id(one) not in clipped for group in optimizer.param_groups for one in group["params"]):
            return  # of another optimizer
        self._clip = None
        stage = scaler._per_optimizer_states[id(optimizer)]["stage"]  # noqa: SLF001 - torch keeps it nowhere else
        factor = float(scaler.get_scale()) if stage.name == "READY" else 1.0
        if factor > 1 and limit < DELIBERATE * factor:
            self._note(CLIPPED, place, factor)

    def _watch_trainer(self, trainer: Any) -> None:
        trainer.training_step = behind(trainer.training_step, self._saw_step)

    def _saw_step(self, arguments: tuple[Any, ...], keywords: dict[str, Any], _: Any) -> None:
        """Whether the Trainer's step has taken a mean for a part of an update's mean."""
        with suppress(Exception):  # a Trainer of a kind of its own may be anything
            this = arguments[0]
            count = int(getattr(this, "current_gradient_accumulation_steps", this.args.gradient_accumulation_steps))
            items = keywords.get(ITEMS, arguments[3] if len(arguments) > 3 else None)
            if type(this) in self._judged or SUMMED in self._found or count < 2 or items is None:
                return
            self._judged.add(type(this))
            code = ignoring(this)
            if code is not None:
                place = {"file": code.co_filename, "line": code.co_firstlineno, "function": code.co_name}
                self._found[SUMMED] = {"factor": float(count), **place}

    def _watch_accelerate(self, accelerator: Any) -> None:
        accumulate, backward, plain = accelerator.accumulate, accelerator.backward, self._torch.autograd.backward

        @functools.wraps(accumulate)
        def accumulating(this: Any, *models: Any, **keywords: Any) -> Any:
            return _Counted(accumulate(this, *models, **keywords), self._accumulates, this)

        @functools.wraps(backward)
        def inside(this: Any, *arguments: Any, **keywords: Any) -> Any:
            __tracebackhide__ = True
            self._is_inside += 1
            try:
                return backward(this, *arguments, **keywords)
            except Exception as error:
                leave_no_frame(error)
                raise
            finally:
                self._is_inside -= 1

        @functools.wraps(plain)
        def seen(*arguments: Any, **keywords: Any) -> Any:
            __tracebackhide__ = True
            is_past = bool(self._accumulates) and not self._is_inside and self._accumulates[-1][0] > 1
            if is_past and not _is_divided(arguments[0] if arguments else None):
                self._note(ACCUMULATED, self._places.here(2), float(self._accumulates[-1][0]))
            try:
                return plain(*arguments, **keywords)
            except Exception as error:
                leave_no_frame(error)
                raise

        accelerator.accumulate, accelerator.backward = accumulating, inside
        self._torch.autograd.backward = seen


class _Counted:
    """`with accelerator.accumulate(model):`, with the number of batches that an update takes on a stack."""

    def __init__(self, context: Any, stack: list[tuple[int, Any]], accelerator: Any) -> None:
        self._context, self._stack, self._accelerator = context, stack, accelerator
        self._count = int(getattr(accelerator, "gradient_accumulation_steps", 1) or 1)

    def __enter__(self) -> Any:
        entered = self._context.__enter__()
        self._stack.append((self._count, self._accelerator))
        return entered

    def __exit__(self, *error: object) -> Any:
        self._stack.pop()
        return self._context.__exit__(*error)


def _is_divided(loss: Any) -> bool:
    """Whether the program divides a loss by itself: `(loss / 4).backward()`."""
    node = getattr(loss, "grad_fn", None)
    return node is not None and node.name().startswith(("Div", "Mul"))


def _identities(parameters: Any) -> frozenset[int]:
    listed: Iterable[Any] = parameters if isinstance(parameters, list) else [parameters]
    return frozenset(id(one) for one, _ in zip(listed, range(MAX_PARAMETERS), strict=False))
