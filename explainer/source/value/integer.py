"""From where to where the whole numbers of a value go: months from 1 to 12, draws of `randint(1, 6)`, what `% 7` leaves.

Followed through loaders, data sets and the columns of stacked codes. What is not known is None, never a guess.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from explainer.source.data.bins import BUCKETS, edge_count
from explainer.source.name import dotted_name
from explainer.source.program import Program
from explainer.source.value.binding import Value
from explainer.source.value.number import number_of
from explainer.source.value.origin import KEEP, origins
from explainer.source.value.resolve import resolver_of

_DEPTH = 16
# Parts of a date as the standard library and pandas count them.
CALENDAR = {
    "month": (1, 12), "day": (1, 31), "hour": (0, 23), "minute": (0, 59), "second": (0, 59), "quarter": (1, 4), "week": (1, 53),
    "dayofweek": (0, 6), "day_of_week": (0, 6), "weekday": (0, 6), "dayofyear": (1, 366), "day_of_year": (1, 366),
    "weekofyear": (1, 53), "tm_mon": (1, 12), "tm_mday": (1, 31), "tm_yday": (1, 366), "tm_wday": (0, 6), "tm_hour": (0, 23),
    "isoweekday": (1, 7), "daysinmonth": (28, 31), "days_in_month": (28, 31),
}  # fmt: skip
_DATES = ("datetime", "pandas", "time", "calendar")
_TENSORS = (
    "torch.tensor",
    "torch.as_tensor",
    "torch.from_numpy",
    "torch.LongTensor",
    "numpy.array",
    "numpy.asarray",
    "int",
)
_STACKS = ("torch.stack", "numpy.stack")
_JOINS = ("torch.cat", "torch.concat", "numpy.concatenate", "numpy.hstack")
_SAME = KEEP | {"long", "int", "astype", "numpy", "to_numpy", "tolist", "values", "item", "type", "repeat_interleave"}
_RANGES = ("torch.arange", "numpy.arange", "range")


@dataclass(frozen=True, slots=True)
class Span:
    """The lowest and the highest of some whole numbers."""

    low: int
    high: int


def span_of(value: Value, program: Program) -> Span | None:
    """From where to where a value's numbers go, of all that is known to reach it; None where nothing is."""
    known = [one for one in _spans(value, None, program, 0) if one is not None]
    return _union(known)


def integer_of(value: Value, program: Program, depth: int = 0) -> int | None:
    """The one whole number that an expression stands for: of constants, settings of the program, and arithmetic on them."""
    node = value.node
    number = number_of(node, program.names(value.file))
    if number is not None:
        return int(number) if number == int(number) else None
    if depth > _DEPTH:
        return None
    if isinstance(node, ast.BinOp):
        sides = [integer_of(replace(value, node=one), program, depth + 1) for one in (node.left, node.right)]
        return _arithmetic(node.op, *sides)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "len" and len(node.args) == 1:
        lists = [one.node for one in [value, *resolver_of(program).behind(replace(value, node=node.args[0]))]]
        sizes = {len(one.elts) for one in lists if isinstance(one, (ast.List, ast.Tuple))}
        return sizes.pop() if len(sizes) == 1 else None
    if dotted_name(node) is None:
        return None
    found = {integer_of(one, program, depth + 1) for one in resolver_of(program).behind(value) if one.pick is None}
    return found.pop() if len(found) == 1 else None


def _arithmetic(op: ast.operator, left: int | None, right: int | None) -> int | None:
    if left is None or right is None:
        return None
    if isinstance(op, ast.Add):
        return left + right
    if isinstance(op, ast.Sub):
        return left - right
    if isinstance(op, ast.Mult):
        return left * right
    return left // right if isinstance(op, ast.FloorDiv) and right else None


def _union(spans: Iterable[Span | None]) -> Span | None:
    """The span of several; None where one is not known."""
    found = list(spans)
    known = [one for one in found if one is not None]
    if not known or len(known) < len(found):
        return None
    return Span(min(one.low for one in known), max(one.high for one in known))


