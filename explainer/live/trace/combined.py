"""A column of a layer with one output that is added to a row of as many values: n times n results, whose average is a loss.

`user_bias(u) + affinity` of [n, 1] and [n], also a product, a quotient, a difference of two values with a graph; that of a
prediction and a target is `crossed`. So too labels or weights that the data has in a column, beside a row that trains. A column that the program made by an index, a view or a kept axis is meant, and so are
results that anything but an average takes, that meet another table of n times n, or whose sizes agree only by chance.
"""

from __future__ import annotations

import weakref
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from .crossed import (
    AS_IT_IS,
    AVERAGES,
    CROSSING,
    ELEMENT_BY_ELEMENT,
    LEAST,
    MAX_FOLLOWED,
    PRODUCTS,
    SUMS,
    Crossed,
)
from .flow import Flow, Operation
from .place import Place, describe, span

DIFFERENCES = frozenset(("sub", "__sub__", "rsub", "__rsub__", "subtract"))
QUOTIENTS = frozenset(("div", "__truediv__", "true_divide", "divide"))
COMBINING = SUMS | PRODUCTS | DIFFERENCES | QUOTIENTS
PAIRED = CROSSING | COMBINING
MAX_TOLD = 8
MAX_INDICES = 10_000
# Layers that give as many values a sample as they are built for, and what cuts a part out of such values.
_LAYERS = frozenset(("linear", "embedding", "embedding_bag", "bilinear", "conv1d", "conv2d", "conv3d"))
_PARTS = frozenset(("chunk", "split", "tensor_split"))
_ELEMENTWISE = ELEMENT_BY_ELEMENT | AS_IT_IS | COMBINING | frozenset(
    ("sigmoid", "tanh", "relu", "relu6", "softplus", "logsigmoid", "log_sigmoid", "gelu", "silu", "elu", "selu", "leaky_relu", "hardtanh", "hardsigmoid",
     "log1p", "expm1", "sqrt", "rsqrt", "reciprocal", "__rdiv__", "__rtruediv__", "__rpow__", "sin", "cos", "erf", "maximum",
     "minimum", "where", "clamp_min", "clamp_max", "clip", "half", "bfloat16", "type", "type_as", "dropout", "nan_to_num",
     "masked_fill", "lgamma", "log2", "exp2", "__abs__", "absolute", "negative", "positive", "lerp", "addcmul", "addcdiv")
)  # fmt: skip
_COMPARED = frozenset(("gt", "lt", "ge", "le", "eq", "ne", "__gt__", "__lt__", "__ge__", "__le__", "__eq__", "__ne__"))
_VIEWED = frozenset(("view", "reshape", "flatten", "ravel", "view_as", "reshape_as", "T", "t", "permute", "transpose"))
_NEW = frozenset(("tensor", "as_tensor", "scalar_tensor", "full", "zeros", "ones"))
_LOADED = frozenset(("tensor", "as_tensor", "from_numpy", "load", "stack"))
_DATA = _LOADED | {"rand", "randn", "randint", "normal"}
_COUNTED = frozenset(("arange", "linspace", "logspace", "range", "eye", "tril_indices", "triu_indices"))


@dataclass(slots=True)
class _Table:
    """The n times n results of one operation, and what has become of them since the last backward."""

    place: Place
    size: int
    lines: list[dict[str, Any]]
    needs_labels: bool
    averages: set[int] = field(default_factory=set)
    has_row: bool = False
    has_column: bool = False
    is_meant: bool = False

    def absorb(self, other: _Table) -> None:
        """Take up what is known of results that have met these."""
        self.lines += other.lines
        self.averages |= other.averages
        self.needs_labels = self.needs_labels or other.needs_labels
        self.has_row, self.has_column = self.has_row or other.has_row, self.has_column or other.has_column
        self.is_meant = self.is_meant or other.is_meant or self.size != other.size


