"""The shape of an expression, from the tensors that the failing frame held; sizes that are not known stand as None."""

from __future__ import annotations

import ast
import re

from explainer.fix.clue.seen import seen
from explainer.fix.codemod import Context
from explainer.source.file import SourceFile
from explainer.source.loss.loss import Loss, loss_at
from explainer.source.name import Names
from explainer.source.value.binding import Value
from explainer.source.value.number import number_of
from explainer.source.value.resolve import resolver_of

Shape = tuple[int | None, ...]
# Two sizes that do not fit, and the axis, counted from 0 in the tensor of more axes.
REFUSED = re.compile(
    r"size of tensor a \((\d+)\) must match the size of tensor b \((\d+)\) at non-singleton dimension (\d+)"
)
SPATIAL = -1  # a size that is known to count pixels or steps, and not what it is
_SAME = frozenset(
    ("sqrt", "rsqrt", "exp", "log", "log1p", "abs", "neg", "square", "pow", "sigmoid", "tanh", "relu", "softplus", "sin", "cos",
     "float", "double", "half", "long", "bool", "int", "to", "type", "clamp", "clamp_min", "clamp_max", "detach", "clone",
     "contiguous", "reciprocal", "softmax", "log_softmax", "cumsum", "cumprod", "masked_fill", "round", "floor", "ceil", "sign",
     "logical_not", "ne", "eq", "gt", "lt", "ge", "le", "cpu", "cuda", "type_as", "gelu", "silu", "dropout", "normalize",
     "layer_norm", "nan_to_num", "bfloat16")
)  # fmt: skip
_REDUCING = frozenset(("sum", "mean", "amax", "amin", "std", "var", "norm", "logsumexp", "prod", "any", "all"))
_ROWS = frozenset(("torch.nn.Linear", "torch.nn.Embedding"))
_KEEPS = frozenset(
    ("ReLU", "SiLU", "GELU", "Tanh", "Sigmoid", "Mish", "ELU", "LeakyReLU", "Softplus", "Hardswish", "Dropout", "LayerNorm",
     "BatchNorm1d", "Identity")
)  # fmt: skip
_CONVOLUTIONS = {"torch.nn.Conv1d": 1, "torch.nn.Conv2d": 2, "torch.nn.Conv3d": 3}


def seen_shape(node: ast.expr, file: SourceFile, context: Context) -> Shape | None:
    """The shape of what an expression of the failing statement gives, as far as it follows from what was seen; None if not."""
    tensor = seen(node, context)
    if tensor is not None:
        return tensor.shape
    if isinstance(node, ast.UnaryOp):
        return seen_shape(node.operand, file, context)
    if isinstance(node, ast.Compare) and len(node.comparators) == 1:
        return _together(node.left, node.comparators[0], file, context)
    if isinstance(node, ast.BinOp) and not isinstance(node.op, ast.MatMult):
        return _together(node.left, node.right, file, context)
    if isinstance(node, ast.Subscript):
        is_written = isinstance(node.slice, (ast.Tuple, ast.Constant, ast.UnaryOp, ast.Slice))
        return _with_axes(node, file, context) if is_written else _gathered(node, file, context)
    return _of_call(node, file, context) if isinstance(node, ast.Call) else None


def broadcast(left: Shape, right: Shape) -> Shape | None:
    """The shape of two operands together; None where they are known not to fit."""
    longer, shorter = (left, right) if len(left) >= len(right) else (right, left)
    start = len(longer) - len(shorter)
    found = list(longer[:start])
    for one, other in zip(longer[start:], shorter, strict=True):
        if not are_one(one, other):
            return None
        found.append(other if one in (1, None, SPATIAL) else one)
    return tuple(found)


def are_one(left: int | None, right: int | None) -> bool:
    """Whether two sizes may stand against each other: equal, one of them 1, or not known."""
    return left == right or not {left, right}.isdisjoint({1, None, SPATIAL})


def _together(left: ast.expr, right: ast.expr, file: SourceFile, context: Context) -> Shape | None:
    names = context.program.names(file)
    for one, other in ((left, right), (right, left)):
        if number_of(one, names) is not None:
            return seen_shape(other, file, context)
    shapes = seen_shape(left, file, context), seen_shape(right, file, context)
    return broadcast(shapes[0], shapes[1]) if shapes[0] is not None and shapes[1] is not None else None


def _gathered(node: ast.Subscript, file: SourceFile, context: Context) -> Shape | None:
    """`table[indices]`: the shape of the indices, and that of a row behind it."""
    table, index = seen_shape(node.value, file, context), seen(node.slice, context)
    return (*index.shape, *table[1:]) if table and index is not None and index.is_integer else None


def _with_axes(node: ast.Subscript, file: SourceFile, context: Context) -> Shape | None:
    """`mask[:, :, None]`, `ids[:, 1:]`: an axis of 1 for each None, one less for each number; nothing is known of other indices."""
    shape, found = seen_shape(node.value, file, context), list[int | None]()
    left = list(shape) if shape is not None else []
    for one in node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]:
        if isinstance(one, ast.Slice) and left:
            found.append(_cut(left.pop(0), one, context.program.names(file)))
        elif isinstance(one, ast.Constant) and one.value is None:
            found.append(1)
        elif left and (_is_place(one) or _is_counted(one, file)):
            left.pop(0)
        else:
            return None
    return (*found, *left) if shape is not None else None


