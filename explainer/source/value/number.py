"""The numbers that a program writes: constants, names of constants, arithmetic on them."""

from __future__ import annotations

import ast

from explainer.source.name import Names


def number_of(node: ast.AST | None, names: Names) -> float | None:
    """The number that an expression is, of constants, names of the file's constants, and arithmetic on them."""
    if isinstance(node, ast.Constant):
        is_plain = isinstance(node.value, (int, float)) and not isinstance(node.value, bool)
        return float(node.value) if is_plain else None  # type: ignore[arg-type]
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        inner = number_of(node.operand, names)
        return None if inner is None else -inner
    if isinstance(node, ast.BinOp):
        return _arithmetic(node, names)
    if isinstance(node, ast.Name):
        tree = names.file.tree
        bound = names.assignments(node.id, tree) if tree is not None else []
        plain = len(bound) == 1 and isinstance(bound[0], ast.Assign) and isinstance(bound[0].targets[0], ast.Name)
        made = bound[0].value if plain else None
        behind = made.operand if isinstance(made, ast.UnaryOp) else made
        return number_of(made, names) if isinstance(behind, ast.Constant) else None
    return None


def _arithmetic(node: ast.BinOp, names: Names) -> float | None:
    left, right = number_of(node.left, names), number_of(node.right, names)
    if left is None or right is None:
        return None
    try:
        if isinstance(node.op, ast.Add):
            return left + right
        if isinstance(node.op, ast.Sub):
            return left - right
        if isinstance(node.op, ast.Mult):
            return left * right
        if isinstance(node.op, ast.Div):
            return left / right
        result = left**right if isinstance(node.op, ast.Pow) and abs(right) < 100 else None
    except (ZeroDivisionError, OverflowError):
        return None
    return result if isinstance(result, float) else None
