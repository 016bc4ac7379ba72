"""What a custom autograd Function saves, where its backward is to be differentiated again.

Of what `forward` computes on the way the graph of that backward knows nothing: to it such a tensor is a constant, and the second
derivative is wrong without an error. The inputs are saved in its place, and `backward` computes it of them anew.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass

from explainer.fix.codemod import edit_of, insert_after
from explainer.model.patch import Edit
from explainer.source.file import SourceFile
from explainer.source.name import Function, dotted_name
from explainer.source.tree import walk

_SAVE, _SAVED = "save_for_backward", "saved_tensors"


@dataclass(frozen=True, slots=True)
class _Saves:
    """`ctx.save_for_backward(x, gate)` in a forward, and `x, gate = ctx.saved_tensors` in its backward."""

    call: ast.Call
    names: list[str]
    unpacked: ast.Assign
    locals: list[str]


def resaved(forward: Function, backward: Function, file: SourceFile) -> list[Edit] | None:
    """The edits after which only inputs and outputs are saved, none where that is so; None where they cannot be written."""
    inputs = [one.arg for one in forward.args.args][1:]
    known = {*inputs, *(dotted_name(one) for one in _returned(forward))}
    if all(dotted_name(one) in known for one in _kept(forward)):
        return []
    found = _saves(forward, backward)
    if found is None or any(dotted_name(one) not in {*known, *found.names} for one in _kept(forward)):
        return None
    between = [one for one in found.names if one not in known]
    made = {name: _made(name, forward) for name in between}
    reads = _inputs_of([one for one in made.values() if one is not None], inputs)
    if None in made.values() or reads is None or _writes(forward):
        return None
    kept = {name: local for name, local in zip(found.names, found.locals, strict=True) if name not in between}
    more = [one for one in inputs if one in reads and one not in kept]
    bound = {one.id for one in walk(backward) if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Store)}
    is_clear = all(kept[one] == one for one in reads if one in kept) and not set(more) & (bound - set(found.locals))
    if not is_clear or not all(_has_gradient(one, inputs, backward) for one in more):
        return None
    saved = [*more, *(one for one in found.names if one in kept)]
    unpacked = [*more, *(kept[one] for one in found.names if one in kept)]
    ctx = file.segment(found.unpacked.value)
    lines = [
        f"{local} = {file.segment(value)}"
        for name, local in zip(found.names, found.locals, strict=True)
        if (value := made.get(name)) is not None
    ]
    head = f"{', '.join(unpacked)}{',' if len(unpacked) == 1 else ''} = {ctx}"
    start, end = file.span(found.call.args[0])[0], file.span(found.call.args[-1])[1]
    return [
        Edit(file=file.path, start=start, end=end, new=", ".join(saved)),
        edit_of(file, found.unpacked, head),
        *(insert_after(file, found.unpacked, one) for one in lines),
    ]


def _kept(forward: Function) -> list[ast.expr]:
    """What a forward saves, or keeps as attributes, but for numbers, shapes and flags."""
    saved = [part for one in walk(forward) if isinstance(one, ast.Call) and _is(one.func, _SAVE) for part in one.args]
    kept = [
        one.value for one in walk(forward) if isinstance(one, ast.Assign) and isinstance(one.targets[0], ast.Attribute)
    ]
    return saved + [one for one in kept if isinstance(one, (ast.Name, ast.BinOp, ast.Call)) and not _is_size(one)]


def _is_size(value: ast.expr) -> bool:
    return any(
        isinstance(one, ast.Attribute) and one.attr in ("shape", "size", "ndim", "dtype", "device")
        for one in walk(value)
    )


def _saves(forward: Function, backward: Function) -> _Saves | None:
    calls = [one for one in walk(forward) if isinstance(one, ast.Call) and _is(one.func, _SAVE)]
    unpacked = [one for one in walk(backward) if isinstance(one, ast.Assign) and _is(one.value, _SAVED)]
    if len(calls) != 1 or len(unpacked) != 1 or len(unpacked[0].targets) != 1:
        return None
    target = unpacked[0].targets[0]
    parts = target.elts if isinstance(target, (ast.Tuple, ast.List)) else []
    names = [one.id for one in calls[0].args if isinstance(one, ast.Name)]
    local = [one.id for one in parts if isinstance(one, ast.Name)]
    is_plain = len(names) == len(calls[0].args) == len(local) == len(parts) > 0 and not calls[0].keywords
    return _Saves(calls[0], names, unpacked[0], local) if is_plain else None


def _is(node: ast.AST, name: str) -> bool:
    return isinstance(node, ast.Attribute) and node.attr == name


def _returned(function: Function) -> list[ast.expr]:
    values = [one.value for one in walk(function) if isinstance(one, ast.Return) and one.value is not None]
    return [part for one in values for part in (one.elts if isinstance(one, ast.Tuple) else [one])]


def _made(name: str, forward: Function) -> ast.expr | None:
    """The one expression that a name is bound to."""
    bound = [
        one
        for one in walk(forward)
        if isinstance(one, ast.Assign) and any(isinstance(each, ast.Name) and each.id == name for each in one.targets)
    ]
    stored = [
        one for one in walk(forward) if isinstance(one, ast.Name) and one.id == name and isinstance(one.ctx, ast.Store)
    ]
    return bound[0].value if len(bound) == len(stored) == 1 else None


def _inputs_of(values: list[ast.expr], inputs: list[str]) -> set[str] | None:
    """The inputs that some expressions read; None where they read what else the forward has computed."""
    roots = {
        one.value.id
        for value in values
        for one in walk(value)
        if isinstance(one, ast.Attribute) and isinstance(one.value, ast.Name)
    }
    read = {one.id for value in values for one in walk(value) if isinstance(one, ast.Name)}
    called = {
        one.func.id
        for value in values
        for one in walk(value)
        if isinstance(one, ast.Call) and isinstance(one.func, ast.Name)
    }
    others = read - set(inputs) - called - roots
    return read & set(inputs) if not others else None


def _writes(forward: Function) -> bool:
    """Whether a forward writes a tensor in place: what it read before is then another value in the backward."""
    return any(
        isinstance(one, ast.AugAssign)
        or (isinstance(one, ast.Attribute) and one.attr.endswith("_") and not one.attr.startswith("_"))
        for one in walk(forward)
    )


def _has_gradient(name: str, inputs: list[str], backward: Function) -> bool:
    """Whether a backward gives an input a gradient: then it is a tensor."""
    at = inputs.index(name)
    for one in (one for one in walk(backward) if isinstance(one, ast.Return)):
        parts = one.value.elts if isinstance(one.value, ast.Tuple) else [one.value]
        given = parts[at] if at < len(parts) else None
        if given is None or (isinstance(given, ast.Constant) and given.value is None):
            return False
    return True