def _cut(size: int | None, cut: ast.Slice, names: Names) -> int | None:
    """What a slice leaves of an axis."""
    if (cut.lower, cut.upper, cut.step) == (None, None, None):
        return size
    ends = [number_of(one, names) if one is not None else None for one in (cut.lower, cut.upper, cut.step)]
    is_known = all(
        (one is None) == (end is None) for one, end in zip((cut.lower, cut.upper, cut.step), ends, strict=True)
    )
    if size in (None, SPATIAL) or not is_known or ends[2] == 0:
        return size if size == SPATIAL else None
    return len(range(size)[slice(*(int(one) if one is not None else None for one in ends))])


def _is_place(node: ast.expr) -> bool:
    """Whether an index is a number: `0`, `-1`."""
    inner = node.operand if isinstance(node, ast.UnaryOp) else node
    return isinstance(inner, ast.Constant) and type(inner.value) is int


def _is_counted(node: ast.expr, file: SourceFile) -> bool:
    """Whether an index is the number of a loop: `for i in range(n)`."""
    loops = (one for one in file.around(node) if isinstance(one, ast.For) and isinstance(node, ast.Name))
    return any(
        isinstance(one.target, ast.Name)
        and one.target.id == ast.unparse(node)
        and isinstance(one.iter, ast.Call)
        and isinstance(one.iter.func, ast.Name)
        and one.iter.func.id == "range"
        for one in loops
    )


def _of_call(node: ast.Call, file: SourceFile, context: Context) -> Shape | None:
    func = node.func
    called = context.program.names(file).qualified(func) or ""
    method = called.removeprefix("torch.nn.functional.").removeprefix("torch.")
    if called.startswith("torch.") and method in _SAME and node.args:
        return seen_shape(node.args[0], file, context)
    attribute = func.attr if isinstance(func, ast.Attribute) else ""
    if isinstance(func, ast.Attribute) and attribute in _SAME:
        return seen_shape(func.value, file, context)
    if isinstance(func, ast.Attribute) and attribute == "unsqueeze" and len(node.args) == 1:
        return _unsqueezed(seen_shape(func.value, file, context), node.args[0], context.program.names(file))
    if isinstance(func, ast.Attribute) and attribute in _REDUCING:
        return _reduced(seen_shape(func.value, file, context), node, file, context)
    loss = loss_at(node, file, context.program)
    return _of_loss(loss, file, context) if loss is not None else _of_layer(node, file, context)


def _of_loss(loss: Loss, file: SourceFile, context: Context) -> Shape | None:
    """What an unreduced loss gives: a value for each element, or for each label; nothing of one that is reduced."""
    if loss.reduction != "none":
        return () if loss.reduction in ("mean", "sum") else None
    if not loss.takes_classes:
        return _together(loss.prediction, loss.target, file, context)
    target = seen(loss.target, context)
    return target.shape if target is not None and target.is_integer else None


def _unsqueezed(shape: Shape | None, axis: ast.expr, names: Names) -> Shape | None:
    """A shape with an axis of 1 more."""
    number = number_of(axis, names)
    if shape is None or number is None or not -len(shape) - 1 <= number <= len(shape):
        return None
    at = int(number) % (len(shape) + 1)
    return (*shape[:at], 1, *shape[at:])


def _reduced(shape: Shape | None, node: ast.Call, file: SourceFile, context: Context) -> Shape | None:
    """What a reduction of one axis leaves."""
    keywords = {one.arg: one.value for one in node.keywords}
    axis = keywords.get("dim", node.args[0] if len(node.args) == 1 else None)
    number = number_of(axis, context.program.names(file)) if axis is not None else None
    if shape is None or "keepdim" in keywords or number is None or not -len(shape) <= number < len(shape):
        return None
    at = int(number) % len(shape)
    return (*shape[:at], *shape[at + 1 :])


def is_row_of_layer(node: ast.expr, file: SourceFile, context: Context) -> bool:
    """Whether a call runs what ends in a linear layer or is a table of embeddings: rows of features, not images."""
    return isinstance(node, ast.Call) and _kind_of(node, file, context) in _ROWS


def _kind_of(node: ast.Call, file: SourceFile, context: Context) -> str:
    """The class of torch of which a layer that is called is; of linear layers and activations in a row that of the first."""
    made = resolver_of(context.program).constructors_of(Value(node.func, file))
    if len(made) != 1 or not isinstance(made[0].node, ast.Call):
        return ""
    names = context.program.names(made[0].file)
    kind = names.qualified(made[0].node.func) or ""
    if kind != "torch.nn.Sequential":
        return kind
    parts = [names.qualified(one.func) or "" if isinstance(one, ast.Call) else "" for one in made[0].node.args]
    is_plain = all(one in _ROWS or one.removeprefix("torch.nn.") in _KEEPS for one in parts)
    return next((one for one in parts if one in _ROWS), "") if is_plain else ""


def _of_layer(node: ast.Call, file: SourceFile, context: Context) -> Shape | None:
    """What a layer of torch makes of a tensor that was seen: its channels are not known, nor how many pixels are left."""
    given = seen(node.args[0], context) if len(node.args) == 1 else None
    if given is None:
        return None
    kind = _kind_of(node, file, context)
    if kind in _CONVOLUTIONS and len(given.shape) == _CONVOLUTIONS[kind] + 2:
        return (given.shape[0], None, *([SPATIAL] * _CONVOLUTIONS[kind]))
    if kind == "torch.nn.Linear" and given.shape:
        return (*given.shape[:-1], None)
    return (*given.shape, None) if kind == "torch.nn.Embedding" else None
