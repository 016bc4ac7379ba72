"""Which dimension of a tensor is the batch: 0 for what a loader hands out, 1 for what was transposed or padded time first.

Read from how batches are made and what moves dimensions on the way; None where that does not show.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from dataclasses import replace

from explainer.source.data.loader import LOADERS
from explainer.source.name import dotted_name
from explainer.source.program import Program
from explainer.source.tree import walk
from explainer.source.value.binding import Value, all_parameters, scope_of
from explainer.source.value.callee import callees_of
from explainer.source.value.number import number_of
from explainer.source.value.origin import KEEP, walked_dictionary
from explainer.source.value.resolve import resolver_of

BATCH = re.compile(r"(?:^|_)(?:batch|batch_?size|bs|bsz|n_?batch)$", re.IGNORECASE)
_DEPTH = 14
_MADE = ("torch.randn", "torch.rand", "torch.zeros", "torch.ones", "torch.empty", "torch.randint", "torch.full")
_PAD = "torch.nn.utils.rnn.pad_sequence"
_MOVES = frozenset({"view", "reshape", "transpose", "permute", "unsqueeze", "squeeze", "flatten", "t", "T", "swapaxes"})
_SAME = (KEEP - _MOVES - {"expand", "repeat", "ravel"}) | frozenset(
    {"float", "double", "half", "bfloat16", "long", "int", "clamp", "relu", "tanh", "sigmoid", "masked_fill", "type_as", "type"}
)  # fmt: skip
_BATCH_FIRST = re.compile(r"(?:Conv|MaxPool|AvgPool|BatchNorm)\dd$")
# Layers whose output has the batch where their input has it.
_LAYERS = frozenset(
    {
        "Linear",
        "Embedding",
        "Dropout",
        "LayerNorm",
        "RMSNorm",
        "ReLU",
        "GELU",
        "SiLU",
        "Tanh",
        "Sigmoid",
        "Identity",
        "Softmax",
    }
)
_FUNCTIONS = frozenset(
    {"relu", "gelu", "silu", "tanh", "sigmoid", "dropout", "layer_norm", "pad", "softmax", "log1p", "log", "exp", "abs", "embedding"}
    | {"normalize", "clamp", "sin", "cos", "sqrt"}
)  # fmt: skip


def batch_axis(value: Value, program: Program, depth: int = 0) -> int | None:
    """The dimension of a tensor that runs over the samples of a batch; None where that does not show."""
    if depth > _DEPTH:
        return None
    node = value.node
    if value.is_element:
        return _of_loader(value, program, depth)
    if isinstance(node, (ast.Tuple, ast.List)) and isinstance(value.pick, int) and value.pick < len(node.elts):
        return batch_axis(replace(value, node=node.elts[value.pick], pick=None), program, depth + 1)
    if isinstance(node, ast.DictComp) and (source := walked_dictionary(node)) is not None:
        return batch_axis(replace(value, node=source), program, depth + 1)
    if isinstance(node, (ast.Name, ast.Attribute)) and dotted_name(node) is not None:
        found = [_carried(one, value) for one in resolver_of(program).behind(value)]
        return _agreed(batch_axis(one, program, depth + 1) for one in found if one.node is not node)
    if isinstance(node, ast.BinOp):
        sides = (replace(value, node=one) for one in (node.left, node.right))
        return _agreed(batch_axis(one, program, depth + 1) for one in sides)
    if isinstance(node, ast.Subscript):
        return _of_subscript(node, value, program, depth)
    return _of_call(node, value, program, depth) if isinstance(node, ast.Call) else None


def _carried(one: Value, value: Value) -> Value:
    return replace(one, pick=value.pick) if one.pick is None and value.pick is not None else one


def _agreed(axes: Iterable[int | None]) -> int | None:
    """The answer of all that know one."""
    known = {one for one in axes if one is not None}
    return known.pop() if len(known) == 1 else None


def _of_loader(value: Value, program: Program, depth: int) -> int | None:
    """What a loop over a loader hands out: torch's own collation stacks samples along dimension 0."""
    axes: list[int | None] = []
    for made in resolver_of(program).constructors_of(replace(value, pick=None, is_element=False)):
        call = made.node
        if not isinstance(call, ast.Call) or not program.names(made.file).is_call(call, *LOADERS):
            return None
        given = {one.arg: one.value for one in call.keywords}
        size = given.get("batch_size")
        if isinstance(size, ast.Constant) and size.value is None:
            return None
        if "collate_fn" in given:
            axes.append(_of_collation(given["collate_fn"], made, value.pick, program, depth))
        else:
            axes.append(0)
    return _agreed(axes) if None not in axes else None


