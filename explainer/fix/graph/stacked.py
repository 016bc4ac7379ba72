"""Nested lists of scalar tensors and numbers, written as stacks that keep the graph: `[[c, -s, 0.0], [s, c, 0.0]]`."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from explainer.source.file import SourceFile

_COMPREHENSIONS = (ast.ListComp, ast.GeneratorExp)


def is_nested(node: ast.expr) -> bool:
    """Whether a list holds lists, or numbers among tensors: `torch.stack` takes tensors only."""
    if isinstance(node, (ast.List, ast.Tuple)):
        return any(isinstance(one, (ast.List, ast.Tuple)) or _number(one) is not None for one in node.elts)
    return isinstance(node, _COMPREHENSIONS) and isinstance(node.elt, (ast.List, ast.Tuple))


def stacked(node: ast.expr, file: SourceFile, torch: str) -> str | None:
    """The list as stacks of tensors, its numbers made like the first named one; None where there is none, or a `*` in it.

    Args:
        node: a list, tuple or comprehension of scalar tensors, numbers and such lists.
        file: where it stands.
        torch: what the file calls torch.
    """
    leaves = list(_leaves(node))
    bare = [one.operand if isinstance(one, ast.UnaryOp) else one for one in leaves if _number(one) is None]
    named = next((one for one in bare if isinstance(one, (ast.Name, ast.Attribute, ast.Subscript))), None)
    has_numbers = len(bare) < len(leaves)
    if not bare or (has_numbers and named is None) or any(isinstance(one, ast.Starred) for one in leaves):
        return None  # a call to make a number like would run twice
    return _text(node, file, torch, file.segment(named or bare[0]))


def _leaves(node: ast.expr) -> Iterator[ast.expr]:
    if isinstance(node, (ast.List, ast.Tuple)):
        for one in node.elts:
            yield from _leaves(one)
    elif isinstance(node, _COMPREHENSIONS):
        yield from _leaves(node.elt)
    else:
        yield node


def _number(node: ast.expr) -> float | None:
    """The value of a number that is written out."""
    inner = node.operand if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub) else node
    value = inner.value if isinstance(inner, ast.Constant) else None
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    return float(value) if inner is node else -float(value)


def _text(node: ast.expr, file: SourceFile, torch: str, like: str) -> str:
    if isinstance(node, _COMPREHENSIONS):
        rest = file.text[file.span(node.elt)[1] : file.span(node)[1] - 1]
        return f"{torch}.stack([{_text(node.elt, file, torch, like)}{rest}])"
    if isinstance(node, (ast.List, ast.Tuple)):
        return f"{torch}.stack([{', '.join(_text(one, file, torch, like) for one in node.elts)}])"
    number = _number(node)
    if number is None:
        return file.segment(node)
    known = {0.0: "zeros_like", 1.0: "ones_like"}.get(number)
    return f"{torch}.{known}({like})" if known else f"{torch}.full_like({like}, {file.segment(node)})"
