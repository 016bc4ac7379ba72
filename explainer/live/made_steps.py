"""How many steps the optimizers of a process have made, as far as what they keep says it; nobody counted them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

# What an optimizer is told and makes it keep moments for each parameter that it steps.
_KEEPS = ("betas", "rho", "lr_decay", "etas", "alpha")


def made_steps(torch: Any, optimizers: Iterable[Any]) -> int | None:
    """The steps of the one that made most; None where one of them, as SGD without momentum, keeps nothing that says it."""
    made = [steps_made(torch, one) for one in optimizers if getattr(one, "param_groups", None)]
    known = [one for one in made if one is not None]
    return max(known) if known and len(known) == len(made) else None


def living(torch: Any) -> Iterator[Any]:
    """The optimizers of this process."""
    import gc

    return (one for one in gc.get_objects() if issubclass(type(one), torch.optim.Optimizer))


def steps_made(torch: Any, optimizer: Any) -> int | None:
    """The steps that one optimizer has made; None where what it keeps does not say it."""
    kept = list(optimizer.state.values())
    if not kept:
        group = optimizer.param_groups[0]
        return 0 if any(one in group for one in _KEEPS) or group.get("momentum") else None
    counts = [one["step"] for one in kept if isinstance(one, dict) and "step" in one]
    plain = [one for one in counts if not isinstance(one, torch.Tensor) or one.device.type == "cpu"]
    return int(max(plain)) if plain else None  # to read one from a device that failed may never return
