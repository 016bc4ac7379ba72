"""`(x - mean) / std` becomes `((x - mean) / std).float()`: a float64 value is cast where it is born, before the model sees it.

For the mismatch of float64 with float32: follows the arguments of the calls that the traceback names through loaders and data
sets to the promotion or conversion that made them float64. For a model that was cast to float16 or bfloat16 as a whole, its
input is cast at the call.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from explainer.fix.clue.blame import crash_frames
from explainer.fix.clue.crash import raised_at
from explainer.fix.clue.seen import seen as seen_live
from explainer.fix.codemod import Context, Proposal, culprit_of
from explainer.fix.text.rewrite import put_method, spell
from explainer.source.file import SourceFile
from explainer.source.loss.loss import find_losses
from explainer.source.network.precision import is_module
from explainer.source.program import Program
from explainer.source.tree import walk
from explainer.source.value.binding import Value
from explainer.source.value.dtype import (
    CONVERSION,
    PROMOTION,
    Birth,
    arguments,
    conversions,
    float64_births,
    stated_dtype,
)
from explainer.source.value.origin import origins

_HALF = frozenset({"float16", "bfloat16", "Half", "BFloat16"})
_DOUBLE = frozenset({"float64", "Double", "double"})
_FIELDS = ("left_dtype", "right_dtype", "left_type", "right_type", "found_dtype", "found_type")
_BELIEFS = {PROMOTION: 1.6, CONVERSION: 1.2}
_WHY = {PROMOTION: "is float64, as one of its operands is", CONVERSION: "keeps NumPy's float64"}


def propose(context: Context) -> Iterator[Proposal]:
    """Edits for the arguments of the calls that the traceback names."""
    dtypes = {str(context.fields.get(one)) for one in _FIELDS}
    is_expected = str(context.fields.get("expected_type")) in _DOUBLE
    if not context.has_failed:
        return
    seen: set[tuple[str, int]] = set()
    losses = {id(loss.call) for loss in find_losses(context.program)}
    firsts: list[Birth] = []
    fine = _fine(context)
    if fine and (dtypes & _DOUBLE or is_expected):
        yield from _behind_differences(fine, context)
        return
    for file, call in _called(context):
        if dtypes & _DOUBLE or (is_expected and not _is_in_double(context.program)):
            for one in arguments(call):
                value = Value(node=one, file=file)
                births = float64_births(value, context.program) or _converted(value, call, context)
                firsts += births[:1]
                yield from _at_births(births, context, seen, is_model=id(call) not in losses)
                yield from _at_call(value, births, call, context, seen)
        elif dtypes & _HALF and not _gets_half(context) and is_module(call.func, file, context.program):
            yield from _cast_to_half(file, call, context.program)
    if dtypes & _DOUBLE:
        for factor in _factors(context):
            births = float64_births(factor, context.program) or conversions(factor, context.program)
            firsts += births[:1]
            yield from _at_births(births, context, seen, is_model=True)
    yield from _together(firsts, context.program)


def _factors(context: Context) -> Iterator[Value]:
    """What the failing line multiplies as matrices: `graph.propagate @ layer(h)`."""
    for file, statement in list(raised_at(context))[:1]:
        for node in walk(statement):
            if isinstance(node, ast.BinOp) and isinstance(node.op, ast.MatMult):
                yield from (Value(one, file) for one in (node.left, node.right))


def _fine(context: Context) -> set[str]:
    """The names of float64 tensors whose values float32 does not tell apart, as the live program says."""
    return {name for one in context.incident.facts if one.name == "live_coarse" for name in str(one.value).split()}


def _behind_differences(fine: set[str], context: Context) -> Iterator[Proposal]:
    """A cast of what a layer is given, where that is made of such tensors and is none: the innermost call that failed."""
    for file, statement in list(raised_at(context))[:1]:
        for call in walk(statement):
            if not isinstance(call, ast.Call) or not call.args:
                continue
            if not is_module(call.func, file, context.program):
                yield from _in_float64(call, file, fine)
                continue
            first = call.args[0]
            named = {one.id for one in walk(first) if isinstance(one, ast.Name)}
            if isinstance(first, ast.Call) and named & fine:
                yield Proposal(
                    edits=(put_method(file, first, ".float()"),),
                    culprit=culprit_of(file, first, "is float64, made of values that float32 does not tell apart"),
                    belief=1.8,
                )


def _in_float64(call: ast.Call, file: SourceFile, fine: set[str]) -> Iterator[Proposal]:
    """`F.conv1d(when, step)` as `F.conv1d(when, step.double()).float()`: a function of such a tensor and of one that is float32."""
    given = [{one.id for one in walk(part) if isinstance(one, ast.Name)} & fine for part in call.args]
    others = [part for part, names in zip(call.args, given, strict=True) if not names]
    if any(given) and len(others) == 1 and len(call.args) > 1 and isinstance(others[0], (ast.Name, ast.Attribute)):
        yield Proposal(
            edits=(put_method(file, others[0], ".double()"), put_method(file, call, ".float()")),
            culprit=culprit_of(file, call, "meets float64 values that float32 does not tell apart"),
            belief=1.8,
        )


def _converted(value: Value, call: ast.Call, context: Context) -> list[Birth]:
    """Where the message says that the input is float64: the conversion that a module's input comes from."""
    is_meant = _got_double(context) and is_module(call.func, value.file, context.program)
    return conversions(value, context.program) if is_meant else []


