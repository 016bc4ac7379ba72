"""A Trainer's own `compute_loss` that leaves `num_items_in_batch` out: the means of an update's batches are added up, and not averaged.

Since a model takes `num_items_in_batch` itself, the Trainer no longer divides the loss by the batches of an update.
"""

from __future__ import annotations

import dis
from types import CodeType
from typing import Any

ITEMS = "num_items_in_batch"
_STEPS = ("gradient_accumulation_steps", "current_gradient_accumulation_steps")


def ignoring(trainer: Any) -> CodeType | None:
    """The code of the program's `compute_loss` that sums means, where an update takes several batches; None where all is in order."""
    if not getattr(trainer, "model_accepts_loss_kwargs", False):
        return None
    if (
        getattr(trainer, "compute_loss_func", None) is not None
        or getattr(trainer, "loss_is_scaled_for_ga", None) is not None
    ):
        return None
    own = next((vars(one)["compute_loss"] for one in type(trainer).__mro__ if "compute_loss" in vars(one)), None)
    code = getattr(own, "__code__", None)
    if code is None or "site-packages" in code.co_filename or _uses_items(code):
        return None
    return code if isinstance(code, CodeType) else None


def _uses_items(code: CodeType) -> bool:
    """Whether a function reads the number of items, hands on what else it is given, or divides by the batches by itself."""
    passed_on = (
        code.co_varnames[code.co_argcount + code.co_kwonlyargcount :][: 2 if code.co_flags & 4 else 1]
        if code.co_flags & 8
        else ()
    )
    wanted = {ITEMS, *passed_on}
    for one in dis.get_instructions(code):
        named = one.argval if isinstance(one.argval, tuple) else (one.argval,)
        if one.opname.startswith("LOAD") and wanted & set(filter(_is_text, named)):
            return True
    return any(name in _STEPS for name in code.co_names)


def _is_text(value: Any) -> bool:
    return isinstance(value, str)
