"""Results whose gradient is read, computed from a leaf that nothing holds: `delta = eps * torch.zeros(3).requires_grad_()`.

The leaf gets the gradient and nobody can read it; the `.grad` of the result stays None, which a helper may take for zeros. Told
only where a backward has reached the leaf, and where a line reads no other gradients: one that walks all tensors expects a None.
"""

from __future__ import annotations

import sys
from typing import Any

from .finite import Finite
from .flow import Flow, Operation
from .place import Place, Places

MAX_TOLD = 8
MAX_READERS = 200
MAX_NODES = 200


class LostLeaves:
    """The lines that read `.grad`, each with the operation that made such a result; None where they read other gradients too."""

    def __init__(self, torch: Any, flow: Flow, places: Places) -> None:
        self._torch, self._flow, self._places = torch, flow, places
        self._read: dict[Place, Operation | None] = {}
        self.fault: str | None = None

    def saw_read(self, tensor: Any, depth: int) -> None:
        """The code that runs `depth` frames above this one is about to read a tensor's gradient; never in its way."""
        frame = sys._getframe(depth)  # noqa: SLF001 - the line that reads, not one below it
        if not self._places.is_own(frame.f_code) or len(self._read) >= MAX_READERS:
            return
        place = frame.f_code, frame.f_lasti
        try:
            with self._torch._C.DisableTorchFunction():  # noqa: SLF001
                self._note(tensor, place)
        except Exception as fault:  # noqa: BLE001 - the program must run whatever we cannot read of it
            self.fault = f"grad: {type(fault).__name__}: {fault}"[:200]

    def told(self) -> list[tuple[Operation, Place]]:
        """The operations, each with the line that reads the gradient of what it made."""
        return [(made, place) for place, made in self._read.items() if made is not None][:MAX_TOLD]

    def _note(self, tensor: Any, place: Place) -> None:
        if place in self._read and self._read[place] is None:
            return
        if tensor.is_leaf:
            if isinstance(tensor, self._torch.nn.Parameter) or not tensor.requires_grad:
                self._read[place] = None
        elif not self._is_lost(tensor):
            self._read[place] = None
        elif _leaf(tensor).grad is not None:
            number = self._flow.maker(tensor)
            made = self._flow.get(number) if number is not None else None
            if made is not None:
                self._read.setdefault(place, made)

    def _is_lost(self, tensor: Any) -> bool:
        """Whether a result gets no gradient of its own, and its graph leads to one leaf alone, which no name holds and no hook looks at."""
        leaf = _leaf(tensor)
        if leaf is None or isinstance(leaf, self._torch.nn.Parameter):
            return False
        if tensor.retains_grad or _has_hooks(tensor) or _has_hooks(leaf):
            return False
        own = int(self._flow.leaf(id(leaf)) is leaf)
        return sys.getrefcount(leaf) - own <= self._count_of_lost()

    def _count_of_lost(self) -> int:
        """How many references there are to a leaf that only its graph holds, seen as `_is_lost` sees it: this differs among releases."""
        torch = self._torch
        with torch.enable_grad():
            result = torch.zeros((), requires_grad=True) * 2
        leaf = _leaf(result)
        return sys.getrefcount(leaf)


def _has_hooks(tensor: Any) -> bool:
    """Whether the program takes a gradient up as it comes; the tracer does too, for its values."""
    kept = (getattr(tensor, name, None) for name in ("_backward_hooks", "_post_accumulate_grad_hooks"))
    hooks = [one for each in kept if each for one in each.values()]
    owners = [type(getattr(getattr(one, "func", one), "__self__", None)) for one in hooks]
    return any(one.__module__ != Finite.__module__ for one in owners)


def _leaf(tensor: Any) -> Any:
    """The one leaf that a graph leads to; None where there are others, or it is too large to look."""
    queue, seen, leaf = [tensor.grad_fn], set(), None
    while queue:
        node = queue.pop()
        if node is None or node in seen:
            continue
        seen.add(node)
        if len(seen) > MAX_NODES:
            return None
        found = getattr(node, "variable", None)
        if found is not None and leaf is not None:
            return None
        leaf = found if found is not None else leaf
        queue.extend(one for one, _ in node.next_functions)
    return leaf
