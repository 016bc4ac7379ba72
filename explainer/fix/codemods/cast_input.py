"""`(x - mean) / std` becomes `((x - mean) / std).float()`: a float64 value is cast where it is born, before the model sees it.

For the mismatch of float64 with float32: follows the arguments of the calls that the traceback names through loaders and data
sets to the promotion or conversion that made them float64. For a model that was cast to float16 or bfloat16 as a whole, its
input is cast at the call.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from explainer.fix.blame import crash_frames
from explainer.fix.codemod import Context, Proposal, culprit_of
from explainer.fix.rewrite import put_method, spell
from explainer.source.binding import Value
from explainer.source.dtype import CONVERSION, PROMOTION, Birth, arguments, float64_births, stated_dtype
from explainer.source.file import SourceFile
from explainer.source.precision import is_module
from explainer.source.program import Program

_BELIEFS = {PROMOTION: 1.6, CONVERSION: 1.2}
_WHY = {PROMOTION: "is float64, as one of its operands is", CONVERSION: "keeps NumPy's float64"}


def propose(context: Context) -> Iterator[Proposal]:
    """Edits for the arguments of the calls that the traceback names."""
    dtypes = {
        str(context.fields.get(one))
        for one in ("left_dtype", "right_dtype", "left_type", "right_type", "found_dtype", "found_type")
    }
    if not context.has_failed:
        return
    seen: set[tuple[str, int]] = set()
    for file, call, depth in _called(context):
        if dtypes & {"float64", "Double", "double"}:
            for one in arguments(call):
                yield from _cast(Value(node=one, file=file), call, depth, context, seen)
        elif dtypes & {"float16", "bfloat16", "Half", "BFloat16"} and is_module(call.func, file, context.program):
            yield from _cast_to_half(file, call, context.program)


def _called(context: Context) -> Iterator[tuple[SourceFile, ast.Call, int]]:
    """The calls on the lines that the traceback names, with their depth."""
    for file in context.program.parsed():
        lines = crash_frames(file, context)
        for node in file.walk() if lines else ():
            if isinstance(node, ast.Call) and node.lineno in lines:
                yield file, node, lines[node.lineno]


def _cast(value: Value, call: ast.Call, depth: int, context: Context, seen: set[tuple[str, int]]) -> Iterator[Proposal]:
    births = float64_births(value, context.program)
    for birth in births:
        node, file = birth.value.node, birth.value.file
        if (file.path, id(node)) in seen:
            continue
        seen.add((file.path, id(node)))
        yield Proposal(
            edits=(put_method(file, node, _method(birth, context.program)),),
            culprit=culprit_of(file, node, _WHY.get(birth.kind, "makes float64 values")),
            belief=_BELIEFS.get(birth.kind, 0.8),
        )
    is_input = str(context.fields.get("left_dtype") or context.fields.get("left_type")) in {
        "float64",
        "Double",
        "double",
    }
    is_cast = (
        isinstance(value.node, ast.Call) and stated_dtype(value.node, context.program.names(value.file)) is not None
    )
    if (
        (births or (is_input and depth == 0 and not is_cast))
        and (value.file.path, id(value.node)) not in seen
        and is_module(call.func, value.file, context.program)
    ):
        seen.add((value.file.path, id(value.node)))
        yield Proposal(
            edits=(put_method(value.file, value.node, ".float()"),),
            culprit=culprit_of(value.file, value.node, "hands float64 values to a float32 model"),
            belief=0.4 - 0.1 * depth,
        )


def _method(birth: Birth, program: Program) -> str:
    """`.float()` for a tensor, `.astype(np.float32)` for an array."""
    names = program.names(birth.value.file)
    spelled = spell(names, "numpy.float32")
    return ".float()" if not birth.is_array else f".astype({spelled})"


def _cast_to_half(file: SourceFile, call: ast.Call, program: Program) -> Iterator[Proposal]:
    """`model(x)` becomes `model(x.to(torch.bfloat16))` where the program cast the model as a whole and uses no autocast."""
    halves = [half for one in program.parsed() for half in _casts(one, program)]
    texts = {one for one in halves if one}
    if len(texts) != 1 or not call.args or _uses_autocast(program):
        return
    first = call.args[0]
    if isinstance(first, ast.Call) and stated_dtype(first, program.names(file)) is not None:
        return
    dtype = spell(program.names(file), texts.pop())
    yield Proposal(
        edits=(put_method(file, call.args[0], f".to({dtype})"),),
        culprit=culprit_of(file, call, f"hands float32 values to a model in {dtype}"),
        belief=1.0,
    )


def _casts(file: SourceFile, program: Program) -> Iterator[str]:
    """The half-precision dtypes that modules are cast to."""
    names = program.names(file)
    for node in file.walk():
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
            continue
        if not is_module(node.func.value, file, program):
            continue
        if node.func.attr in ("half", "bfloat16"):
            yield "torch.float16" if node.func.attr == "half" else "torch.bfloat16"
        elif node.func.attr == "to":
            for one in arguments(node):
                dtype = names.qualified(one)
                if dtype in ("torch.float16", "torch.bfloat16", "torch.half"):
                    yield "torch.float16" if dtype == "torch.half" else dtype


def _uses_autocast(program: Program) -> bool:
    return any(
        isinstance(node, ast.Call) and (program.names(file).qualified(node.func) or "").endswith("autocast")
        for file in program.parsed()
        for node in file.walk()
    )
