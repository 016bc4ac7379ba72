"""Tables that their own forward writes: `nn.Embedding(..., max_norm=1.0)` shortens the rows that it looks up, in place."""

from __future__ import annotations

from collections.abc import Container, Iterable
from typing import Any

from .storage import storage_of


def renormalised(roots: Iterable[Any], storages: Container[int | None]) -> str | None:
    """The first such table, by class and path, whose weight has one of some storages: `Recommender.items`."""
    for root in roots:
        for path, module in root.named_modules():
            weight: Any = getattr(module, "weight", None)
            # A convolution of the program's own may have a `max_norm` as well.
            is_table = hasattr(module, "num_embeddings")
            if is_table and getattr(module, "max_norm", None) is not None and storage_of(weight) in storages:
                return ".".join(one for one in (type(root).__name__, path) if one)
    return None
