"""What ends an autograd graph in source: values taken out of tensors, new tensors built of values, integers, grad mode."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from functools import lru_cache

from explainer.source.file import SourceFile
from explainer.source.name import Names
from explainer.source.program import Program
from explainer.source.tree import walk

DETACH, DATA, VALUE, ARRAY, COPY, LIBRARY = "detach", "data", "value", "array", "copy", "library"
INTEGER, STEP, SAMPLE, GRAD_MODE = "integer", "step", "sample", "grad mode"

CALLS_THROUGH = frozenset({"checkpoint", "vmap"})
GRAD_MODE_OFF = (
    "torch.no_grad", "torch.inference_mode", "torch.autograd.no_grad", "torch.autograd.grad_mode.no_grad",
    "torch.autograd.inference_mode",
)  # fmt: skip
"""What switches grad mode off, as a block or a decorator."""
_ON = frozenset({"torch.enable_grad", "torch.autograd.enable_grad"})
_MODES = frozenset({"torch.set_grad_enabled", "torch.autograd.set_grad_enabled"})
_METHODS = {
    "detach": DETACH, "detach_": DETACH, "item": VALUE, "tolist": VALUE, "numpy": ARRAY, "argmax": INTEGER, "argmin": INTEGER,
    "argsort": INTEGER, "long": INTEGER, "int": INTEGER, "bool": INTEGER, "byte": INTEGER, "round": STEP, "floor": STEP,
    "ceil": STEP, "sign": STEP, "gt": STEP, "ge": STEP, "lt": STEP, "le": STEP, "eq": STEP, "ne": STEP, "sample": SAMPLE,
    "multinomial": SAMPLE, "bernoulli": SAMPLE, "bincount": INTEGER, "nonzero": INTEGER, "count_nonzero": INTEGER,
}  # fmt: skip
_FUNCTIONS = {
    "float": VALUE, "int": VALUE, "torch.tensor": COPY, "torch.as_tensor": COPY, "torch.Tensor": COPY,
    "torch.FloatTensor": COPY, "torch.from_numpy": COPY, "torch.autograd.Variable": COPY, "torch.argmax": INTEGER,
    "torch.round": STEP, "torch.floor": STEP, "torch.ceil": STEP, "torch.sign": STEP, "torch.gt": STEP, "torch.ge": STEP,
    "torch.lt": STEP, "torch.le": STEP, "torch.eq": STEP, "torch.multinomial": SAMPLE, "torch.bernoulli": SAMPLE,
    "torch.bincount": INTEGER, "torch.bucketize": INTEGER, "torch.searchsorted": INTEGER, "torch.histc": STEP,
    "torch.argmin": INTEGER, "torch.sgn": STEP, "torch.detach": DETACH,
}  # fmt: skip
_INTEGERS = frozenset({"torch.long", "torch.int", "torch.int64", "torch.int32", "torch.bool", "torch.uint8"})
_NOT_DIFFERENTIABLE = frozenset(
    {"isnan", "isfinite", "isinf", "zeros_like", "ones_like", "rand_like", "randn_like", "full_like", "empty_like"}
    | {"new_zeros", "new_ones", "new_full", "new_empty", "new_tensor"}
    | {
        "size",
        "dim",
        "numel",
        "nelement",
        "stride",
        "storage_offset",
        "len",
        "range",
        "str",
        "repr",
        "type",
        "isinstance",
    }
)
_PLAIN = frozenset(
    {"Softmax", "LogSoftmax", "ReLU", "ReLU6", "GELU", "SiLU", "Tanh", "Sigmoid", "Dropout", "Flatten", "Identity", "MaxPool2d"}
    | {"AvgPool2d", "AdaptiveAvgPool2d", "Softplus", "ELU", "LeakyReLU", "Unflatten", "Upsample", "CosineSimilarity"}
    | {"PairwiseDistance", "MaxPool1d", "AdaptiveAvgPool1d", "Softmin", "LogSigmoid", "Hardtanh", "Threshold"}
)  # fmt: skip


@dataclass(frozen=True)
class Cut:
    """One place where a graph ends: an expression, or for grad mode the `with`, decorator or call that switched it off."""

    kind: str
    node: ast.AST
    file: SourceFile


def cut_of(node: ast.expr, file: SourceFile, program: Program) -> Cut | None:
    """The cut that an expression is; None for what autograd records."""
    names = program.names(file)
    if isinstance(node, ast.Attribute) and node.attr == "data" and isinstance(node.ctx, ast.Load):
        return Cut(DATA, node, file)
    if isinstance(node, ast.Compare):
        return Cut(STEP, node, file)
    if isinstance(node, ast.Call):
        kind = _called(node, names)
        return Cut(kind, node, file) if kind else None
    return None


def _called(node: ast.Call, names: Names) -> str | None:
    called = names.qualified(node.func) or ""
    if called in _FUNCTIONS:
        return _FUNCTIONS[called]
    if called.startswith(("numpy.", "math.", "statistics.")):
        return LIBRARY
    if called.startswith("torch."):
        return None
    if isinstance(node.func, ast.Attribute):
        method = node.func.attr
        if method in ("to", "type") and any((names.qualified(one) or "") in _INTEGERS for one in node.args):
            return INTEGER
        return _METHODS.get(method)
    return None


def operands_of(cut: Cut) -> list[ast.expr]:
    """The expressions whose graph the cut ends."""
    node = cut.node
    if isinstance(node, ast.Attribute):
        return [node.value]
    if isinstance(node, ast.Compare):
        return [node.left, *node.comparators]
    if not isinstance(node, ast.Call):
        return []
    parts = [*node.args, *(one.value for one in node.keywords)]
    is_method = isinstance(node.func, ast.Attribute) and cut.kind not in (COPY, LIBRARY)
    if is_method and isinstance(node.func, ast.Attribute) and not _is_torch(node.func):
        parts = [node.func.value, *(parts if cut.kind in (STEP, INTEGER) else [])]
    return parts


def _is_torch(func: ast.Attribute) -> bool:
    return isinstance(func.value, ast.Name) and func.value.id in ("torch", "np", "math", "numpy")


def is_leaf(node: ast.expr, file: SourceFile, program: Program) -> bool:
    """Whether an expression makes a leaf that requires grad, apart from what it is made of."""
    if not isinstance(node, ast.Call):
        return False
    called = program.names(file).qualified(node.func) or ""
    if called in ("torch.nn.Parameter", "torch.nn.parameter.Parameter"):
        return not asks_for(node, "requires_grad", value=False)
    if asks_for(node, "requires_grad", value=True):
        return True
    is_flag = isinstance(node.func, ast.Attribute) and node.func.attr == "requires_grad_"
    return is_flag and not any(isinstance(one, ast.Constant) and one.value is False for one in node.args)


def asked_of_grad(call: ast.Call) -> tuple[ast.expr, ast.expr] | None:
    """The output and the tensor that `autograd.grad` is given."""
    named = {one.arg: one.value for one in call.keywords}
    pair = [*call.args[:2]]
    pair += [named[name] for name in ("outputs", "inputs")[len(pair) :] if name in named]
    if len(pair) != 2:
        return None
    wanted = pair[1]
    is_single = isinstance(wanted, (ast.Tuple, ast.List)) and len(wanted.elts) > 0
    return pair[0], wanted.elts[0] if is_single and isinstance(wanted, (ast.Tuple, ast.List)) else wanted


def asks_for(node: ast.Call, keyword: str, *, value: bool) -> bool:
    """Whether a call passes a constant truth value by keyword."""
    return any(
        one.arg == keyword and isinstance(one.value, ast.Constant) and one.value.value is value for one in node.keywords
    )


def is_plain_module(called: str) -> bool:
    """Whether a class of `torch.nn` has no parameters: a loss, an activation, a pooling."""
    last = called.rpartition(".")[2]
    return last in _PLAIN or last.endswith("Loss")


def is_blind(node: ast.Call, names: Names) -> bool:
    """Whether the result of a call carries no gradient by its nature."""
    called = (names.qualified(node.func) or "").rpartition(".")[2]
    return called in _NOT_DIFFERENTIABLE


def grad_mode_cut(node: ast.AST, file: SourceFile, program: Program) -> Cut | None:
    """What switches grad mode off where `node` is computed, within its own function: a block, a decorator, a statement."""
    names = program.names(file)
    below: ast.AST = node
    above: ast.AST | None = file.parents.get(node, node)
    while above is not None:
        if isinstance(above, (ast.With, ast.AsyncWith)) and below in above.body:
            for item in reversed(above.items):
                state = grad_state(item.context_expr, names)
                if state is not None:
                    return None if state else Cut(GRAD_MODE, above, file)
        if isinstance(above, (ast.FunctionDef, ast.AsyncFunctionDef)):
            for one in above.decorator_list if below in above.body else ():
                if grad_state(one, names) is False:
                    return Cut(GRAD_MODE, one, file)
            return _switched(above, node, file, names)
        below, above = above, file.parents.get(above)
    return _switched(file.tree, node, file, names) if file.tree is not None else None


def grad_state(node: ast.expr, names: Names) -> bool | None:
    """Whether a context or decorator switches grad mode on or off; None for any other."""
    call = node if isinstance(node, ast.Call) else None
    called = names.qualified(call.func if call else node) or ""
    if called in _ON:
        return True
    if called in GRAD_MODE_OFF:
        first = call.args[0] if call and call.args else None
        is_undone = isinstance(first, ast.Constant) and first.value is False  # inference_mode(False)
        return bool(is_undone)
    if called in _MODES and call and call.args and isinstance(call.args[0], ast.Constant):
        return bool(call.args[0].value)
    return None


@lru_cache(maxsize=1024)
def _plain_calls(scope: ast.AST) -> tuple[ast.Call, ...]:
    """The calls that are statements of a scope and named like one which switches grad mode."""
    wanted = {mode.rpartition(".")[2] for mode in _MODES}
    return tuple(
        one.value
        for one in walk(scope)
        if isinstance(one, ast.Expr)
        and isinstance(one.value, ast.Call)
        and getattr(one.value.func, "attr", getattr(one.value.func, "id", "")) in wanted
    )


@lru_cache(maxsize=256)
def _is_switching(file: SourceFile) -> bool:
    return "set_grad_enabled" in file.text


def _switched(scope: ast.AST, node: ast.AST, file: SourceFile, names: Names) -> Cut | None:
    """The last plain `torch.set_grad_enabled(False)` of a scope before a node, where none switches it on again."""
    if not _is_switching(file):
        return None  # asked of every expression on a path: most files hold no such statement at all
    last: Cut | None = None
    place = getattr(node, "lineno", 0)
    here = names.function_of(node)
    for call in _plain_calls(scope):
        if call.lineno <= place and (names.qualified(call.func) or "") in _MODES and names.function_of(call) is here:
            last = Cut(GRAD_MODE, file.parents[call], file) if grad_state(call, names) is False else None
    return last