def _of_collation(function: ast.expr, made: Value, pick: int | str | None, program: Program, depth: int) -> int | None:
    """One part of what a collate function returns; `torch.stack` of samples stacks them first."""
    axes: list[int | None] = []
    for callee in callees_of(function, made.file, program):
        if isinstance(callee.function, ast.Lambda):
            results = [callee.function.body]
        else:
            results = [one.value for one in walk(callee.function) if isinstance(one, ast.Return) and one.value]
        for result in results:
            axes += (_stacked(one, program, depth + 1) for one in _parts(Value(result, callee.file), pick))
    return _agreed(axes) if axes and None not in axes else None


def _parts(value: Value, pick: int | str | None) -> Iterator[Value]:
    """The element of what is returned that a loop unpacks, or an entry that it looks up."""
    node = value.node
    if pick is None:
        yield value
    elif isinstance(node, (ast.Tuple, ast.List)) and isinstance(pick, int) and pick < len(node.elts):
        yield replace(value, node=node.elts[pick])
    elif isinstance(node, ast.Dict) and isinstance(pick, str):
        for key, one in zip(node.keys, node.values, strict=True):
            if isinstance(key, ast.Constant) and key.value == pick:
                yield replace(value, node=one)


def _stacked(value: Value, program: Program, depth: int) -> int | None:
    """The batch dimension of a tensor that a collate function makes of its samples."""
    node = value.node
    if isinstance(node, ast.Call):
        called = program.names(value.file).qualified(node.func) or ""
        if called == "torch.stack":
            return _dimension(node, 1, value, program)
        if called in ("torch.tensor", "torch.as_tensor", "torch.from_numpy"):
            return 0
    if isinstance(node, ast.Name):
        bound = [one for one in resolver_of(program).behind(value) if one.pick is None]
        return _agreed(_stacked(one, program, depth + 1) for one in bound) if depth < _DEPTH else None
    if isinstance(node, ast.Call) and node.args and _is_kept(node, value, program):
        return _stacked(replace(value, node=_subject(node, value, program)), program, depth + 1)
    return batch_axis(value, program, depth + 1)


def _dimension(node: ast.Call, at: int, value: Value, program: Program, default: int | None = 0) -> int | None:
    """The dimension that a call names, by place or as `dim` or `axis`."""
    given = next((one.value for one in node.keywords if one.arg in ("dim", "axis")), None)
    given = given or (node.args[at] if at < len(node.args) else None)
    if given is None:
        return default
    number = number_of(given, program.names(value.file))
    return None if number is None else int(number)


def _is_kept(node: ast.Call, value: Value, program: Program) -> bool:
    """Whether a call hands on the dimensions of what it is applied to."""
    called = program.names(value.file).qualified(node.func) or ""
    last = called.rpartition(".")[2]
    if called.startswith(("torch.", "torch.nn.functional.")):
        return last in _FUNCTIONS
    return isinstance(node.func, ast.Attribute) and node.func.attr in _SAME


def _subject(node: ast.Call, value: Value, program: Program) -> ast.expr:
    called = program.names(value.file).qualified(node.func) or ""
    if called.startswith("torch.") or not isinstance(node.func, ast.Attribute):
        return node.args[0]
    return node.func.value