def _got_double(context: Context) -> bool:
    return str(context.fields.get("left_dtype") or context.fields.get("left_type")) in _DOUBLE


def _is_in_double(program: Program) -> bool:
    """Whether a program asks for float64 by itself: then what is float32 is the odd one."""
    for file in program.parsed():
        names = program.names(file)
        for node in file.walk():
            if isinstance(node, ast.Attribute) and (
                node.attr in ("double", "set_default_dtype") or names.qualified(node) == "torch.float64"
            ):
                return True
    return False


def _gets_half(context: Context) -> bool:
    """Whether the message says that the input is the one in half precision: then its cast is not to half precision."""
    left, right = (str(context.fields.get(f"{side}_dtype")) for side in ("left", "right"))
    return left in _HALF and right not in _HALF and right != "None"


def _together(firsts: Sequence[Birth], program: Program) -> Iterator[Proposal]:
    """One edit for input and target that one function makes float64: with only one of them cast the loss fails next."""
    groups: dict[ast.AST | None, dict[int, Birth]] = {}
    for birth in firsts:
        function = program.names(birth.value.file).function_of(birth.value.node)
        groups.setdefault(function, {})[id(birth.value.node)] = birth
    for group in groups.values():
        births = list(group.values())
        if len(births) > 1 and len({one.value.file.path for one in births}) == 1:
            first = births[0]
            yield Proposal(
                edits=tuple(put_method(one.value.file, one.value.node, _method(one, program)) for one in births),
                culprit=culprit_of(first.value.file, first.value.node, _WHY.get(first.kind, "makes float64 values")),
                belief=1.8,
            )


def _called(context: Context) -> Iterator[tuple[SourceFile, ast.Call]]:
    """The calls on the lines that the traceback names."""
    for file in context.program.parsed():
        lines = crash_frames(file, context)
        for node in file.walk() if lines else ():
            if isinstance(node, ast.Call) and node.lineno in lines:
                yield file, node


def _at_births(
    births: Sequence[Birth], context: Context, seen: set[tuple[str, int]], *, is_model: bool
) -> Iterator[Proposal]:
    """A cast at each place where a value became float64; those of a loss's target come after those of the model's input."""
    for birth in births:
        node, file = birth.value.node, birth.value.file
        if (file.path, id(node)) in seen:
            continue
        seen.add((file.path, id(node)))
        yield Proposal(
            edits=(put_method(file, node, _method(birth, context.program)),),
            culprit=culprit_of(file, node, _WHY.get(birth.kind, "makes float64 values")),
            belief=_BELIEFS.get(birth.kind, 0.8) - (0.0 if is_model else 0.5),
        )


def _at_call(
    value: Value, births: Sequence[Birth], call: ast.Call, context: Context, seen: set[tuple[str, int]]
) -> Iterator[Proposal]:
    """A cast of what a module is called with, where that is float64, by source or live, or comes from where source does not show."""
    file, node = value.file, value.node
    if (file.path, id(node)) in seen or not is_module(call.func, file, context.program):
        return
    is_hidden = not any(isinstance(one.node, ast.Call) for one in origins(value, context.program))
    is_seen = (tensor := seen_live(node, context)) is not None and tensor.dtype == "float64"
    if not births and not ((is_hidden or is_seen) and _got_double(context)):
        return
    seen.add((file.path, id(node)))
    yield Proposal(
        edits=(put_method(file, node, ".float()"),),
        culprit=culprit_of(file, node, "hands float64 values to a float32 model"),
        belief=0.4,
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
