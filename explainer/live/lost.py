"""What trains and is no parameter of its module.

What `self.scale = nn.Parameter(x).unsqueeze(0)` keeps the result of; a plain tensor that requires grad,
`self.scale = torch.ones(1, requires_grad=True)`; and layers in a list.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator
from typing import Any

_MANY = 1_000
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


def plain_leaves(torch: Any, roots: Iterable[Any], owned: Container[int]) -> Iterator[tuple[Any, Any, Any, str]]:
    """Leaves that require grad and are attributes of a module, no parameters, alone or in a list or dictionary.

    The root, what holds the leaf, by which key or place, and the path from the root.
    """
    for root in roots:
        held = {id(one) for one in root.parameters()}
        for path, module in root.named_modules():
            for name, value in list(vars(module).items()):
                place = f"{path}.{name}".lstrip(".")
                if type(value) in (list, dict) and not name.startswith("_"):
                    parts = list(value.items() if isinstance(value, dict) else enumerate(value))[:_MANY]
                    found = [(value, key, one, f"{place}.{key}") for key, one in parts]
                else:
                    found = [(vars(module), name, value, place)]
                for holder, key, one, where in found:
                    is_leaf = type(one) is torch.Tensor and one.is_leaf and one.requires_grad
                    if is_leaf and id(one) not in owned and id(one) not in held:
                        yield root, holder, key, where


def in_plain_containers(torch: Any, root: Any) -> Iterator[tuple[str, Any]]:
    """The parameters, and those of layers, that a module keeps in a Python list or dictionary, with their names there.

    One layer alone in a list is a trick by which it is kept out of the parameters on purpose.
    """
    for path, module in root.named_modules():
        for name, value in list(vars(module).items()):
            if name.startswith("_") or type(value) not in (list, tuple, dict):
                continue
            parts = list(value.items() if isinstance(value, dict) else enumerate(value))[:_MANY]
            layers = [(key, one) for key, one in parts if issubclass(type(one), (torch.nn.Module, torch.nn.Parameter))]
            for key, layer in layers if len(layers) > 1 or type(value) is dict else ():
                place = f"{path}.{name}.{key}".lstrip(".")
                if issubclass(type(layer), torch.nn.Parameter):
                    yield place, layer
                else:
                    yield from ((f"{place}.{inner}", one) for inner, one in layer.named_parameters())


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