def _of_subscript(node: ast.Subscript, value: Value, program: Program, depth: int) -> int | None:
    """`batch["x"]`, a slice behind the batch, or rows that are taken of data and of their labels alike."""
    inner = replace(value, node=node.value)
    index = node.slice
    if isinstance(index, ast.Constant) and isinstance(index.value, str):
        return batch_axis(replace(inner, pick=index.value), program, depth + 1)
    if isinstance(index, ast.Constant) and isinstance(index.value, int) and isinstance(node.value, ast.Name):
        return batch_axis(replace(inner, pick=index.value), program, depth + 1)
    if isinstance(index, ast.Tuple):
        first = index.elts[0]
        is_whole = isinstance(first, ast.Slice) and not (first.lower or first.upper or first.step)
        is_kept = is_whole or (isinstance(first, ast.Constant) and first.value is Ellipsis)
        others = all(isinstance(one, ast.Slice) for one in index.elts[1:2]) or not is_whole
        axis = batch_axis(inner, program, depth + 1) if is_kept else None
        return axis if axis == 0 or others else None
    return 0 if _is_taken_of_several(node, value) else None


def _is_taken_of_several(node: ast.Subscript, value: Value) -> bool:
    """Whether a function takes the same rows of another tensor too: `x[rows]` and `y[rows]`."""
    scope = scope_of(node, value.file)
    alike = [
        one
        for one in walk(scope)
        if isinstance(one, ast.Subscript)
        and ast.dump(one.slice) == ast.dump(node.slice)
        and ast.dump(one.value) != ast.dump(node.value)
    ]
    return bool(alike) and not isinstance(node.slice, (ast.Constant, ast.UnaryOp))


def _of_call(node: ast.Call, value: Value, program: Program, depth: int) -> int | None:
    names = program.names(value.file)
    called = names.qualified(node.func) or ""
    target = resolver_of(program).function_of(node, value)
    if target is not None:
        found = resolver_of(program).returns_of(target, node, value)
        return _agreed(batch_axis(_carried(one, value), program, depth + 1) for one in found)
    if called in (_PAD, *_MADE):
        return _padded(node) if called == _PAD else _sized(node, value, program)
    if called in ("torch.cat", "torch.concat") and node.args and isinstance(node.args[0], (ast.List, ast.Tuple)):
        if _dimension(node, 1, value, program) not in (-1, 2):
            return None
        return _agreed(batch_axis(replace(value, node=one), program, depth + 1) for one in node.args[0].elts)
    if _is_kept(node, value, program):
        return batch_axis(replace(value, node=_subject(node, value, program)), program, depth + 1)
    if isinstance(node.func, ast.Attribute) and node.func.attr in _MOVES and not called.startswith("torch."):
        return _moved(node, value, program, depth)
    forwards = [
        method
        for where, owner in resolver_of(program).classes_of(Value(node.func, value.file, value.arguments))
        if (method := resolver_of(program).method(owner, "forward", where)) is not None
    ]
    if forwards:
        made = [one for method in forwards for one in resolver_of(program).returns_of(method, node, value)]
        return _agreed(batch_axis(_carried(one, value), program, depth + 1) for one in made)
    return _through_layer(node, value, program, depth)


def _padded(node: ast.Call) -> int | None:
    """`pad_sequence` puts time first unless it is told otherwise."""
    first = next((one.value for one in node.keywords if one.arg == "batch_first"), None)
    first = first or (node.args[1] if len(node.args) > 1 else ast.Constant(value=False))
    return (0 if first.value else 1) if isinstance(first, ast.Constant) else None


def _sized(node: ast.Call, value: Value, program: Program) -> int | None:
    """The place of a size that is called `batch`, in a function that makes a tensor of given sizes."""
    sizes = [one for one in node.args if not isinstance(one, ast.Starred)]
    listed = [one for one in [*sizes, *(one.value for one in node.keywords)] if isinstance(one, (ast.Tuple, ast.List))]
    sizes = list(listed[0].elts) if listed else sizes
    found = [at for at, one in enumerate(sizes) if BATCH.search((dotted_name(one) or "").rpartition(".")[2])]
    is_plain = listed or not (program.names(value.file).qualified(node.func) or "").endswith(("randint", "full"))
    return found[0] if len(found) == 1 and is_plain and found[0] < 2 else None


