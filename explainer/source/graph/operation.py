"""What an expression computes, in autograd's own names, and what its backward keeps.

The table was read from torch 2.13's `derivatives.yaml` names as they appear in `grad_fn`: `ReluBackward0` is "Relu".
"""

from __future__ import annotations

import ast
from typing import NamedTuple

from explainer.source.file import SourceFile
from explainer.source.name import Names
from explainer.source.program import Program
from explainer.source.tree import walk

_DEPTH = 4

# Backward reads the operation's own result.
SAVES_OUTPUT = frozenset(
    {
        "Relu",
        "Sigmoid",
        "Tanh",
        "Exp",
        "Softmax",
        "LogSoftmax",
        "Sqrt",
        "Rsqrt",
        "Reciprocal",
        "Elu",
        "Exp2",
        "Expm1",
        "Tan",
        "Cumprod",
        "LinalgVectorNorm",
        "Logsumexp",
        "Std",
        "Prod",
        "Amax",
        "Amin",
        "ScaledDotProductAttention",
    }
)
_SAVES_OUTPUT_IN_PLACE = frozenset({"Elu"})  # the plain form saves its input
# Backward reads an operand.
SAVES_INPUT = frozenset(
    {
        "Mul", "Div", "Pow", "Mm", "Bmm", "Addmm", "Mv", "Dot", "Convolution", "NativeBatchNorm", "NativeLayerNorm", "Gelu", "Silu",
        "Sin", "Cos", "Log", "Log1P", "Abs", "LinalgVectorNorm", "Std", "Var", "Prod", "Logsumexp", "MseLoss", "SmoothL1Loss",
        "BinaryCrossEntropy", "LeakyRelu", "Softplus", "Hardtanh", "Clamp", "Hardswish", "Mish", "Prelu", "Erf", "Square", "Where",
        "ScaledDotProductAttention", "GroupNorm", "Huber", "Cdist", "Atan2", "Bilinear", "LogSigmoid", "Baddbmm", "Addcmul",
    }
)  # fmt: skip

_OPERATORS: dict[type[ast.AST], str] = {
    ast.Add: "Add", ast.Sub: "Sub", ast.Mult: "Mul", ast.Div: "Div", ast.Pow: "Pow", ast.MatMult: "Mm",
    ast.USub: "Neg",
}  # fmt: skip
# Functions of `torch`, `torch.nn.functional` and methods of tensors that are not named like their node.
_FUNCTIONS = {
    "matmul": "Mm", "linear": "Addmm", "einsum": "Bmm", "conv1d": "Convolution", "conv2d": "Convolution", "conv3d": "Convolution",
    "conv_transpose2d": "Convolution", "batch_norm": "NativeBatchNorm", "layer_norm": "NativeLayerNorm", "norm": "LinalgVectorNorm",
    "log_softmax": "LogSoftmax", "clamp_min": "Clamp", "clamp_max": "Clamp", "clip": "Clamp", "multiply": "Mul", "divide": "Div",
    "square": "Pow", "t": "T", "mT": "Transpose", "flatten": "View", "reshape": "View", "relu6": "Hardtanh",
    "scaled_dot_product_attention": "ScaledDotProductAttention", "cat": "Cat", "concat": "Cat", "logsumexp": "Logsumexp",
}  # fmt: skip
_MODULES = {
    "Linear": "Addmm", "Conv1d": "Convolution", "Conv2d": "Convolution", "Conv3d": "Convolution", "ConvTranspose2d": "Convolution",
    "BatchNorm1d": "NativeBatchNorm", "BatchNorm2d": "NativeBatchNorm", "BatchNorm3d": "NativeBatchNorm", "ReLU": "Relu",
    "ReLU6": "Hardtanh", "ELU": "Elu", "SELU": "Elu", "CELU": "Elu", "GELU": "Gelu", "SiLU": "Silu", "LeakyReLU": "LeakyRelu",
    "LayerNorm": "NativeLayerNorm", "GroupNorm": "GroupNorm", "LogSoftmax": "LogSoftmax", "Hardswish": "Hardswish", "PReLU": "Prelu",
    "Flatten": "View", "Embedding": "Embedding", "Softplus": "Softplus", "Hardtanh": "Hardtanh", "LogSigmoid": "LogSigmoid",
}  # fmt: skip
# What a name of a node in a message may stand for in source: nn.Linear is Addmm for matrices, a view of Mm above them.
_ALIKE = {
    "Addmm": {"Addmm", "View", "UnsafeView", "Add", "Mm", "T", "AsStrided"},
    "Mm": {"Mm", "Bmm", "UnsafeView", "Mv", "Dot", "Squeeze", "View"},
    "NativeBatchNorm": {"NativeBatchNorm", "CudnnBatchNorm", "MiopenBatchNorm", "BatchNorm"},
    "Convolution": {
        "Convolution",
        "MkldnnConvolution",
        "CudnnConvolution",
        "ThnnConv2D",
        "SlowConv2D",
        "ConvolutionOverrideable",
    },
    "View": {"View", "UnsafeView", "Reshape", "ReshapeAlias", "AsStrided", "Clone"},
    "NativeLayerNorm": {"NativeLayerNorm", "LayerNorm"},
    "ScaledDotProductAttention": {
        "ScaledDotProductAttention",
        "ScaledDotProductFlashAttentionForCpu",
        "ScaledDotProductFlashAttention",
        "ScaledDotProductEfficientAttention",
        "ScaledDotProductCudnnAttention",
    },
    "Elu": {"Elu", "Selu", "Celu"},
}


