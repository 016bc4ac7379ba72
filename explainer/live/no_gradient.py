"""The parameters of a module without a gradient, where others of the same module have theirs: nothing of them is in the loss."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

MAX_NAMES = 6


def without_gradient(roots: Iterable[Any], error: BaseException) -> str | None:
    """Their names, where a failure is about a None: `QNet: val.weight, val.bias`; None where there are none, or no others."""
    if "NoneType" not in str(error):
        return None
    for root in roots:
        trained = [(name, one.grad) for name, one in root.named_parameters() if one.requires_grad]
        lacking = [name for name, gradient in trained if gradient is None]
        if lacking and len(lacking) < len(trained):
            more = f" and {len(lacking) - MAX_NAMES} more" if len(lacking) > MAX_NAMES else ""
            return f"{type(root).__name__}: {', '.join(lacking[:MAX_NAMES])}{more}"
    return None
