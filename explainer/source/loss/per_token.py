"""What a loss over tokens is given, before it was flattened: the tensor of (batch, time, ...), and how its time axis was cut."""

from __future__ import annotations

import ast
from dataclasses import dataclass

from explainer.source.file import SourceFile
from explainer.source.name import Names
from explainer.source.value.binding import Bound, reaching

_STEPS = 12
# What leaves the positions in their order.
_KEEPS = frozenset({
    "reshape", "view", "flatten", "contiguous", "float", "double", "half", "long", "to", "clone", "transpose", "permute",
    "log_softmax", "softmax", "swapaxes", "movedim", "type", "detach",
})  # fmt: skip
_COPIES = frozenset(
    {"reshape", "flatten", "contiguous", "log_softmax", "softmax"}
)  # which lie in memory as they are read


@dataclass(frozen=True)
class PerToken:
    """A tensor with a value for each token. `cut` is the slice of its time axis, `node` what is cut: `logits` of `logits[:, :-1]`.

    `made` is the expression that the name in `node` is bound to, where that only reads: `batch["labels"]`. `is_viewed` where a
    `view` takes it as it lies in memory, which a part of it does not.
    """

    node: ast.expr
    cut: ast.Slice | None = None
    made: ast.expr | None = None
    is_viewed: bool = False


def per_token(node: ast.expr, axes: int, names: Names) -> PerToken | None:
    """What is behind an argument of a loss, through its own function's names; None where its time axis is cut in other ways.

    `axes` is how many it has there: 3 for scores, 2 for labels.
    """
    is_viewed = False
    for _ in range(_STEPS):
        inner = _kept(node, names)
        if inner is not None:
            method = getattr(getattr(node, "func", None), "attr", "")
            is_viewed = method == "view" or (is_viewed and method not in _COPIES)
            node = inner
            continue
        if isinstance(node, ast.Subscript) and not _is_key(node.slice):
            cut = _time_slice(node.slice, axes)
            return None if cut is None else _ended(node.value, names, cut=cut)
        bound = _bound(node, names.file)
        if bound is None or not _leads_on(bound.node, names):
            return _ended(node, names, is_viewed=is_viewed)
        node = bound.node
    return None


def _ended(node: ast.expr, names: Names, *, cut: ast.Slice | None = None, is_viewed: bool = False) -> PerToken | None:
    if not isinstance(node, (ast.Name, ast.Attribute, ast.Subscript)) or (names.qualified(node) or "").startswith(
        "torch."
    ):
        return None
    bound = _bound(node, names.file)
    made = bound.node if bound is not None and _is_read(bound.node) else None
    return PerToken(node, cut, made, is_viewed)


def _bound(node: ast.expr, file: SourceFile) -> Bound | None:
    """The one binding of a name that counts there."""
    found = reaching(node.id, node, file) if isinstance(node, ast.Name) else []
    is_plain = len(found) == 1 and found[0].pick is None and not found[0].is_element and not found[0].fills
    return found[0] if is_plain else None


def _leads_on(node: ast.expr, names: Names) -> bool:
    """Whether a name only stands for a part or another form of what it is bound to; what a mapping or a model gives is the end."""
    if isinstance(node, ast.Subscript):
        return not _is_key(node.slice)
    return isinstance(node, ast.Name) or _kept(node, names) is not None


def _kept(node: ast.expr, names: Names) -> ast.expr | None:
    """What a call hands on in another form, as a method or a function of torch."""
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute) or node.func.attr not in _KEEPS:
        return None
    if (names.qualified(node.func) or "").startswith("torch."):
        return node.args[0] if node.args else None
    return node.func.value


def _is_key(index: ast.expr) -> bool:
    """`batch["labels"]`, `outputs[0]`."""
    return isinstance(index, ast.Constant)


def _is_read(node: ast.expr) -> bool:
    while isinstance(node, ast.Attribute) or (isinstance(node, ast.Subscript) and _is_key(node.slice)):
        node = node.value
    return isinstance(node, ast.Name)


def _time_slice(index: ast.expr, axes: int) -> ast.Slice | None:
    """The slice of axis 1: of `[:, :-1]`, `[:, :-1, :]`, and `[..., :-1, :]` of scores, `[..., 1:]` of labels."""
    parts = index.elts if isinstance(index, ast.Tuple) else []
    if not parts or not all(isinstance(one, ast.Slice) or _is_dots(one) for one in parts):
        return None
    if _is_dots(parts[0]) and len(parts) != axes:
        return None
    cut = [one for one in parts if isinstance(one, ast.Slice) and (one.lower or one.upper)]
    place = parts.index(cut[0]) if len(cut) == 1 else 0
    return cut[0] if len(cut) == 1 and place == 1 and cut[0].step is None else None


def _is_dots(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is Ellipsis
