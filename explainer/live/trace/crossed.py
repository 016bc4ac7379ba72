"""A difference of n values of the model with n others that stand in a column, or the reverse: n times n differences."""

from __future__ import annotations

from itertools import islice
from typing import Any

from .flow import Flow, Operation
from .place import describe

LEAST = 4
MAX_STEPS = 6
MAX_FOLLOWED = 400
# What hands a column on as it is. A column that the program made by an index or a view is meant.
_AS_IT_IS = frozenset(("detach", "data", "to", "cpu", "cuda", "float", "double", "clone", "contiguous"))
_MADE_ON_PURPOSE = frozenset(
    ("__getitem__", "unsqueeze", "view", "reshape", "expand", "t", "transpose", "permute", "mT", "T", "repeat", "tile", "stack",
     "cat")
)  # fmt: skip


class Crossed:
    """The first such difference."""

    def __init__(self, flow: Flow) -> None:
        self._flow = flow
        self._found: dict[str, Any] | None = None
        self._number = 0
        self._is_sure = False

    @property
    def is_open(self) -> bool:
        """Whether none was found so far."""
        return not self._is_sure

    def saw(self, tensors: list[Any], number: int, operation: Operation) -> None:
        """Look at one difference: of what requires grad with what does not, or of what a model gave and was cut off."""
        if len(tensors) != 2:
            return
        row, column = sorted(tensors, key=lambda one: one.ndim)
        if row.ndim != 1 or tuple(column.shape) != (len(row), 1) or len(row) < LEAST:
            return
        is_of_graph = tensors[0].requires_grad != tensors[1].requires_grad
        if not is_of_graph and (self._found is not None or not self._is_cut_off(row, column)):
            return
        self._is_sure, self._number = is_of_graph, number
        self._found = {
            "operation": operation.name, **describe(operation.place), "grad_mode": operation.grad_mode,
            "first": list(tensors[0].shape), "second": list(tensors[1].shape),
            "given": "column" if column.requires_grad else "row",
        }  # fmt: skip

    def _is_cut_off(self, row: Any, column: Any) -> bool:
        """Whether the column is a layer's output without its graph, and the row was not computed of the same output."""
        if row.requires_grad or column.requires_grad:
            return False
        number, is_cut = self._flow.maker(column), False
        for _ in range(MAX_STEPS):
            operation = self._flow.get(number) if number is not None else None
            if operation is None or operation.name in _MADE_ON_PURPOSE:
                return False
            is_cut = is_cut or (operation.took_grad and not operation.gave_grad)
            if operation.name not in _AS_IT_IS:
                break
            number = operation.inputs[0] if operation.inputs else None
        start = self._flow.maker(row)
        upstream = self._flow.upstream(start) if is_cut and start is not None else ()
        return is_cut and all(number != one for one, _ in islice(upstream, MAX_FOLLOWED))

    def told(self) -> dict[str, Any] | None:
        """The difference, where it has become part of a graph."""
        if self._found is None or self._is_sure or self._goes_on():
            return self._found
        return None

    def _goes_on(self) -> bool:
        """Whether anything that comes of the difference meets a graph: for a log or a metric it may be meant."""
        followed = {self._number}
        for number, operation in self._flow.since(self._number + 1):
            if followed.intersection(operation.inputs):
                if operation.gave_grad:
                    return True
                followed.add(number)
        return False