def _spans(value: Value, column: int | None, program: Program, depth: int) -> list[Span | None]:
    """The span of each expression that a value comes from; `column` is the place that is taken of its last dimension."""
    if depth > _DEPTH:
        return [None]
    node = value.node
    if value.is_element or value.pick is not None:
        return _taken(value, column, program, depth)
    if isinstance(node, (ast.Name, ast.Attribute)) and dotted_name(node) is not None:
        found = list(resolver_of(program).behind(value))
        if not found and isinstance(node, ast.Attribute):
            return [_of_calendar(node, value, program)]
        return [one for each in found for one in _spans(each, column, program, depth + 1)] or [None]
    if isinstance(node, ast.IfExp):
        parts = [_spans(replace(value, node=one), column, program, depth + 1) for one in (node.body, node.orelse)]
        return [*parts[0], *parts[1]]
    if isinstance(node, ast.Call):
        returned = resolver_of(program).function_of(node, value)
        if returned is not None:
            results = resolver_of(program).returns_of(returned, node, value)
            return [one for each in results for one in _spans(each, column, program, depth + 1)] or [None]
    if isinstance(node, ast.Subscript):
        return _of_subscript(node, value, column, program, depth)
    return [_of_expression(node, value, column, program, depth)]


def _taken(value: Value, column: int | None, program: Program, depth: int) -> list[Span | None]:
    """An element of a loader, of a list, or of what is unpacked."""
    node, pick = value.node, value.pick
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "unbind":
        is_last = [number_of(one, program.names(value.file)) for one in node.args] in ([-1], [1])
        whole = replace(value, node=node.func.value, pick=None, is_element=False)
        return _spans(whole, pick, program, depth + 1) if is_last and isinstance(pick, int) else [None]
    found = [one for one in origins(value, program) if not (one.node is node and one.pick == pick)]
    if found:
        return [
            each
            for one in found
            for each in ([None] if one.pick is not None else _spans(one, column, program, depth + 1))
        ]
    whole = replace(value, is_element=False, pick=None)
    is_row = isinstance(node, ast.Subscript) and _is_of_item(node, value, program) and column is None
    if isinstance(node, ast.Subscript) and is_row and isinstance(pick, int):  # `user, item, stars = table[index]`
        return _spans(replace(whole, node=node.value), pick, program, depth + 1)
    inner = column if pick is None else pick
    return _spans(whole, inner, program, depth + 1) if value.is_element and not isinstance(inner, str) else [None]


def _is_of_item(node: ast.Subscript, value: Value, program: Program) -> bool:
    """Whether an index takes one row: the number that `__getitem__` is given, or a constant."""
    if isinstance(node.slice, ast.Constant):
        return isinstance(node.slice.value, int)
    function = program.names(value.file).function_of(node)
    given = [one.arg for one in function.args.args] if function is not None and function.name == "__getitem__" else []
    return isinstance(node.slice, ast.Name) and node.slice.id in given


def _is_flat(value: Value, program: Program) -> bool:
    """Whether an array is known to have one dimension: `np.arange(n)`, `rng.integers(0, 5, 100)`."""
    for one in origins(value, program):
        call, names = one.node, program.names(one.file)
        if isinstance(call, ast.Call) and names.is_call(call, "numpy.arange", "torch.arange"):
            return True
        is_drawn = isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and call.func.attr == "integers"
        if isinstance(call, ast.Call) and is_drawn and len(call.args) == 3:
            return integer_of(replace(one, node=call.args[2]), program) is not None
    return False


def _of_subscript(
    node: ast.Subscript, value: Value, column: int | None, program: Program, depth: int
) -> list[Span | None]:
    """A column of stacked codes, an entry of a table, or some of its rows."""
    inner = replace(value, node=node.value)
    index = node.slice
    if isinstance(index, ast.Constant) and isinstance(index.value, str):
        found = [one for one in resolver_of(program).behind(inner) if one.key == index.value]
        if not found:
            return _spans(replace(inner, pick=index.value), column, program, depth + 1)
        return [one for each in found for one in _spans(replace(each, key=None), column, program, depth + 1)]
    if isinstance(index, ast.Tuple) and index.elts:
        last = number_of(index.elts[-1], program.names(value.file))
        if last is not None and column is None:
            return _spans(inner, int(last), program, depth + 1)
        return _spans(inner, column, program, depth + 1) if isinstance(index.elts[-1], ast.Slice) else [None]
    is_week = _is_week(node)
    return [Span(*CALENDAR["week"])] if is_week else _spans(inner, column, program, depth + 1)