def _moved(node: ast.Call, value: Value, program: Program, depth: int) -> int | None:
    """Where the batch is after dimensions were moved."""
    assert isinstance(node.func, ast.Attribute)
    method = node.func.attr
    if method in ("view", "reshape"):
        return 0 if node.args and _is_batch_size(node.args[0]) else None
    axis = batch_axis(replace(value, node=node.func.value), program, depth + 1)
    numbers = [number_of(one, program.names(value.file)) for one in node.args]
    if axis is None or any(one is None for one in numbers) or node.keywords:
        return None
    dims = [int(one) for one in numbers if one is not None]
    if method in ("transpose", "swapaxes") and len(dims) == 2:
        if axis in dims and min(dims) >= 0:
            return dims[1] if dims[0] == axis else dims[0]
        return axis if axis == 0 or min(dims) >= 0 else None
    if method == "permute" and axis in dims:
        return dims.index(axis)
    if method == "unsqueeze" and len(dims) == 1:
        return axis + (0 <= dims[0] <= axis)
    return axis if method == "squeeze" and dims == [-1] else None


def _is_batch_size(node: ast.expr) -> bool:
    """Whether an expression is the size of a batch: `x.size(0)`, `x.shape[0]`, `len(x)`, `batch`."""
    if isinstance(node, ast.Call):
        is_size = isinstance(node.func, ast.Attribute) and node.func.attr == "size" and bool(node.args)
        is_first = is_size and isinstance(node.args[0], ast.Constant) and node.args[0].value == 0
        return is_first or (isinstance(node.func, ast.Name) and node.func.id == "len")
    if isinstance(node, ast.Subscript):
        is_shape = isinstance(node.value, ast.Attribute) and node.value.attr == "shape"
        return is_shape and isinstance(node.slice, ast.Constant) and node.slice.value == 0
    return BATCH.search((dotted_name(node) or "").rpartition(".")[2]) is not None


def _through_layer(node: ast.Call, value: Value, program: Program, depth: int) -> int | None:
    """Through a layer that keeps dimensions; a convolution has the batch first, whatever comes."""
    made = resolver_of(program).constructors_of(Value(node.func, value.file, value.arguments))
    calls = [(one, one.node) for one in made if isinstance(one.node, ast.Call) and one.node is not node]
    named = {(program.names(one.file).qualified(call.func) or "") for one, call in calls}
    if not named or not all(one.startswith("torch.nn.") for one in named) or not node.args:
        return None
    kinds = {one.rpartition(".")[2] for one in named}
    if all(_BATCH_FIRST.match(one) for one in kinds):
        return 0
    parts = [arg for one, call in calls for arg in call.args] if kinds == {"Sequential"} else []
    if parts:
        kinds = {(program.names(calls[0][0].file).qualified(getattr(one, "func", None)) or "") for one in parts}
        kinds = {one.rpartition(".")[2] for one in kinds}
        if any(_BATCH_FIRST.match(one) for one in kinds) and all(
            _BATCH_FIRST.match(one) or one in _LAYERS for one in kinds
        ):
            return 0
    return batch_axis(replace(value, node=node.args[0]), program, depth + 1) if kinds <= _LAYERS else None


def says_batch_first(node: ast.expr, state: Value, program: Program) -> bool:
    """Whether a first state is made for `x.size(0)` samples of the input `x` that it goes with."""
    wanted = ast.unparse(node)
    for one in _below(state, program, 0):
        if isinstance(one, (ast.Call, ast.Subscript)) and _is_batch_size(one):
            base = one.func.value if isinstance(one, ast.Call) and isinstance(one.func, ast.Attribute) else None
            base = one.value.value if isinstance(one, ast.Subscript) and isinstance(one.value, ast.Attribute) else base
            base = one.args[0] if base is None and isinstance(one, ast.Call) and one.args else base
            if base is not None and ast.unparse(base) == wanted:
                return True
    return False


def _below(value: Value, program: Program, depth: int) -> Iterator[ast.expr]:
    """The expressions that a value is made of, through names of the same function."""
    for one in walk(value.node):
        if not isinstance(one, ast.expr):
            continue
        yield one
        if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Load) and depth < 4:
            scope = scope_of(one, value.file)
            if isinstance(scope, ast.Module) or one.id not in all_parameters(scope):
                for behind in resolver_of(program).behind(Value(one, value.file)):
                    yield from _below(behind, program, depth + 1)
