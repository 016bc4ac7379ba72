"""What is known of an optimizer that a GradScaler cannot step, since none of its parameters has a gradient."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from types import FrameType
from typing import Any

FROZEN, UNUSED, ELSEWHERE = "frozen", "unused", "elsewhere"


def idle_optimizer(
    frames: Iterable[FrameType], roots: Iterable[Any], steps_of: Callable[[Any], int] | None
) -> dict[str, Any] | None:
    """The optimizer that `GradScaler.step` was given, with how many steps it had made, and why it has no gradients.

    It is frozen where no parameter of it requires grad, unused where they are parts of a module of the program of which
    others have gradients, elsewhere where they belong to nothing that trains. None where no scaler failed.
    """
    optimizer = next((one.f_locals.get("optimizer") for one in frames if _is_scalers(one)), None)
    groups = getattr(optimizer, "param_groups", None)
    owned = [one for group in groups for one in group["params"]] if groups else []
    if not owned or any(one.grad is not None for one in owned):
        return None
    # What nobody counted may still have left its moments.
    made = steps_of(optimizer) if steps_of is not None else int(bool(optimizer.state))  # type: ignore[union-attr]
    return {"kind": type(optimizer).__name__, "state": _state(owned, roots), "steps": made}


def _state(owned: list[Any], roots: Iterable[Any]) -> str:
    own = {id(one) for one in owned}
    if not any(one.requires_grad for one in owned):
        return FROZEN
    for root in roots:
        held = list(root.parameters())
        if own <= {id(one) for one in held} and any(one.grad is not None for one in held):
            return UNUSED
    return ELSEWHERE


def _is_scalers(frame: FrameType) -> bool:
    code = frame.f_code
    return code.co_name == "step" and code.co_filename.replace("\\", "/").endswith("amp/grad_scaler.py")
