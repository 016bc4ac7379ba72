"""Statements that write a model's weights in place, as the source shows it."""

from __future__ import annotations

import ast

from explainer.source.tree import walk

_WALKS = frozenset({"parameters", "named_parameters"})
_NO_WRITES = frozenset({"requires_grad_", "detach_", "share_memory_", "retain_grad_"})


def is_weight_write(node: ast.AST) -> bool:
    """Whether a loop over a model's parameters writes them in place, so that autograd sees it: `p.mul_(scale)`, not `p.data.mul_(scale)`.

    Example: `for p in net.parameters(): p.clamp_(-1, 1)`.
    """
    if not isinstance(node, ast.For):
        return False
    walked = {
        one.func.attr for one in walk(node.iter) if isinstance(one, ast.Call) and isinstance(one.func, ast.Attribute)
    }
    names = {one.id for one in walk(node.target) if isinstance(one, ast.Name)}
    return bool(walked & _WALKS) and any(_writes(one, names) for part in node.body for one in walk(part))


def _writes(node: ast.AST, names: set[str]) -> bool:
    if isinstance(node, ast.AugAssign):
        return isinstance(node.target, ast.Name) and node.target.id in names
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
        return False
    receiver, method = node.func.value, node.func.attr
    is_in_place = method.endswith("_") and not method.endswith("__") and method not in _NO_WRITES
    return is_in_place and isinstance(receiver, ast.Name) and receiver.id in names
