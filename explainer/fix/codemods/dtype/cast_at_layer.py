"""`self.head(x)` becomes `self.head(x.float())` where `x` is half precision and the layer's weight float32.

The message says which of the two operands is which: of a layer the first is its input, of a product the left one. A float32
input of a half-precision layer gets the dtype of its weight. A layer that was put into a half-precision model of transformers
gets the model's dtype, where the library's line shows that it is the one that failed.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from explainer.fix.clue.crash import raised_at
from explainer.fix.codemod import Context, Proposal, culprit_of
from explainer.fix.text.rewrite import operand, put_method
from explainer.model.patch import Edit
from explainer.source.file import SourceFile
from explainer.source.name import dotted_name
from explainer.source.program import Program
from explainer.source.tree import walk
from explainer.source.value.binding import Value
from explainer.source.value.dtype import FLOAT32, stated_dtype
from explainer.source.value.resolve import resolver_of

_HALVES = frozenset({"float16", "bfloat16"})
_WORDS = {"half": "float16", "bfloat16": "bfloat16", "float": FLOAT32, "float16": "float16", "float32": FLOAT32}
_UP = 0.8  # below `cast_input`, which knows a model that was cast as a whole
_WEIGHTED = re.compile(r"torch\.nn\.(?:(?:Lazy)?(?:Linear|Conv\w+)|\w*Norm\w*|LSTM|GRU|RNN|Bilinear)$")
_HOLDS = frozenset({"torch.nn.Sequential", "torch.nn.TransformerEncoder", "torch.nn.MultiheadAttention"})
_PRODUCTS = (
    *("torch.matmul", "torch.mm", "torch.bmm", "torch.nn.functional.linear"),
    *("torch.nn.functional.conv1d", "torch.nn.functional.conv2d", "torch.nn.functional.conv3d"),
)


def propose(context: Context) -> Iterator[Proposal]:
    """An edit for the layer or product on the line that raised."""
    left, right = _dtype(context, "left"), _dtype(context, "right")
    if {left, right} not in ({"float16", FLOAT32}, {"bfloat16", FLOAT32}):
        return
    for file, statement in list(raised_at(context))[:1]:
        calls = _layers(statement, file, context.program, is_half=left in _HALVES)
        if calls:
            yield from _at_layers(calls, file, context, is_half=left in _HALVES)
            return
        products = list(_products(statement, file, context.program))
        if len(products) == 1:
            node, sides = products[0]
            half = sides[0] if left in _HALVES else sides[1]
            why = f"multiplies {left} with {right}"
            yield _proposal((put_method(file, half, ".float()"),), file, node, why)
            return
        yield from _in_library(context)


def _dtype(context: Context, side: str) -> str | None:
    """The dtype of one operand, of what the message calls it: `c10::Half`, `torch.cuda.HalfTensor`, `float`."""
    text = str(context.fields.get(f"{side}_dtype") or context.fields.get(f"{side}_type") or "")
    last = re.split(r"[.:]", text.lower())[-1].removeprefix("cpu").removesuffix("tensor").removesuffix("type")
    return _WORDS.get(last)


def _proposal(edits: tuple[Edit, ...], file: SourceFile, node: ast.AST, why: str, belief: float = 2.0) -> Proposal:
    return Proposal(edits=edits, culprit=culprit_of(file, node, why), belief=belief)


def _layers(statement: ast.stmt, file: SourceFile, program: Program, *, is_half: bool) -> list[ast.Call]:
    """The calls of torch's layers that may have failed, the first of several that feed each other.

    Half precision fails at a layer that was not cast to it; float32 at one that was, where the line has such a one.
    """
    found = [
        node
        for node in walk(statement)
        if isinstance(node, ast.Call) and node.args and _made_by_torch(node.func, file, program)
    ]
    cast = [one for one in found if _cast_to(one.func, file, program) in _HALVES]
    found = [one for one in found if one not in cast] if is_half else cast or found
    return [one for one in found if not any(other is not one and other in set(walk(one)) for other in found)]


def _cast_to(func: ast.expr, file: SourceFile, program: Program) -> str | None:
    """The dtype that a layer was made with or cast to, where it is made."""
    for one in resolver_of(program).behind(Value(func, file)):
        if isinstance(one.node, ast.Call) and (dtype := stated_dtype(one.node, program.names(one.file))) is not None:
            return dtype
    return None


def _made_by_torch(func: ast.expr, file: SourceFile, program: Program) -> bool:
    made = [
        program.names(one.file).qualified(one.node.func) or ""
        for one in resolver_of(program).constructors_of(Value(func, file))
        if isinstance(one.node, ast.Call) and one.node is not file.parents.get(func)
    ]
    return bool(made) and all(_WEIGHTED.match(one) or one in _HOLDS for one in made)


def _at_layers(calls: list[ast.Call], file: SourceFile, context: Context, *, is_half: bool) -> Iterator[Proposal]:
    """The cast of what the first layer gets, and of the same value wherever another layer of the line gets it."""
    names = context.program.names(file)
    first = calls[0].args[0]
    alike = [one for one in calls if ast.unparse(one.args[0]) == ast.unparse(first)]
    if isinstance(first, (ast.Starred, ast.Constant)):
        return
    if is_half and not (isinstance(first, ast.Call) and stated_dtype(first, names) == FLOAT32):
        edits = tuple(put_method(file, one.args[0], ".float()") for one in alike)
        yield _proposal(edits, file, calls[0], "has a float32 weight and gets half precision")
    elif not is_half and not (isinstance(first, ast.Call) and stated_dtype(first, names) is not None):
        weights = [_weight(one, file, context.program) for one in alike]
        if all(weights) and not _uses_autocast(context.program):
            casts = zip(alike, weights, strict=True)
            edits = tuple(put_method(file, one.args[0], f".to({weight}.dtype)") for one, weight in casts)
            yield _proposal(edits, file, calls[0], "has a weight in half precision and gets float32", _UP)


def _weight(call: ast.Call, file: SourceFile, program: Program) -> str | None:
    """How a layer's weight is written: `self.head.weight`, or the first parameter of a layer that has several."""
    if dotted_name(call.func) is None:
        return None
    name = operand(file, call.func)
    for one in resolver_of(program).constructors_of(Value(call.func, file)):
        called = program.names(one.file).qualified(getattr(one.node, "func", None)) or ""
        if re.match(r"torch\.nn\.(?:Linear|Conv\w+|\w*Norm\w*|Bilinear)$", called) is None:
            return f"next({name}.parameters())"
    return f"{name}.weight"


