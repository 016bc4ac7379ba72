"""A term of a loss whose gradient is counted twice: by a backward of its own, and again by that of the loss it is part of.

`term.backward(retain_graph=True)` for a report of gradient norms leaves its gradients where `loss.backward()` adds to them.
Not where they are cleared in between, by whatever means, or a step has used them; nor of a backward that makes a graph itself,
whose gradients are meant to be differentiated.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from .graph import Pass, below, sequence_of
from .place import Place

MAX_KEPT = 8
MAX_LEAVES = 8


@dataclass(frozen=True, slots=True)
class _Early:
    """A backward that kept its graph: its line and the node that it began from."""

    place: Place | None
    node: Any


class Counted:
    """Follows backward passes whose gradients stay where they are."""

    def __init__(self) -> None:
        self._kept: list[_Early] = []
        self._told: dict[tuple[Place | None, Place | None], int] = {}

    def forget(self) -> None:
        """Gradients are cleared, or were used by a step."""
        self._kept.clear()

    def saw_backward(self, roots: Any, this: Pass, *, makes_graph: bool) -> None:
        """A backward into all leaves is about to run."""
        for one in self._kept:
            if sequence_of(one.node) in this.nodes and _is_there(one.node):
                key = one.place, this.place
                self._told[key] = self._told.get(key, 0) + 1
        node = getattr(roots[0], "grad_fn", None) if len(roots) == 1 else None
        if node is not None and this.keeps and not makes_graph and len(self._kept) < MAX_KEPT:
            self._kept.append(_Early(this.place, node))

    def told(self) -> list[tuple[Place | None, Place | None]]:
        """The line of the early backward and that of the one which counts its gradients again."""
        return list(self._told)


def _is_there(node: Any) -> bool:
    """Whether one of the leaves below a node still has a gradient."""
    leaves: list[Any] = []
    for one in below([node]):
        variable = getattr(one, "variable", None)
        if variable is not None:
            leaves.append(variable)
        if len(leaves) >= MAX_LEAVES:
            break
    found = [one.grad for one in leaves if one.grad is not None]
    return any(one.is_sparse or bool(one.any()) for one in found)