class Combined:
    """Follows such results up to the backward that starts from their average."""

    def __init__(self, flow: Flow, crossed: Crossed) -> None:
        self._flow, self._crossed = flow, crossed
        self.followed: dict[int, _Table] = {}
        """What is on its way to a loss."""
        self._found: dict[Place, _Table] = {}
        self._meant: set[Place] = set()
        self._indices: dict[int, bool] = {}
        self._columns: dict[Place, weakref.ref[Any]] = {}
        self._begun = 0

    def saw_index(self, index: Any) -> None:
        """The next operation is an index: noted where it has no new axis, and whether it cuts the last one (`x[:, :1]`)."""
        is_tuple = type(index) is tuple
        if index is None or (is_tuple and any(one is None for one in index)):
            return
        is_part = is_tuple and bool(index) and type(index[-1]) in (slice, list)
        if (is_part or not is_tuple) and len(self._indices) < MAX_INDICES:
            self._indices[len(self._flow)] = is_part

    def saw(self, tensors: list[Any], outputs: list[Any], number: int, operation: Operation) -> None:
        """Look at one operation of `PAIRED`, and at what takes its results."""
        if operation.name in CROSSING:
            self._crossed.saw(tensors, number, operation)
        table = self._table_of(operation) if self.followed else None
        if table is not None:
            if operation.gave_grad and not operation.replay:
                self._follow(table, tensors, outputs, number, operation)
        elif len(tensors) == 2 and tensors[0].ndim + tensors[1].ndim == 3 and operation.name in COMBINING:
            self._begin(tensors, number, operation)

    def _table_of(self, operation: Operation) -> _Table | None:
        """The results that an operation takes; of `gate * a + (1 - gate) * b` two, which are one from there on."""
        tables = [self.followed[one] for one in operation.inputs if one in self.followed]
        for other in tables[1:]:
            if other is not tables[0]:
                tables[0].absorb(other)
                self.followed = {key: tables[0] if one is other else one for key, one in self.followed.items()}
        return tables[0] if tables else None

    def _begin(self, tensors: list[Any], number: int, operation: Operation) -> None:
        row, column = sorted(tensors, key=lambda one: int(one.ndim))
        place = operation.place
        if place is None or column.ndim != 2 or column.shape[1] != 1 or place in self._meant or operation.replay:
            return
        if len(row) != len(column):
            if 1 not in (len(row), len(column)):
                self._meant.add(place)
            return
        is_full = len(row) < LEAST or len(self._found) >= MAX_TOLD
        has_graph = row.requires_grad, column.requires_grad
        # Of a prediction and a target `crossed` tells the difference, and its product with weights in a row.
        is_told = (operation.name in DIFFERENCES and not all(has_graph)) or (
            operation.name in PRODUCTS and not row.requires_grad
        )
        if is_full or is_told or not any(has_graph):
            return
        sources = self._layers_of(column) if column.requires_grad else self._batch_of(column, place)
        start = self._flow.maker(row)
        if sources is None or start is None or not self._is_of_samples(start, sources):
            return
        shaper = self._shaper(start)
        needs_labels = shaper in _VIEWED or (shaper == "squeeze" and operation.name in DIFFERENCES)
        self.followed[number] = _Table(place, len(row), [self._line(tensors, operation)], needs_labels)

    def _line(self, tensors: list[Any], operation: Operation) -> dict[str, Any]:
        first, second = (list(one.shape) for one in tensors)
        at = 1 if len(second) == 2 and second[1] == 1 else 0
        return {
            "operation": operation.name, **describe(operation.place), "grad_mode": operation.grad_mode,
            "first": first, "second": second, "column": ("first", "second")[at],
            "of": "a layer" if tensors[at].requires_grad else "the data",
            "inner": self._inner(operation), "span": span(operation.place),
        }  # fmt: skip

    def _inner(self, operation: Operation) -> int:
        """How many operations of that name the same line has made the operands of: `a + b + c` has one."""
        queue, count = list(operation.inputs), 0
        while queue and count < MAX_TOLD:
            one = self._flow.get(queue.pop())
            if one is not None and one.name == operation.name and describe(one.place) == describe(operation.place):
                count += 1
                queue.extend(one.inputs)
        return count

    def _batch_of(self, column: Any, place: Place) -> set[int] | None:
        """What loaded a column of this batch; None where it may be a table that is kept, the same in each step."""
        number = self._flow.maker(column)
        for _ in range(MAX_TOLD):
            operation = self._flow.get(number) if number is not None else None
            if operation is None:
                before = self._columns.setdefault(place, weakref.ref(column))
                return set() if number is None and before() is not column else None
            if number is not None and (operation.name == "stack" or self._indices.get(number) is False):
                return {number} if 0 < self._begun <= number else None
            if operation.name not in _ELEMENTWISE | _COMPARED or len(operation.inputs) + len(operation.leaves) != 1:
                return None
            column = self._flow.leaf(operation.leaves[0]) if operation.leaves else column
            number = operation.inputs[0] if operation.inputs else None
            if column is None:
                return None
        return None

    def _layers_of(self, column: Any) -> set[int] | None:
        """The layers whose only output for each sample a column holds; None where any of it was put in a column."""
        start = self._flow.maker(column)
        queue, seen, layers = [start] if start is not None else [], {start}, set[int]()
        while queue and len(seen) < MAX_FOLLOWED:
            number = queue.pop()
            operation = self._flow.get(number)
            name = operation.name if operation is not None else ""
            if operation is None or any(self._is_counted(one) for one in operation.inputs):
                return None
            if (
                name in _LAYERS
                or name in _PARTS
                or self._indices.get(number)
                or self._is_row_of_table(number, operation)
            ):
                layers.add(number)
                continue
            if self._is_constant(number, operation):
                continue
            if name not in _ELEMENTWISE and name != "flatten" and number not in self._indices:
                return None
            queue.extend(one for one in operation.inputs if one not in seen)
            seen.update(operation.inputs)
        return layers or None

    def _is_constant(self, number: int, operation: Operation) -> bool:
        """Whether an operation made a number for all samples: of no tensor, or the mean of data that a module keeps."""
        if operation.name in _COUNTED or operation.name in _ELEMENTWISE:
            return False
        if operation.name in _NEW or not (operation.inputs or operation.leaves):
            return True
        made = self._flow.made_by(number)
        return bool(made) and all(one.numel() == 1 for one in made)

    def _is_counted(self, number: int) -> bool:
        operation = self._flow.get(number)
        return operation is not None and operation.name in _COUNTED

    def _is_row_of_table(self, number: int, operation: Operation) -> bool:
        """Whether rows are picked from a parameter of width 1: `self.bias[users]`."""
        leaves = [self._flow.leaf(one) for one in operation.leaves] if number in self._indices else []
        return any(one is not None and one.requires_grad and one.ndim == 2 for one in leaves)

    def _is_of_samples(self, start: int, sources: set[int]) -> bool:
        """Whether a row is computed from data, and from nothing that gave the column: no table of settings, no pairs."""
        is_of_data = is_computed = False
        for number, operation in islice(self._flow.upstream(start), MAX_FOLLOWED):
            if number in sources or operation.name in _COUNTED:
                return False
            is_computed = is_computed or operation.name not in AS_IT_IS
            leaves = [self._flow.leaf(one) for one in operation.leaves]
            is_of_data = is_of_data or operation.name in _LAYERS | _DATA
            is_of_data = is_of_data or any(one is not None and one.ndim and not one.requires_grad for one in leaves)
        return is_of_data and is_computed

    def _shaper(self, number: int) -> str:
        """The operation that gave a row its shape, before what goes element by element."""
        for _ in range(MAX_TOLD):
            operation = self._flow.get(number)
            if operation is None or operation.name not in _ELEMENTWISE or len(operation.inputs) != 1:
                return operation.name if operation is not None else ""
            number = operation.inputs[0]
        return ""

    def _follow(self, table: _Table, tensors: list[Any], outputs: list[Any], number: int, operation: Operation) -> None:
        output = outputs[0] if len(outputs) == 1 else None
        is_average = operation.name in AVERAGES or operation.name.endswith("_loss")
        if output is not None and output.ndim == 0 and is_average:
            table.averages.add(number)
        elif output is None or tuple(output.shape) != (table.size, table.size) or operation.name not in _ELEMENTWISE:
            table.is_meant = True
            return
        else:
            self.followed[number] = table
        for one in tensors:
            if one.numel() != 1 and self._flow.maker(one) not in self.followed:
                self._meet(table, one, tensors, operation)

    def _meet(self, table: _Table, other: Any, tensors: list[Any], operation: Operation) -> None:
        """The results meet another row, which says that they should be one; a column; or a table, and are meant to be one."""
        shape = tuple(other.shape)
        if shape == (table.size,):
            table.has_row = table.has_row or not other.requires_grad
        elif shape != (table.size, 1):
            table.is_meant = True
        elif not other.requires_grad and self._is_loaded(other):
            table.has_column = True
        elif len(tensors) == 2 and self._layers_of(other):
            table.lines.append(self._line(tensors, operation))
        else:
            table.is_meant = True

    def _is_loaded(self, column: Any) -> bool:
        """Whether a column is as the data has it."""
        number = self._flow.maker(column)
        for _ in range(MAX_TOLD):
            operation = self._flow.get(number) if number is not None else None
            if operation is None or operation.name not in AS_IT_IS:
                return operation is None or operation.name in _LOADED or number in self._indices
            number = operation.inputs[0] if operation.inputs else None
        return False

    def saw_backward(self, root: Any) -> None:
        """A backward is about to start: what its loss averages is told, unless the same line has been used otherwise."""
        tables = list({id(one): one for one in self.followed.values()}.values())
        self.followed.clear()
        self._indices.clear()
        self._begun = len(self._flow)
        number = self._flow.maker(root) if tables and root.numel() == 1 else None
        parts = {one for one, _ in islice(self._flow.upstream(number), MAX_FOLLOWED)} if number is not None else set()
        for table in tables:
            is_unsure = (table.needs_labels and not table.has_row) or (table.has_row and table.has_column)
            if table.is_meant:
                self._meant.add(table.place)
            elif table.averages & parts and not is_unsure:
                self._found.setdefault(table.place, table)

    def told(self) -> list[dict[str, Any]]:
        """The operations, with the form that their results should have by what these meet: "row" or "column"."""
        return [
            {**line, "form": "column" if table.has_column else "row"}
            for place, table in self._found.items()
            if place not in self._meant
            for line in table.lines
            if not table.has_column or 1 in (len(line["first"]), len(line["second"]))
        ][:MAX_TOLD]