def _is_week(node: ast.Subscript) -> bool:
    """Whether an expression is `date.isocalendar()[1]`."""
    called = getattr(node.value, "func", None)
    is_calendar = isinstance(called, ast.Attribute) and called.attr == "isocalendar"
    return is_calendar and isinstance(node.slice, ast.Constant) and node.slice.value == 1


def _of_calendar(node: ast.Attribute, value: Value, program: Program) -> Span | None:
    """A part of a date, in a program that has to do with dates; not an attribute of the program's own classes."""
    bounds = CALENDAR.get(node.attr)
    if bounds is None or node.attr == "isoweekday" or resolver_of(program).classes_of(replace(value, node=node.value)):
        return None
    return Span(*bounds) if is_about_dates(program) else None


def is_about_dates(program: Program) -> bool:
    """Whether a program imports what has to do with dates."""
    return any(
        one.partition(".")[0] in _DATES for file in program.parsed() for one in program.names(file).imports.values()
    )


def _of_expression(node: ast.expr, value: Value, column: int | None, program: Program, depth: int) -> Span | None:
    """The span of a literal, of arithmetic, or of what a call makes."""
    number = number_of(node, program.names(value.file))
    if number is not None:
        return Span(int(number), int(number)) if number == int(number) else None
    if isinstance(node, ast.BinOp):
        return _of_arithmetic(node, value, column, program, depth)
    if isinstance(node, (ast.List, ast.Tuple, ast.Set)):
        return _of_list(node, value, column, program, depth)
    if isinstance(node, (ast.ListComp, ast.GeneratorExp)):
        return _all(replace(value, node=node.elt), column, program, depth)
    if isinstance(node, ast.Attribute):
        if node.attr in _SAME:
            return _all(replace(value, node=node.value), column, program, depth)
        return _of_calendar(node, value, program)
    return _of_call(node, value, column, program, depth) if isinstance(node, ast.Call) else None


def _all(value: Value, column: int | None, program: Program, depth: int) -> Span | None:
    return _union(_spans(value, column, program, depth + 1))


def _of_arithmetic(node: ast.BinOp, value: Value, column: int | None, program: Program, depth: int) -> Span | None:
    """A span that a number moves, scales or wraps."""
    right = integer_of(replace(value, node=node.right), program)
    if isinstance(node.op, ast.Mod) and right is not None and right > 0:
        return Span(0, right - 1)
    if right is None and isinstance(node.op, ast.Add):
        right, inner = integer_of(replace(value, node=node.left), program), node.right
    else:
        inner = node.left
    span = _all(replace(value, node=inner), column, program, depth) if right is not None else None
    if span is None or right is None or (isinstance(node.op, (ast.Mult, ast.FloorDiv)) and right <= 0):
        return None
    ends = [_arithmetic(node.op, one, right) for one in (span.low, span.high)]
    return Span(ends[0], ends[1]) if ends[0] is not None and ends[1] is not None else None


def _of_list(
    node: ast.List | ast.Tuple | ast.Set, value: Value, column: int | None, program: Program, depth: int
) -> Span | None:
    """Of a list of rows the column, of a row its entry, of plain numbers all."""
    rows = [one for one in node.elts if isinstance(one, (ast.List, ast.Tuple))]
    if column is None or len(rows) == len(node.elts):
        return _union(_all(replace(value, node=one), column, program, depth) for one in node.elts)
    is_there = -len(node.elts) <= column < len(node.elts)
    return _all(replace(value, node=node.elts[column]), None, program, depth) if is_there else None


