"""Names parameters by the modules that hold them, the same way in every run of a program."""

from __future__ import annotations

from typing import Any

_WRAPPERS = {"OptimizedModule": "_orig_mod", "DistributedDataParallel": "module", "DataParallel": "module",
             "FullyShardedDataParallel": "_fsdp_wrapped_module"}  # fmt: skip
_INNER = ("_orig_mod.", "_fsdp_wrapped_module.", "_checkpoint_wrapped_module.")


class Names:
    """The names of parameters: of the modules that no other module holds, without those that only wrap another.

    Two such modules of one class are told apart by a number, in the order in which their parameters are first asked for:
    the collector's order is not the same in two runs, that of the optimizers is.
    """

    def __init__(self) -> None:
        self._places: dict[int, tuple[int, str, str]] | None = None
        self._roots: dict[int, str] = {}
        self._classes: dict[str, int] = {}

    def of(self, parameter: Any) -> str | None:
        """`Net.layers.0.weight`; None for a tensor that no module holds."""
        if self._places is None:
            self._places = _places()
        if id(parameter) not in self._places:
            return None
        root, kind, name = self._places[id(parameter)]
        if root not in self._roots:
            number = self._classes[kind] = self._classes.get(kind, 0) + 1
            self._roots[root] = kind if number == 1 else f"{kind}({number})"
        return f"{self._roots[root]}.{name}"


def outermost() -> list[Any]:
    """The modules that no other module holds, out of what torch put round them, the largest first."""
    import gc

    import torch

    modules = [one for one in gc.get_objects() if issubclass(type(one), torch.nn.Module)]  # a proxy may be dead
    inner = {id(child) for one in modules for child in one.children()}
    outer = sorted((one for one in modules if id(one) not in inner), key=lambda one: -sum(1 for _ in one.modules()))
    return [_unwrapped(one) for one in outer]


def _places() -> dict[int, tuple[int, str, str]]:
    """Where each parameter is: its outermost module and that one's class, and its name in it."""
    found: dict[int, tuple[int, str, str]] = {}
    for root in outermost():
        for name, parameter in root.named_parameters():
            for part in _INNER:
                name = name.replace(part, "")
            found.setdefault(id(parameter), (id(root), type(root).__name__, name))
    return found


def _unwrapped(module: Any) -> Any:
    """The user's own module in one that torch put round it."""
    while True:
        inner = module._modules.get(_WRAPPERS.get(type(module).__name__, ""))  # noqa: SLF001 - no __getattr__ of the user's
        if inner is None:
            return module
        module = inner
