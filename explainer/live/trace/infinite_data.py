"""Data that holds infinity where no mask does, as the logarithm of 0 leaves it, and a logarithm that torch took of a table before.

It makes a loss infinite without a NaN. A mask holds one finite value beside its infinities, or an operation that fills made it.
"""

from __future__ import annotations

from collections.abc import Container, Iterator
from itertools import islice
from typing import Any

from .flow import Flow, Operation

MAX_PREPARED = 12  # between the logarithm of a table and its rows
MAX_MOVED = 8
LOGARITHMS = frozenset(("log", "log_", "log2", "log2_", "log10", "log10_", "xlogy", "logit"))
# What gives a tensor the values that the program holds elsewhere.
_READS = frozenset(("tensor", "new_tensor", "as_tensor", "from_numpy"))


class InfiniteData:
    """Asks what an operation was given that made an infinity; `moves` only hand values on, `fills` write infinity on purpose."""

    def __init__(self, flow: Flow, types: tuple[type, ...], moves: Container[str], fills: Container[str]) -> None:
        self._flow = flow
        self._types = types
        self._moves = moves
        self._fills = fills

    def taken(self, operation: Operation, since: int) -> dict[str, Any]:
        """What is told of an operation that was given such data, older than `since`; nothing where it was not."""
        for leaf in map(self._flow.leaf, operation.leaves):
            if leaf is not None and (told := self._told(leaf)):
                return told
        for older in (one for one in operation.inputs if one < since):
            if told := self._made(older):
                return told
        return {}

    def brought(self, number: int) -> dict[str, Any]:
        """What is told of an operation that made such data of values from elsewhere: `torch.tensor(rows)`, moved or not."""
        queue, seen = [number], {number}
        while queue and len(seen) < MAX_MOVED:
            current = queue.pop(0)
            if told := self._made(current):
                return told
            new = [one for one, operation in self._flow.consumers(current) if operation.name in self._moves]
            queue.extend(one for one in new if one not in seen)
            seen.update(new)
        return {}

    def _made(self, number: int) -> dict[str, Any]:
        """What is told of a tensor that an operation made: its logarithm, where torch took that, else the data itself."""
        told = next((told for one in self._flow.made_by(number) if (told := self._told(one))), {})
        for one, operation in self._prepared(number) if told else ():
            if operation.name in LOGARITHMS:
                return {"number": one, "operation": operation}
            if operation.name in self._fills and operation.name not in _READS:
                return {}
        return told

    def _prepared(self, number: int) -> Iterator[tuple[int, Operation]]:
        return islice(self._flow.upstream(number), MAX_PREPARED)

    def _told(self, tensor: Any) -> dict[str, Any]:
        is_data = type(tensor) in self._types and not tensor.requires_grad and tensor.is_floating_point()
        infinity = infinity_of(tensor) if is_data and not tensor.is_meta else None
        return {"input": "data", "shape": list(tensor.shape), "infinity": infinity} if infinity else {}


def describe_data(tensor: Any) -> dict[str, Any]:
    """What is told of data that is not finite."""
    shape = list(tensor.shape)
    return {"input": "data", "shape": shape, "infinity": infinity_of(tensor), "is_column": is_column_nan(tensor)}


def is_column_nan(tensor: Any) -> bool:
    """Whether a column of data is NaN throughout, as minus infinity leaves it that is scaled by its mean; cells that lack are some rows.

    Rows of a table are judged as the table.
    """
    own = (tensor if tensor._base is None else tensor._base).detach()  # noqa: SLF001
    rows = own.reshape(-1, own.shape[-1] if own.ndim > 1 else 1)
    return len(rows) > 1 and bool(rows.isnan().all(0).any())


def infinity_of(tensor: Any) -> str | None:
    """`-inf` or `inf` where data holds that and no NaN; None also where its finite values are all one, as those of a mask.

    Rows of a table are judged as the table: a batch of them may hold nothing else.
    """
    own = (tensor if tensor._base is None else tensor._base).detach()  # noqa: SLF001
    finite = own[own.isfinite()]
    if bool(tensor.detach().isfinite().all()) or bool(own.isnan().any()) or not finite.numel():
        return None
    if bool(finite.min() == finite.max()):
        return None
    return "-inf" if bool(own.isneginf().any()) else "inf"