def _products(
    statement: ast.stmt, file: SourceFile, program: Program
) -> Iterator[tuple[ast.expr, tuple[ast.expr, ast.expr]]]:
    """The matrix products of a line, with their operands."""
    for node in walk(statement):
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.MatMult):
            yield node, (node.left, node.right)
        elif isinstance(node, ast.Call) and program.names(file).is_call(node, *_PRODUCTS) and len(node.args) > 1:
            yield node, (node.args[0], node.args[1])
        elif isinstance(node, ast.Call) and len(node.args) == 1 and isinstance(node.func, ast.Attribute):
            is_method = not program.names(file).is_call(node, *_PRODUCTS)
            if is_method and node.func.attr in ("matmul", "mm", "bmm"):
                yield node, (node.func.value, node.args[0])


def _in_library(context: Context) -> Iterator[Proposal]:
    """A layer of torch that the program put into a model of transformers: the library's line calls it by its attribute."""
    program = context.program
    record = context.incident.exceptions[-1]
    lines = [frame.code or "" for frame in record.frames if frame.library not in (None, "torch")]
    called = set(re.findall(r"self\.(\w+)\(", lines[-1])) if lines else set()
    for where in program.parsed():
        names = program.names(where)
        for node in where.walk():
            if not isinstance(node, ast.Assign) or not isinstance(node.targets[0], ast.Attribute):
                continue
            target = node.targets[0]
            is_layer = isinstance(node.value, ast.Call) and _WEIGHTED.match(names.qualified(node.value.func) or "")
            if target.attr in called and is_layer and _is_pretrained(target.value, where, program):
                assert isinstance(node.value, ast.Call)
                if stated_dtype(node.value, names) is None:
                    cast = put_method(where, node.value, f".to({operand(where, target.value)}.dtype)")
                    yield _proposal((cast,), where, node, "puts a float32 layer into a model in half precision")


def _is_pretrained(node: ast.expr, file: SourceFile, program: Program) -> bool:
    made = resolver_of(program).constructors_of(Value(node, file))
    names = [program.names(one.file).qualified(getattr(one.node, "func", None)) or "" for one in made]
    return bool(names) and all(one.startswith("transformers.") for one in names)


def _uses_autocast(program: Program) -> bool:
    return any(
        isinstance(node, ast.Call) and (program.names(file).qualified(node.func) or "").endswith("autocast")
        for file in program.parsed()
        for node in file.walk()
    )