# Where `inplace` stands among the positional arguments of a module; one later in its function, behind the input.
INPLACE_OF_MODULE = {
    "ReLU": 0, "ReLU6": 0, "SiLU": 0, "SELU": 0, "Hardswish": 0, "Hardsigmoid": 0, "Mish": 0, "ELU": 1, "CELU": 1, "LeakyReLU": 1,
    "Dropout": 1, "Dropout2d": 1, "Dropout3d": 1, "Threshold": 2, "Hardtanh": 2, "RReLU": 2,
}  # fmt: skip
INPLACE_OF_FUNCTION = {
    "relu": 1, "relu6": 1, "silu": 1, "selu": 1, "hardswish": 1, "mish": 1, "elu": 2, "celu": 2, "leaky_relu": 2, "dropout": 3,
}  # fmt: skip


_BROADCAST = frozenset(("mul", "add", "sub", "div", "mul_", "add_", "sub_", "div_", "masked_fill", "masked_fill_"))


class Operation(NamedTuple):
    """An operation and its operands; `name` is autograd's, without `Backward0`. Its result may be its first operand's memory."""

    name: str
    operands: tuple[ast.expr, ...]
    is_in_place: bool = False


def operation_of(node: ast.expr | None, file: SourceFile, program: Program, depth: int = 0) -> Operation | None:
    """What `node` computes last; None where that is not known."""
    names = program.names(file)
    if isinstance(node, ast.BinOp):
        name = _OPERATORS.get(type(node.op))
        return Operation(name, (node.left, node.right)) if name else None
    if isinstance(node, ast.UnaryOp):
        name = _OPERATORS.get(type(node.op))
        return Operation(name, (node.operand,)) if name else None
    if isinstance(node, ast.Subscript):
        if isinstance(node.slice, ast.Constant) and isinstance(node.slice.value, str):
            return None  # an entry of a dictionary
        return Operation("Index" if not _is_slice(node.slice) else "Slice", (node.value,))
    if not isinstance(node, ast.Call) or depth > _DEPTH:
        return None
    return _called(node, names) or _module_called(node, file, program, depth)


def broadcast_sides(node: ast.AST) -> tuple[ast.expr, ast.expr] | None:
    """The two sides of an operation that works element by element: `a + b`, `a += b`, `a.mul_(b)`, `a.masked_fill(b, value)`.

    Of `torch.where(mask, a, b)` the mask and what it chooses first.
    """
    if isinstance(node, ast.BinOp) and not isinstance(node.op, ast.MatMult):
        return node.left, node.right
    if isinstance(node, ast.AugAssign):
        return node.target, node.value
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute) or not node.args:
        return None
    if node.func.attr == "where" and len(node.args) == 3:
        return node.args[0], node.args[1]
    return (node.func.value, node.args[0]) if node.func.attr in _BROADCAST else None


def saves_output(operation: Operation) -> bool:
    """Whether the operation's backward reads its own result."""
    return operation.name in SAVES_OUTPUT and (operation.is_in_place or operation.name not in _SAVES_OUTPUT_IN_PLACE)


def operator_name(operator: ast.AST) -> str | None:
    """The node of an operator: `+` is Add."""
    return _OPERATORS.get(type(operator))


def is_named(operation: Operation, node: str) -> bool:
    """Whether a node's name in a message ("Relu", "UnsafeView") can be that operation."""
    wanted = _ALIKE.get(operation.name, {operation.name})
    return node.lower() in {one.lower() for one in wanted}


def _is_slice(node: ast.expr) -> bool:
    parts = node.elts if isinstance(node, ast.Tuple) else [node]
    return any(isinstance(part, ast.Slice) for part in parts)


def _called(node: ast.Call, names: Names) -> Operation | None:
    """A function of torch, or a method that tensors have."""
    called = names.qualified(node.func) or ""
    owner, _, last = called.rpartition(".")
    operands = tuple(one for one in node.args if not isinstance(one, ast.Starred))
    if owner in ("torch", "torch.nn.functional", "torch.special", "torch.linalg"):
        is_in_place = last.endswith("_") or is_inplace(node, INPLACE_OF_FUNCTION.get(last))
        return Operation(node_name(last), operands, is_in_place)
    if owner.startswith(("torch.nn", "self")):
        return None  # a module, or the call of one
    if isinstance(node.func, ast.Attribute) and node_name(node.func.attr) in _KNOWN:
        return Operation(node_name(node.func.attr), (node.func.value, *operands), node.func.attr.endswith("_"))
    return None


