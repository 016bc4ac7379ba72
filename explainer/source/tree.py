"""Syntax trees walked fast: the children of a node are looked for once, however many readers ask."""

from __future__ import annotations

import ast
from collections import deque
from collections.abc import Iterator

_KNOWN = "_gradfix_children"


def children(node: ast.AST) -> tuple[ast.AST, ...]:
    """The nodes directly under one, as `ast.iter_child_nodes` gives them; kept in the node, whose fields must not change."""
    known: tuple[ast.AST, ...] | None = node.__dict__.get(_KNOWN)
    if known is None:
        known = node.__dict__[_KNOWN] = tuple(ast.iter_child_nodes(node))
    return known


def walk(node: ast.AST) -> Iterator[ast.AST]:
    """A node and all under it, outer ones before inner ones: the order of `ast.walk`."""
    todo = deque((node,))
    while todo:
        one = todo.popleft()
        todo.extend(children(one))
        yield one
