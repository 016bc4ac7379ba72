"""Parameters that no module holds: `self.scale = nn.Parameter(x).unsqueeze(0)` keeps a result of one, and trains nothing."""

from __future__ import annotations

from collections.abc import Container, Iterable
from typing import Any

_DEPTH = 8  # operations between a parameter and what a module keeps of it


def find_lost(torch: Any, roots: Iterable[Any], owned: Container[int]) -> list[tuple[str, str, Any]]:
    """The class of a model of `roots`, its attribute's name, and the parameter behind it that no module and no optimizer holds."""
    found = []
    for root in roots:
        held = {id(one) for one in root.parameters()}
        for path, module in root.named_modules():
            for name, value in list(vars(module).items()):
                if type(value) is not torch.Tensor or value.grad_fn is None:
                    continue
                leaf = _leaf(value.grad_fn, torch)
                if leaf is not None and id(leaf) not in held and id(leaf) not in owned:
                    found.append((type(root).__name__, f"{path}.{name}".lstrip("."), leaf))
    return found


def _leaf(node: Any, torch: Any) -> Any:
    """The one parameter that a value was computed from; None where there are several, or none."""
    for _ in range(_DEPTH):
        variable = getattr(node, "variable", None)
        if variable is not None:
            return variable if isinstance(variable, torch.nn.Parameter) else None
        behind = [one for one, _ in node.next_functions if one is not None]
        if len(behind) != 1:
            return None
        (node,) = behind
    return None
