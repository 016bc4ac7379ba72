"""Whether a value is a tensor of torch or an array of NumPy, as far as what makes it tells."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import replace

from explainer.source.name import Names
from explainer.source.program import Program
from explainer.source.value.binding import Value
from explainer.source.value.origin import origins

TENSOR, ARRAY = "tensor", "array"
_DEPTH = 8
_TENSORS = ("torch.", "torchaudio.", "torchvision.")
_ARRAYS = ("numpy.", "librosa.", "soundfile.", "scipy.")
_TO_ARRAY = frozenset({"numpy", "astype"})
_TO_TENSOR = frozenset(
    {"float", "unsqueeze", "squeeze", "clone", "contiguous", "to", "permute", "narrow", "log1p", "abs"}
)
_OTHER = frozenset({"tolist", "split", "encode", "tobytes", "item", "strip"})


def kind_of(value: Value, program: Program) -> str | None:
    """`TENSOR` or `ARRAY` where all that makes the value agrees; None where nothing is known, or it is neither."""
    found = {_annotated(value, program) or "", *_kinds(value, program, 0)} - {""}
    only = found.pop() if len(found) == 1 else None
    return only if only in (TENSOR, ARRAY) else None


def _annotated(value: Value, program: Program) -> str | None:
    """What the annotation of a parameter says."""
    names = program.names(value.file)
    function = names.function_of(value.node)
    for one in (*function.args.posonlyargs, *function.args.args) if function is not None else ():
        if one.arg == getattr(value.node, "id", None) and one.annotation is not None:
            said = names.qualified(one.annotation) or ""
            return TENSOR if said == "torch.Tensor" else ARRAY if said == "numpy.ndarray" else None
    return None


def _kinds(value: Value, program: Program, depth: int) -> Iterator[str]:
    """The kinds of what makes a value; "other" for a list or a string, nothing where it is not known."""
    if depth > _DEPTH:
        return
    for one in origins(value, program):
        yield from _kinds_of_origin(one, program, depth)


def _kinds_of_origin(value: Value, program: Program, depth: int) -> Iterator[str]:
    node, names = value.node, program.names(value.file)
    if isinstance(node, (ast.List, ast.ListComp, ast.JoinedStr)):
        yield "other"
    elif isinstance(node, ast.Call):
        yield from _of_call(node, value, names, program, depth)
    elif isinstance(node, ast.BinOp):
        for side in (node.left, node.right):
            yield from _kinds(replace(value, node=side), program, depth + 1)
    elif isinstance(node, ast.Subscript):
        yield from _kinds(replace(value, node=node.value, pick=None), program, depth + 1)


def _of_call(node: ast.Call, value: Value, names: Names, program: Program, depth: int) -> Iterator[str]:
    called = names.qualified(node.func) or ""
    if called.startswith(_TENSORS):
        yield TENSOR
    elif called.startswith(_ARRAYS):
        yield ARRAY
    elif called in ("list", "sorted", "tuple", "str"):
        yield "other"
    elif isinstance(node.func, ast.Attribute):
        method = node.func.attr
        if method in _TO_ARRAY:
            yield ARRAY
        elif method in _OTHER:
            yield "other"
        elif method in ("float", "unsqueeze"):
            yield TENSOR
        elif method in _TO_TENSOR:
            yield from _kinds(replace(value, node=node.func.value, pick=None), program, depth + 1)
