"""A difference of n values of the model with n others that stand in a column, or the reverse: n times n differences.

So too a product, `weight * (prediction - target) ** 2` with a weight for each sample, where it is averaged as it is. What is
computed within the model, of two values with a graph, is for `combined`.
"""

from __future__ import annotations

from itertools import islice
from typing import Any

from .flow import Flow, Operation
from .place import Place, describe

PRODUCTS = frozenset(("mul", "__mul__", "__rmul__", "multiply"))
SUMS = frozenset(("add", "__add__", "__radd__"))
CROSSING = frozenset(("sub", "__sub__", "mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss")) | PRODUCTS | SUMS
LEAST = 4
MAX_STEPS = 6
MAX_FOLLOWED = 400
# What hands a column on as it is. A column that the program made by an index or a view is meant.
AS_IT_IS = frozenset(("detach", "data", "to", "cpu", "cuda", "float", "double", "clone", "contiguous"))
MADE_ON_PURPOSE = frozenset(
    ("__getitem__", "unsqueeze", "view", "reshape", "expand", "t", "transpose", "permute", "mT", "T", "repeat", "tile", "stack",
     "cat")
)  # fmt: skip
ELEMENT_BY_ELEMENT = frozenset(
    ("pow", "__pow__", "square", "abs", "exp", "log", "neg", "__neg__", "clamp", "to", "float", "div", "__truediv__", "mul",
     "__mul__", "__rmul__", "add", "__add__", "__radd__", "sub", "__sub__")
)  # fmt: skip
AVERAGES = frozenset(("mean", "sum", "nanmean", "nansum", "mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss"))
_PICKED = frozenset(("max", "amax", "min", "amin", "gather"))  # one of a layer's outputs for each sample


class Crossed:
    """The first such difference."""

    def __init__(self, flow: Flow) -> None:
        self._flow = flow
        self._found: dict[str, Any] | None = None
        self._number = 0
        self._is_sure = self._is_product = False
        self._place: Place | None = None
        self._meant: set[Place | None] = set()

    def saw(self, tensors: list[Any], number: int, operation: Operation) -> None:
        """Look at one difference: of what requires grad with what does not, or of what a model gave and was cut off."""
        if len(tensors) != 2:
            return
        if self._found is not None and self._is_product and not self._found["beside"]:
            self._found["beside"] = self._beside(tensors)
        if operation.name in SUMS:
            return
        row, column = sorted(tensors, key=lambda one: one.ndim)
        if row.ndim != 1 or column.ndim != 2 or column.shape[1] != 1:
            return
        if len(row) != len(column):
            self._see_sizes(operation.place, len(row), len(column))
            return
        if self._is_sure or len(row) < LEAST or operation.place in self._meant:
            return
        is_of_graph = tensors[0].requires_grad != tensors[1].requires_grad
        is_product = operation.name in PRODUCTS
        if is_product and (self._found is not None or row.requires_grad or self._is_made_on_purpose(column)):
            return
        if not is_of_graph and (self._found is not None or not self._is_cut_off(row, column, is_product=is_product)):
            return
        self._is_sure, self._number, self._is_product = is_of_graph and not is_product, number, is_product
        self._place = operation.place
        self._found = {
            "operation": operation.name, **describe(operation.place), "grad_mode": operation.grad_mode,
            "first": list(tensors[0].shape), "second": list(tensors[1].shape),
            "given": "column" if column.requires_grad else "row", "beside": "",
        }  # fmt: skip

    def _see_sizes(self, place: Place | None, *sizes: int) -> None:
        """Quantiles, bins, frequencies against samples: as many of both only by chance."""
        if 1 not in sizes:
            self._meant.add(place)
            if place == self._place:
                self._found, self._place, self._is_sure = None, None, False

    def _beside(self, tensors: list[Any]) -> str:
        """The form of what is put beside the products first, n values in a row or in a column; "" where this is something else."""
        for products, other in (tensors, tensors[::-1]):
            number = self._flow.maker(products) if products.ndim == 2 else None
            while number is not None and number > self._number:
                operation = self._flow.get(number)
                is_one = operation is not None and operation.name in ELEMENT_BY_ELEMENT and operation.inputs
                number = operation.inputs[0] if operation is not None and is_one else None
            if number == self._number:
                shape = tuple(other.shape)
                return "row" if shape == (len(products),) else "column" if shape == (len(products), 1) else ""
        return ""

    def _is_made_on_purpose(self, column: Any) -> bool:
        number = self._flow.maker(column)
        operation = self._flow.get(number) if number is not None else None
        return operation is not None and operation.name in MADE_ON_PURPOSE

    def _is_cut_off(self, row: Any, column: Any, *, is_product: bool) -> bool:
        """Whether the column is a layer's output without its graph, and the row was not computed of the same output."""
        if row.requires_grad or column.requires_grad:
            return False
        number, is_cut = self._flow.maker(column), False
        for _ in range(MAX_STEPS):
            operation = self._flow.get(number) if number is not None else None
            if operation is None or operation.name in MADE_ON_PURPOSE:
                return False
            is_cut = is_cut or (operation.took_grad and not operation.gave_grad)
            if operation.name not in AS_IT_IS and not (is_product and operation.name in _PICKED):
                break
            number = operation.inputs[0] if operation.inputs else None
        start = self._flow.maker(row)
        upstream = self._flow.upstream(start) if is_cut and start is not None else ()
        return is_cut and all(number != one for one, _ in islice(upstream, MAX_FOLLOWED))

    def told(self) -> dict[str, Any] | None:
        """The difference, where it has become part of a graph; the product, where its average is a loss."""
        if self._found is None or self._is_sure:
            return self._found
        return self._found if (self._is_averaged() if self._is_product else self._goes_on()) else None

    def _is_averaged(self) -> bool:
        """Whether nothing but an average over all of them, or what goes element by element before it, takes the products."""
        followed, is_averaged = {self._number}, False
        for number, operation in self._flow.since(self._number + 1):
            if followed.isdisjoint(operation.inputs):
                continue
            if operation.name in AVERAGES:
                is_averaged = True
            elif operation.name in ELEMENT_BY_ELEMENT:
                followed.add(number)
            else:
                return False
        return is_averaged

    def _goes_on(self) -> bool:
        """Whether anything that comes of the difference meets a graph: for a log or a metric it may be meant."""
        followed = {self._number}
        for number, operation in self._flow.since(self._number + 1):
            if followed.intersection(operation.inputs):
                if operation.gave_grad:
                    return True
                followed.add(number)
        return False