def _of_call(node: ast.Call, value: Value, column: int | None, program: Program, depth: int) -> Span | None:
    called = program.names(value.file).qualified(node.func) or ""
    method = node.func.attr if isinstance(node.func, ast.Attribute) else ""
    drawn = _DRAWS.get(called) or _METHODS.get(method)
    if drawn is not None:
        return drawn(node, value, program)
    if called in _TENSORS and node.args:
        return _all(replace(value, node=node.args[0]), column, program, depth)
    if called in _STACKS or called == "numpy.column_stack":
        return _of_stack(node, value, column, program, depth, is_last=called == "numpy.column_stack")
    if called in _JOINS and node.args and column is None:
        return _all(replace(value, node=node.args[0]), None, program, depth)
    if called == "torch.nn.utils.rnn.pad_sequence" and node.args:
        return _padded(node, value, column, program, depth)
    if called.startswith(("torch.", "numpy.")) or not isinstance(node.func, ast.Attribute):
        return None
    if method in ("isoweekday", "weekday") and not node.args:
        return _of_calendar_method(method, program)
    return _all(replace(value, node=node.func.value), column, program, depth) if method in _SAME else None


def _of_calendar_method(method: str, program: Program) -> Span | None:
    return Span(*CALENDAR[method]) if is_about_dates(program) else None


def _of_stack(
    node: ast.Call, value: Value, column: int | None, program: Program, depth: int, *, is_last: bool
) -> Span | None:
    """Codes side by side; the place of one counts only where they lie along the last dimension."""
    parts = node.args[0] if node.args else None
    if not isinstance(parts, (ast.List, ast.Tuple)):
        return _all(replace(value, node=parts), column, program, depth) if parts is not None else None
    if column is None:
        return _of_list(parts, value, None, program, depth)
    given = [one.value for one in node.keywords if one.arg in ("dim", "axis")] + list(node.args[1:2])
    dimension = number_of(given[0], program.names(value.file)) if given else None
    is_flat = dimension == 1 and any(_is_flat(replace(value, node=one), program) for one in parts.elts)
    is_last = is_last or dimension == -1 or is_flat
    return _of_list(parts, value, column, program, depth) if is_last else None


def _padded(node: ast.Call, value: Value, column: int | None, program: Program, depth: int) -> Span | None:
    """Rows of different lengths, with what fills them up."""
    given = next((one.value for one in node.keywords if one.arg == "padding_value"), None)
    given = given or (node.args[2] if len(node.args) > 2 else ast.Constant(value=0))
    fill = integer_of(replace(value, node=given), program)
    rows = _all(replace(value, node=node.args[0]), column, program, depth)
    return _union([rows, Span(fill, fill)]) if fill is not None else None


def _drawn(inclusive: bool = False) -> Callable[[ast.Call, Value, Program], Span | None]:  # noqa: FBT001, FBT002
    """Reads `f(low, high)` or `f(high)`, with the end left out unless it is `inclusive`."""

    def read(node: ast.Call, value: Value, program: Program) -> Span | None:
        named = {one.arg: one.value for one in node.keywords}
        given = [one for one in node.args[:2] if not isinstance(one, (ast.Tuple, ast.List))]
        low = named.get("low") or (given[0] if len(given) > 1 else None)
        high = named.get("high") or (given[-1] if given else None)
        if high is None or any(isinstance(one, ast.Starred) for one in given):
            return None
        first = integer_of(replace(value, node=low), program) if low is not None else 0
        last = integer_of(replace(value, node=high), program)
        endpoint = named.get("endpoint")
        is_whole = inclusive or (isinstance(endpoint, ast.Constant) and endpoint.value is True)
        if first is None or last is None:
            return None
        return Span(first, last if is_whole else last - 1)

    return read


def _bucketed(node: ast.Call, value: Value, program: Program) -> Span | None:
    """Reads `np.searchsorted(edges, x)` and its like: from 0 to the number of edges."""
    edges = edge_count(node, value, program)
    return Span(0, edges) if edges is not None else None


_DRAWS = {
    **dict.fromkeys(("torch.randint", "numpy.random.randint", "random.randrange", *_RANGES), _drawn()),
    "random.randint": _drawn(inclusive=True),
    **dict.fromkeys(BUCKETS, _bucketed),
}
_METHODS = {"integers": _drawn(), "randrange": _drawn(), "random_": _drawn()}
