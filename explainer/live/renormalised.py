"""Tables that their own forward writes: `nn.Embedding(..., max_norm=1.0)` shortens the rows that it looks up, in place."""

from __future__ import annotations

from collections.abc import Container, Iterable
from typing import Any


def renormalised(roots: Iterable[Any], pointers: Container[int]) -> str | None:
    """The first such table, by class and path, whose weight lies at one of some addresses: `Recommender.items`."""
    for root in roots:
        for path, module in root.named_modules():
            weight: Any = getattr(module, "weight", None)
            if getattr(module, "max_norm", None) is not None and weight.data_ptr() in pointers:
                return ".".join(one for one in (type(root).__name__, path) if one)
    return None
