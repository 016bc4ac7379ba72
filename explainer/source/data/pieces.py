"""The columns into which a scope cuts a tensor, and how they are put together again: `x, t = p[:, :1], p[:, 1:]`."""

from __future__ import annotations

import ast
import itertools
from collections.abc import Iterator
from typing import NamedTuple

from explainer.source.name import dotted_name
from explainer.source.value.binding import Bound, bounds_of

_OPEN = 1 << 30  # where a slice without an end ends
_CUTS = {"unbind": "stack", "split": "cat", "chunk": "cat", "tensor_split": "cat"}


class _Piece(NamedTuple):
    name: str
    low: int
    high: int
    way: str
    statement: ast.AST


def joined_pieces(source: str, scope: ast.AST, torch: str) -> tuple[str, ast.AST] | None:
    """The text that joins all columns of a tensor, and the last statement that cuts one; None where they are not all known."""
    whole = next((one for bound in bounds_of(scope) if (one := _split_at_once(bound, source, torch)) is not None), None)
    if whole is not None:
        return whole
    found = sorted(_pieces(source, scope), key=lambda one: one.low)
    ways = {one.way for one in found}
    is_whole = bool(found) and found[0].low == 0 and all(a.high == b.low for a, b in itertools.pairwise(found))
    if len(found) < 2 or len(ways) != 1 or not is_whole:
        return None
    last = max((one.statement for one in found), key=lambda one: getattr(one, "lineno", 0))
    return f"{torch}.{ways.pop()}([{', '.join(one.name for one in found)}], dim=1)", last


def _split_at_once(bound: Bound, source: str, torch: str) -> tuple[str, ast.AST] | None:
    """`torch.cat([q, p], dim=-1)` of `q, p = state.split(n, dim=-1)`, whose names are all the parts there are."""
    made, call = bound.statement, bound.node
    target = made.targets[0] if isinstance(made, ast.Assign) and len(made.targets) == 1 else None
    if not isinstance(target, (ast.Tuple, ast.List)) or not isinstance(call, ast.Call) or bound.pick is None:
        return None
    func = call.func if isinstance(call.func, ast.Attribute) and call.func.attr in ("split", "chunk") else None
    names = [one.id for one in target.elts if isinstance(one, ast.Name)]
    given = {one.arg: one.value for one in call.keywords}
    dimension = given.get("dim", call.args[1] if len(call.args) > 1 else None)
    if func is None or dotted_name(func.value) != source or len(names) != len(target.elts) or dimension is None:
        return None
    return f"{torch}.cat([{', '.join(names)}], dim={ast.unparse(dimension)})", made


def _pieces(source: str, scope: ast.AST) -> Iterator[_Piece]:
    for bound in bounds_of(scope):
        piece = _piece(bound, source) if not bound.fills else None
        if piece is not None:
            yield piece


def _piece(bound: Bound, source: str) -> _Piece | None:
    node = bound.node
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "requires_grad_":
        node = node.func.value
    if isinstance(node, ast.Subscript) and dotted_name(node.value) == source:
        columns = _columns(node)
        return _Piece(bound.name, *columns, bound.statement) if columns is not None else None
    if not isinstance(node, ast.Call) or bound.pick is None or not isinstance(node.func, ast.Attribute):
        return None
    owner = dotted_name(node.func.value)
    given = node.args if owner == source else node.args[1:]
    is_of_source = owner == source or (bool(node.args) and dotted_name(node.args[0]) == source)
    way = _CUTS.get(node.func.attr)
    size = None if node.func.attr == "unbind" else given[0] if given else None
    dimension = next((one.value for one in node.keywords if one.arg == "dim"), given[-1] if given else None)
    is_second = isinstance(dimension, ast.Constant) and dimension.value == 1
    is_single = node.func.attr != "split" or (isinstance(size, ast.Constant) and size.value == 1)
    if way is None or not is_of_source or not is_second or not is_single:
        return None
    return _Piece(bound.name, bound.pick, bound.pick + 1, way, bound.statement)


def _columns(node: ast.Subscript) -> tuple[int, int, str] | None:
    """The columns of `x[:, 0:1]`, or of `x[:, 0]`, which loses the dimension."""
    parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else []
    if len(parts) != 2 or not isinstance(parts[0], ast.Slice) or parts[0].lower or parts[0].upper:
        return None
    columns = parts[1]
    if isinstance(columns, ast.Constant) and isinstance(columns.value, int):
        return columns.value, columns.value + 1, "stack"
    if not isinstance(columns, ast.Slice) or columns.step:
        return None
    low = columns.lower.value if isinstance(columns.lower, ast.Constant) else 0 if columns.lower is None else None
    high = columns.upper.value if isinstance(columns.upper, ast.Constant) else _OPEN if columns.upper is None else None
    return (low, high, "cat") if isinstance(low, int) and isinstance(high, int) else None
