"""Buckets of n edges: `torch.bucketize` and its like give 0 to n, which a table of n rows does not hold."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import replace

from explainer.source.name import dotted_name
from explainer.source.network.buffer import registered
from explainer.source.program import Program
from explainer.source.value.binding import Value
from explainer.source.value.resolve import resolver_of

_DEPTH = 6
# The name of each, and which of its arguments holds the edges.
BUCKETS = {
    "torch.bucketize": (1, "boundaries"), "torch.searchsorted": (0, "sorted_sequence"), "numpy.digitize": (1, "bins"),
    "numpy.searchsorted": (0, "a"),
}  # fmt: skip
_COPIES = (
    "torch.tensor",
    "torch.as_tensor",
    "torch.from_numpy",
    "numpy.array",
    "numpy.asarray",
    "list",
    "sorted",
    "tuple",
)
_SPACES = ("torch.linspace", "torch.logspace", "numpy.linspace", "numpy.logspace", "numpy.geomspace")
_QUANTILES = ("numpy.quantile", "numpy.percentile", "numpy.nanquantile", "torch.quantile", "torch.nanquantile")


def has_a_row_too_few(index: Value, rows: Value, program: Program) -> bool:
    """Whether an index is a bucket, and a table has as many rows as there are edges, by the same expression."""
    said = rows.file.segment(rows.node)
    return any(said == one for edges in _edges_behind(index, program, 0) for one in _counts(edges, program, 0))


def edge_count(node: ast.Call, value: Value, program: Program) -> int | None:
    """How many edges the buckets of a call have; None where it gives no buckets, or where that does not show."""
    edges = _edges(node, value, program)
    counts = {int(one) for one in _counts(edges, program, 0) if one.isdigit()} if edges is not None else set()
    return counts.pop() if len(counts) == 1 else None


def _edges(node: ast.Call, value: Value, program: Program) -> Value | None:
    """The edges that a call of `torch.bucketize` or its like is given."""
    place = BUCKETS.get(program.names(value.file).qualified(node.func) or "")
    if place is None:
        return None
    given = next((one.value for one in node.keywords if one.arg == place[1]), None)
    given = given or (node.args[place[0]] if len(node.args) > place[0] else None)
    return replace(value, node=given) if given is not None else None


def _edges_behind(value: Value, program: Program, depth: int) -> Iterator[Value]:
    """The edges of the buckets that an expression gives, through names and functions of the program."""
    resolver, node = resolver_of(program), value.node
    if depth > _DEPTH:
        return
    if isinstance(node, ast.Call):
        edges = _edges(node, value, program)
        if edges is not None:
            yield edges
            return
        target = resolver.function_of(node, value)
        parts = list(resolver.returns_of(target, node, value)) if target is not None else []
    else:
        parts = list(resolver.behind(value)) if dotted_name(node) is not None else []
    for one in parts:
        yield from _edges_behind(one, program, depth + 1)


def _counts(edges: Value, program: Program, depth: int) -> Iterator[str]:
    """How many edges there are, as expressions that a table's rows may be given by."""
    node, names = edges.node, program.names(edges.file)
    if depth > _DEPTH:
        return
    if dotted_name(node) is not None:
        yield f"len({edges.file.segment(node)})"
        for one in (*resolver_of(program).behind(edges), *registered(edges, program)):
            yield from _counts(one, program, depth + 1)
    elif isinstance(node, ast.Call) and names.is_call(node, *_COPIES) and node.args:
        yield from _counts(replace(edges, node=node.args[0]), program, depth + 1)
    elif isinstance(node, ast.Call) and names.is_call(node, *_SPACES):
        number = next((one.value for one in node.keywords if one.arg in ("steps", "num")), None)
        number = number or (node.args[2] if len(node.args) > 2 else None)
        if number is not None:
            yield edges.file.segment(number)
    elif isinstance(node, ast.Call) and names.is_call(node, *_QUANTILES) and len(node.args) > 1:
        yield from _counts(replace(edges, node=node.args[1]), program, depth + 1)
    elif isinstance(node, (ast.List, ast.Tuple)) and not any(isinstance(one, ast.Starred) for one in node.elts):
        yield str(len(node.elts))
