"""Syntax trees walked fast: what is under a node is looked for once, however many readers ask."""

from __future__ import annotations

import ast
from collections.abc import Iterator

_CHILDREN, _UNDER = "_gradfix_children", "_gradfix_under"


def start_of(node: ast.AST) -> tuple[int, int]:
    """Line and column at which a node begins; (0, 0) of one that has no place, as a module."""
    return getattr(node, "lineno", 0), getattr(node, "col_offset", 0)


def end_of(node: ast.AST) -> tuple[int, int]:
    """Line and column behind a node; of a comprehension's `for` that of what it walks."""
    if isinstance(node, ast.comprehension):
        node = node.iter
    return getattr(node, "end_lineno", 0) or 0, getattr(node, "end_col_offset", 0) or 0


def children(node: ast.AST) -> tuple[ast.AST, ...]:
    """The nodes directly under one, in the order of its fields; kept in the node, whose fields must not change.

    Without Load, Store and Del: every name has one, and its `ctx` tells it.
    """
    known: tuple[ast.AST, ...] | None = node.__dict__.get(_CHILDREN)
    if known is None:
        known = node.__dict__[_CHILDREN] = tuple(
            one for one in ast.iter_child_nodes(node) if not isinstance(one, ast.expr_context)
        )
    return known


def walk(node: ast.AST) -> Iterator[ast.AST]:
    """A node and all under it, outer ones before inner ones: the order of `ast.walk`. Kept in statements, which are asked often."""
    known: list[ast.AST] | None = node.__dict__.get(_UNDER)
    if known is None:
        known = [node]
        for one in known:
            under = one.__dict__.get(_CHILDREN)
            known += children(one) if under is None else under
        if isinstance(node, ast.stmt):
            node.__dict__[_UNDER] = known
    return iter(known)
