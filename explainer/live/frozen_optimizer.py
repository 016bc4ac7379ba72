"""An optimizer whose turn it is and that is frozen as a whole, where a loss has no graph: its parameters were not thawed again.

That the second network of a GAN is frozen while the first one trains is no fault: it has stepped more often by then, or not at all.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .made_steps import living, steps_made


def is_due_and_frozen(torch: Any, steps_of: Callable[[Any], int] | None) -> bool:
    """Whether an optimizer that has stepped, and no more often than any other, has no parameter that requires grad.

    `steps_of` says how many steps an optimizer has made; without it what they keep does, as far as it can.
    """
    made: list[tuple[int, bool]] = []
    for one in living(torch):
        owned = [parameter for group in one.param_groups for parameter in group["params"]]
        if not owned:
            continue
        steps = steps_of(one) if steps_of is not None else steps_made(torch, one)
        if steps is not None:
            made.append((steps, not any(parameter.requires_grad for parameter in owned)))
    counts = [steps for steps, _ in made]
    if not counts or max(counts) - min(counts) > 1:  # stages of a training, not optimizers that take turns
        return False
    return any(is_frozen and steps == min(counts) > 0 for steps, is_frozen in made)
