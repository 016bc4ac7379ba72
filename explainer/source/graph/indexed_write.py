"""Writes by index, which keep the dtype of what they write into: `y[i] = x`, `y.index_add_(0, i, x)`."""

from __future__ import annotations

import ast

WRITERS = frozenset(
    ("index_add_", "index_add", "index_copy_", "index_copy", "scatter_add_", "scatter_add", "scatter_", "scatter_reduce_")
)  # fmt: skip
WHOLE_TYPES = frozenset({"long", "int", "short", "char", "byte", "bool", "int64", "int32"})
"""What messages call the dtypes that hold no fractions, in small letters."""


def indexed_write(node: ast.AST) -> tuple[ast.expr, ast.expr] | None:
    """What an assignment or a call writes into, and the values that it is given; None for any other node."""
    if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Subscript):
        return node.targets[0].value, node.value
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute) or node.func.attr not in WRITERS:
        return None
    given = next((one.value for one in node.keywords if one.arg in ("source", "src")), None)
    value = given or (node.args[2] if len(node.args) > 2 else None)
    return (node.func.value, value) if value is not None else None
