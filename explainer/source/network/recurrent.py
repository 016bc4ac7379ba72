"""Recurrent layers and what their first state is made of."""

from __future__ import annotations

import ast

RECURRENT = ("torch.nn.LSTM", "torch.nn.GRU", "torch.nn.RNN")
_MAKERS = ("zeros", "ones", "randn", "rand", "full", "new_zeros", "new_ones", "empty")


def first_size(node: ast.expr) -> ast.expr | None:
    """The first size that a call makes a tensor of: `n` of `torch.zeros(n, 4)`, of `x.new_zeros((n, 4))`."""
    if not isinstance(node, ast.Call) or getattr(node.func, "attr", "") not in _MAKERS or not node.args:
        return None
    size = node.args[0]
    return size.elts[0] if isinstance(size, (ast.Tuple, ast.List)) and size.elts else size