def is_inplace(call: ast.Call, place: int | None) -> bool:
    """Whether a call says `inplace=True`, by name or as the positional argument at `place`."""
    given = [one.value for one in call.keywords if one.arg == "inplace"]
    if place is not None and len(call.args) > place:
        given.append(call.args[place])
    return any(isinstance(one, ast.Constant) and one.value is True for one in given)


def node_name(function: str) -> str:
    """The node of a function: `log_softmax` is LogSoftmax, `relu_` is Relu."""
    plain = function.rstrip("_")
    return _FUNCTIONS.get(plain) or "".join(part.capitalize() for part in plain.split("_"))


_KNOWN = SAVES_OUTPUT | SAVES_INPUT | {
    "Add", "Sub", "Neg", "View", "Transpose", "T", "Permute", "Cat", "Sum", "Mean", "Clone", "Expand", "Unsqueeze", "Squeeze",
    "Chunk", "Split", "Unbind", "Detach", "Index", "Slice", "Select", "Contiguous", "Float", "Half",
}  # fmt: skip


def _module_called(node: ast.Call, file: SourceFile, program: Program, depth: int) -> Operation | None:
    """`self.act(x)`, `model(x)`: what the module's constructor or its class's forward says."""
    made = constructor_of(node.func, file, program)
    if made is None:
        return None
    where, call = made
    called = program.names(where).qualified(call.func) or ""
    owner, _, last = called.rpartition(".")
    if owner in ("torch.nn", "torch.nn.modules"):
        if last == "Sequential" and call.args and isinstance(call.args[-1], ast.Call):
            return _of_constructor(call.args[-1], where, program, node, depth)
        return _of_layer(call, last, node)
    return _of_class(called, program, node, depth)


def _of_layer(call: ast.Call, name: str, node: ast.Call) -> Operation:
    return Operation(_MODULES.get(name, name), tuple(node.args), is_inplace(call, INPLACE_OF_MODULE.get(name)))


def layer_operation(call: ast.Call, file: SourceFile, program: Program) -> Operation | None:
    """What a layer of torch.nn computes, by the call that makes it; None for other classes."""
    owner, _, last = (program.names(file).qualified(call.func) or "").rpartition(".")
    return _of_layer(call, last, call) if owner == "torch.nn" else None


def _of_constructor(call: ast.Call, file: SourceFile, program: Program, node: ast.Call, depth: int) -> Operation | None:
    called = program.names(file).qualified(call.func) or ""
    owner, _, last = called.rpartition(".")
    if owner == "torch.nn":
        return _of_layer(call, last, node)
    return _of_class(called, program, node, depth)


def _of_class(called: str, program: Program, node: ast.Call, depth: int) -> Operation | None:
    """The last operation of a class's own forward."""
    found = program.find_class(called)
    if found is None:
        return None
    file, owner = found
    forward = next((one for one in owner.body if isinstance(one, ast.FunctionDef) and one.name == "forward"), None)
    returns = [one for one in walk(forward) if isinstance(one, ast.Return)] if forward else []
    if len(returns) != 1:
        return None
    value = returns[0].value
    if isinstance(value, ast.Name) and forward is not None:
        bound = program.names(file).assignments(value.id, forward)
        value = bound[-1].value if bound and not isinstance(bound[-1], ast.AugAssign) else None
    inner = operation_of(value, file, program, depth + 1)
    return Operation(inner.name, tuple(node.args), inner.is_in_place) if inner else None


def constructor_of(func: ast.expr, file: SourceFile, program: Program) -> tuple[SourceFile, ast.Call] | None:
    """The call that made the module behind `self.name` or `name`, and its file; None where it is not one call."""
    names = program.names(file)
    if isinstance(func, ast.Attribute) and isinstance(func.value, ast.Name) and func.value.id == "self":
        owner = names.class_of(func)
        value = names.attribute_value(owner, func.attr) if owner else None
    elif isinstance(func, ast.Name) and file.tree is not None:
        bound = [one for one in names.assignments(func.id, file.tree) if isinstance(one, ast.Assign)]
        value = _assigned(bound[0], func.id) if len(bound) == 1 else None
    else:
        return None
    return (file, value) if isinstance(value, ast.Call) else None


def _assigned(statement: ast.Assign, name: str) -> ast.expr | None:
    """What a statement gives to `name`, also in `a, b = x, y`."""
    target = statement.targets[0]
    if isinstance(target, ast.Name):
        return statement.value
    if isinstance(target, ast.Tuple) and isinstance(statement.value, ast.Tuple):
        for one, value in zip(target.elts, statement.value.elts, strict=False):
            if isinstance(one, ast.Name) and one.id == name:
                return value
    return None
