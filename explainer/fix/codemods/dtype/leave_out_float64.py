"""`torch.zeros(n)` for `torch.zeros(n, dtype=torch.float64)`, where a float32 layer met a float64 tensor whose way nobody can follow.

A buffer of a module, a state that is kept from step to step: what is float64 in a float32 program was asked to be in few places.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from explainer.fix.codemod import Context, Proposal, culprit_of, edit_of
from explainer.fix.text.rewrite import put_method, remove_argument
from explainer.model.patch import Edit
from explainer.source.file import SourceFile
from explainer.source.name import Names
from explainer.source.program import Program
from explainer.source.value.binding import Value
from explainer.source.value.dtype import CONVERSION, FLOAT64, float64_births, stated_dtype

_FIELDS = ("left_dtype", "right_dtype", "left_type", "right_type", "found_dtype", "found_type")
_DOUBLE = frozenset({"float64", "Double", "double"})
_CONVERTS = ("torch.from_numpy", "torch.tensor", "torch.as_tensor")
_MOST = 4  # a program that asks for float64 in many places means it
Place = tuple[SourceFile, ast.Call, Edit]


def propose(context: Context) -> Iterator[Proposal]:
    """An edit for all places that make a tensor float64, and one for each."""
    dtypes = {str(context.fields.get(one)) for one in _FIELDS}
    if not context.has_failed or not dtypes & _DOUBLE or context.incident.fact("live_coarse") is not None:
        return
    places = list(_places(context.program))
    if not 0 < len(places) <= _MOST:
        return
    groups = [places, *([one] for one in places)] if len(places) > 1 else [places]
    for group in groups:
        file, call, _ = group[0]
        yield Proposal(
            edits=tuple(edit for _, _, edit in group),
            culprit=culprit_of(file, call, "makes float64 values in a float32 program"),
            belief=0.6 if group is places else 0.5,
        )


def _places(program: Program) -> Iterator[Place]:
    """What makes a tensor float64: a dtype that is asked for, a cast, an array of NumPy's that is taken as it is."""
    for file in program.parsed():
        names = program.names(file)
        for call in file.walk():
            if not isinstance(call, ast.Call):
                continue
            edit = _without_dtype(call, file, names) or _as_float32(call, file, program)
            if edit is not None:
                yield file, call, edit


def _without_dtype(call: ast.Call, file: SourceFile, names: Names) -> Edit | None:
    """`torch.zeros(n, dtype=torch.float64)` and `x.double()` without what they ask for."""
    called = names.qualified(call.func) or ""
    if stated_dtype(call, names) != FLOAT64 or called.startswith("numpy."):
        return None
    asked = next((one for one in call.keywords if one.arg == "dtype"), None)
    if asked is not None:
        return remove_argument(file, call, asked) if called.startswith("torch.") else None
    is_cast = isinstance(call.func, ast.Attribute) and call.func.attr in ("double", "to")
    if not is_cast or not isinstance(call.func, ast.Attribute) or len(call.args) > 1 or call.keywords:
        return None
    return edit_of(file, call, file.segment(call.func.value))


def _as_float32(call: ast.Call, file: SourceFile, program: Program) -> Edit | None:
    """`torch.from_numpy(means)`, of an array that is float64, with `.float()` behind it."""
    if not program.names(file).is_call(call, *_CONVERTS):
        return None
    above = file.parents.get(call)
    if isinstance(above, ast.Attribute) and above.attr in ("float", "to", "type", "long"):
        return None
    births = float64_births(Value(call, file), program)
    return put_method(file, call, ".float()") if any(one.kind == CONVERSION for one in births) else None
