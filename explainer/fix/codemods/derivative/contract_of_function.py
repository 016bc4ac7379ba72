"""A custom `autograd.Function` keeps to its contract: one gradient for each argument, tensors alone in `save_for_backward`."""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Iterator, Sequence
from itertools import combinations

from explainer.fix.codemod import Context, Proposal, culprit_of, edit_of, insert_after, insert_before
from explainer.fix.text.rewrite import bracketed, operand
from explainer.model.patch import Edit
from explainer.source.file import SourceFile
from explainer.source.name import dotted_name
from explainer.source.program import Program
from explainer.source.tree import children, walk
from explainer.source.value.binding import Value
from explainer.source.value.lineage import statements_of
from explainer.source.value.origin import origins
from explainer.source.value.provenance import provenance_of

_MAX_ARGUMENTS = 12  # of a function whose gradients are told apart by name
_FUNCTIONS = ("torch.autograd.Function", "torch.autograd.function.Function")
_RESHAPES = frozenset(
    ("view", "reshape", "unsqueeze", "expand", "expand_as", "view_as", "reshape_as", "permute", "transpose", "squeeze",
     "flatten", "unflatten", "repeat", "repeat_interleave", "movedim", "broadcast_to", "atleast_2d", "t")
)  # fmt: skip
_FLATTENS = frozenset(("flatten", "view", "reshape"))
_MOVES = frozenset(("permute", "transpose", "movedim", "t", "swapaxes", "flip", "roll"))
Pair = tuple[ast.FunctionDef, ast.FunctionDef]


def propose(context: Context) -> Iterator[Proposal]:
    """An edit for each Function of the program that breaks it."""
    if not context.has_failed:
        return
    for file in context.program.parsed():
        for owner in (*context.program.names(file).classes.values(), *_made_classes(file, context.program)):
            pair = _methods(owner, file, context.program)
            if pair is not None:
                yield from _missing(file, pair, owner, context.program)
                yield from _in_the_wrong_place(file, pair, owner, context)
                yield from _reduced_too_far(file, pair, owner, context)
                yield from _in_another_form(file, pair, owner, context)
                yield from _no_tensors(file, pair, owner, context.program)


def _methods(owner: ast.ClassDef, file: SourceFile, program: Program) -> Pair | None:
    if not any(program.names(file).qualified(base) in _FUNCTIONS for base in owner.bases):
        return None
    found = {one.name: one for one in owner.body if isinstance(one, ast.FunctionDef)}
    return (found["forward"], found["backward"]) if {"forward", "backward"} <= set(found) else None


def _made_classes(file: SourceFile, program: Program) -> Iterator[ast.ClassDef]:
    """The classes that a call of `type` makes, as if they were written: `type(name, (Function,), {"forward": staticmethod(forward), ...})`."""
    for call in file.walk():
        if not isinstance(call, ast.Call) or dotted_name(call.func) != "type" or len(call.args) != 3:
            continue
        _, bases, space = call.args
        if isinstance(bases, ast.Tuple) and isinstance(space, ast.Dict):
            scope = program.names(file).function_of(call) or file.tree
            near = (
                {one.name: one for one in walk(scope) if isinstance(one, ast.FunctionDef)} if scope is not None else {}
            )
            inner = [one.args[0] if isinstance(one, ast.Call) and one.args else one for one in space.values]
            body: list[ast.stmt] = [near[name] for one in inner if (name := dotted_name(one) or "") in near]
            made = ast.ClassDef(name="", bases=bases.elts, keywords=[], body=body, decorator_list=[])
            yield ast.copy_location(made, call)


def _inputs(forward: ast.FunctionDef) -> list[str]:
    """The arguments of forward, `ctx` left out."""
    return [one.arg for one in forward.args.args][1:]


def _missing(file: SourceFile, pair: Pair, owner: ast.ClassDef, program: Program) -> Iterator[Proposal]:
    """`None` for the arguments at the end that got no gradient, where none of those that then have none is to be trained."""
    forward, backward = pair
    wanted = len(_inputs(forward))
    returns = [one for one in statements_of(backward) if isinstance(one, ast.Return) and one.value is not None]
    is_open = forward.args.vararg is None and len(returns) == 1
    value = returns[0].value if is_open else None
    if value is None or (isinstance(value, (ast.Call, ast.Name)) and not _is_one(value, backward)):
        return
    given = len(value.elts) if isinstance(value, ast.Tuple) else 1
    if given >= wanted:
        return
    text = file.segment(value)
    nones = ", ".join(["None"] * (wanted - given))
    new = f"{text[:-1]}, {nones})" if isinstance(value, ast.Tuple) and text.startswith("(") else f"{text}, {nones}"
    why = f"returns {given} of {wanted} gradients: `{'`, `'.join(_inputs(forward)[given:])}` gets none"
    parts = value.elts if isinstance(value, ast.Tuple) else [value]
    without = {at for at in range(wanted) if at >= given or _is_none(parts[at])}
    if not _are_trained(without, owner, program):
        edits: tuple[Edit, ...] = (edit_of(file, value, new),)
    else:
        edits = tuple(
            _nones_between(parts, pair, owner, file, program) or _nones_by_name(parts, pair, owner, file, program)
        )
        why = f"returns {given} gradients for the {wanted} arguments of `forward`" if edits else why
    yield Proposal(edits=edits, culprit=culprit_of(file, value, why), belief=1.5)


def _nones_between(
    parts: list[ast.expr], pair: Pair, owner: ast.ClassDef, file: SourceFile, program: Program
) -> list[Edit]:
    """`None` for each argument that is a number in every call, where these are just as many as lack a gradient."""
    names = _inputs(pair[0])
    plain = _numbers(pair[0], owner, program)
    if len(names) - len(plain) != len(parts) or any(_is_none(one) for one in parts):
        return []
    return list(_with_nones(parts, [at for at, name in enumerate(names) if name in plain], file))


def _nones_by_name(
    parts: list[ast.expr], pair: Pair, owner: ast.ClassDef, file: SourceFile, program: Program
) -> list[Edit]:
    """`None` for each argument that no gradient is named after: `grad_codes` is that of `codes`.

    Of several ways that leave out nothing that is trained, the one that gives the first arguments a gradient.
    """
    names = _inputs(pair[0])
    of = [next((at for at, name in enumerate(names) if _is_named_after(one, name)), None) for one in parts]
    if any(_is_none(one) for one in parts) or all(at is None for at in of) or len(names) > _MAX_ARGUMENTS:
        return []
    trained = {at for at in range(len(names)) if _are_trained({at}, owner, program)}
    for chosen in combinations(range(len(names)), len(parts)):
        fits = all(at in (None, place) for at, place in zip(of, chosen, strict=True))
        if fits and trained <= set(chosen):
            return list(_with_nones(parts, [at for at in range(len(names)) if at not in chosen], file))
    return []


def _is_named_after(part: ast.expr, name: str) -> bool:
    return isinstance(part, ast.Name) and part.id in (
        f"grad_{name}",
        f"{name}_grad",
        f"d_{name}",
        f"d{name}",
        f"g_{name}",
    )


def _with_nones(parts: list[ast.expr], without: Sequence[int], file: SourceFile) -> Iterator[Edit]:
    """`None` put in at some places of what `backward` returns, counted as the arguments of `forward` are."""
    at, waiting = 0, ""
    for place in range(len(parts) + len(without)):
        if place in without:
            waiting += "None, "
            continue
        start = bracketed(file, parts[at])[0]
        if waiting:
            yield Edit(file=file.path, start=start, end=start, new=waiting)
        at, waiting = at + 1, ""
    if waiting:
        end = bracketed(file, parts[-1])[1]
        yield Edit(file=file.path, start=end, end=end, new=f", {waiting[:-2]}")


def _numbers(forward: ast.FunctionDef, owner: ast.ClassDef, program: Program) -> set[str]:
    """The arguments that are no tensor: as each call tells, followed to what makes them, or by what `forward` does with them.

    It keeps numbers as attributes of `ctx`, or computes with them and constants alone: `2 ** (bits - 1)`.
    """
    names, calls = _inputs(forward), list(_applied(owner, program))
    given = {
        name: [Value(call.args[at], file) for file, call in calls if at < len(call.args)]
        for at, name in enumerate(names)
    }
    made = {name: [each for one in values for each in origins(one, program)] for name, values in given.items()}
    plain = {name for name, found in made.items() if found and all(isinstance(one.node, ast.Constant) for one in found)}
    used = {
        name
        for name in names
        if _is_used_as_number(name, forward) and not _are_trained({names.index(name)}, owner, program)
    }
    return plain | used | _plain_arguments(forward, owner, program)


def _is_used_as_number(name: str, forward: ast.FunctionDef) -> bool:
    """Whether each use of an argument is arithmetic with constants, or an attribute of `ctx` that keeps it."""
    ctx = forward.args.args[0].arg
    above = {below: one for one in walk(forward) for below in children(one)}
    uses = [
        one for one in walk(forward) if isinstance(one, ast.Name) and one.id == name and isinstance(one.ctx, ast.Load)
    ]
    return bool(uses) and all(_is_constant_but(name, above.get(one)) or _is_kept(above.get(one), ctx) for one in uses)


def _is_constant_but(name: str, node: ast.AST | None) -> bool:
    parts = [one for one in walk(node) if isinstance(one, (ast.Name, ast.Call))] if isinstance(node, ast.BinOp) else []
    return bool(parts) and all(isinstance(one, ast.Name) and one.id == name for one in parts)


def _is_kept(node: ast.AST | None, ctx: str) -> bool:
    return isinstance(node, ast.Assign) and all((dotted_name(one) or "").startswith(f"{ctx}.") for one in node.targets)


def _are_trained(positions: set[int], owner: ast.ClassDef, program: Program) -> bool:
    """Whether a call gives a tensor with a graph, or a leaf that trains, at one of these places: `None` there would starve it."""
    origins = provenance_of(program)
    return any(
        origins.trace(Value(part, file)).live
        for file, call in _applied(owner, program)
        for at, value in enumerate(call.args)
        if at in positions
        for part in _without_buffers(value, file, program)
    )


def _without_buffers(value: ast.expr, file: SourceFile, program: Program) -> list[ast.expr]:
    """The operands of an argument that are no buffers of its module, which nothing trains: `self.scale` of `self.scale * self.usage`."""
    parts = [value.left, value.right] if isinstance(value, ast.BinOp) else [value]
    owner = program.names(file).class_of(value)
    buffers = (
        {
            one.args[0].value
            for one in walk(owner)
            if isinstance(one, ast.Call) and dotted_name(one.func) == "self.register_buffer" and one.args
            if isinstance(one.args[0], ast.Constant)
        }
        if owner is not None
        else set()
    )
    return [one for one in parts if (dotted_name(one) or "").removeprefix("self.") not in buffers]


def _applied(owner: ast.ClassDef, program: Program) -> Iterator[tuple[SourceFile, ast.Call]]:
    """Every `Owner.apply(...)` of the program; of a class that no call names, all that give as many arguments as it takes."""
    calls = [
        (file, node, dotted_name(node.func) or "")
        for file in program.parsed()
        for node in file.walk()
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "apply"
    ]
    own = [(file, node) for file, node, name in calls if owner.name and name.endswith(f"{owner.name}.apply")]
    forward = next((one for one in owner.body if isinstance(one, ast.FunctionDef) and one.name == "forward"), None)
    count = len(_inputs(forward)) if forward is not None else 0
    yield from own or ((file, node) for file, node, _ in calls if len(node.args) == count)


def _in_the_wrong_place(file: SourceFile, pair: Pair, owner: ast.ClassDef, context: Context) -> Iterator[Proposal]:
    """A gradient that stands where an argument is no tensor changes places with the one `None`, where that is for a tensor."""
    forward, backward = pair
    position = str(context.fields.get("position") or "")
    if not position.isdigit() or str(context.fields.get("function", "")).removesuffix("Backward") != owner.name:
        return
    for one in statements_of(backward):
        value = one.value if isinstance(one, ast.Return) else None
        parts = value.elts if isinstance(value, ast.Tuple) else []
        empty = [part for part in parts if _is_none(part)]
        at = int(position) - 1
        if len(empty) != 1 or not at < len(parts) == len(_inputs(forward)) or parts[at] is empty[0]:
            continue
        why = f"gives the gradient of `{_inputs(forward)[parts.index(empty[0])]}` in the place of `{_inputs(forward)[at]}`"
        yield Proposal(
            edits=(edit_of(file, parts[at], "None"), edit_of(file, empty[0], file.segment(parts[at]))),
            culprit=culprit_of(file, one, why),
            belief=2.0,
        )


def _reduced_too_far(file: SourceFile, pair: Pair, owner: ast.ClassDef, context: Context) -> Iterator[Proposal]:
    """A gradient that is summed into another shape than its tensor has: autograd itself sums to that, so the sum may go."""
    index, (forward, backward) = str(context.fields.get("index") or ""), pair
    if (
        context.fields.get("node") != f"{owner.name}Backward"
        or not index.isdigit()
        or not context.fields.get("got_shape")
    ):
        return
    for one in statements_of(backward):
        value = one.value if isinstance(one, ast.Return) else None
        parts = value.elts if isinstance(value, ast.Tuple) else [value] if value is not None else []
        # Autograd counts the tensors only.
        given = [(name, part) for name, part in zip(_inputs(forward), parts, strict=False) if not _is_none(part)]
        if not int(index) < len(given):
            continue
        name, part = given[int(index)]
        made, statement = _made(part, one, backward)
        sums = [node for node in walk(made) if isinstance(node, ast.Call) and _is_sum(node)]
        edits = [] if _is_reshaped(name, forward) else [_without_call(node, file) for node in sums]
        yield Proposal(
            edits=tuple(edits) if len(edits) == 1 else (),
            culprit=culprit_of(file, statement, f"gives `{name}` a gradient of another shape than it has"),
            belief=2.0 if len(edits) == 1 else 1.0,
            because="autograd sums a gradient along the dimensions in which its tensor was broadcast",
        )


def _in_another_form(file: SourceFile, pair: Pair, owner: ast.ClassDef, context: Context) -> Iterator[Proposal]:
    """A gradient with as many values as its tensor, which `forward` flattens first, gets the tensor's shape back."""
    index, (forward, backward) = str(context.fields.get("index") or ""), pair
    shapes = [_sizes(context.fields.get(name)) for name in ("got_shape", "expected_shape")]
    is_same = bool(shapes[0]) and math.prod(shapes[0]) == math.prod(shapes[1]) and shapes[0] != shapes[1]
    if context.fields.get("node") != f"{owner.name}Backward" or not index.isdigit() or not is_same:
        return
    called = {_method(one) for one in walk(forward) if isinstance(one, ast.Call)}
    if not called & _FLATTENS or called & _MOVES:
        return
    returns = [one for one in statements_of(backward) if isinstance(one, ast.Return) and one.value is not None]
    value = returns[0].value if len(returns) == 1 else None
    parts = value.elts if isinstance(value, ast.Tuple) else [value] if value is not None else []
    given = [(name, part) for name, part in zip(_inputs(forward), parts, strict=False) if not _is_none(part)]
    saved = next((one for one in statements_of(forward) if "save_for_backward" in file.segment(one)), forward.body[-1])
    if int(index) < len(given):
        (name, part), ctx = given[int(index)], (forward.args.args[0].arg, backward.args.args[0].arg)
        kept = f"{name}_shape"
        yield Proposal(
            edits=(
                insert_before(file, saved, f"{ctx[0]}.{kept} = {name}.shape"),
                edit_of(file, part, f"{operand(file, part)}.reshape({ctx[1]}.{kept})"),
            ),
            culprit=culprit_of(file, returns[0], f"gives `{name}` its gradient in the flattened shape"),
            belief=2.5,
            because="forward flattens it first, and the values stand in the same order",
        )


def _sizes(shape: object) -> list[int]:
    return [int(one) for one in re.findall(r"\d+", str(shape))] if shape is not None else []


def _is_reshaped(name: str, forward: ast.FunctionDef) -> bool:
    """Whether `forward` gives an argument another shape first: autograd, which sums from the last dimension on, sums others."""
    indexed = (node.value for node in walk(forward) if isinstance(node, ast.Subscript))
    shaping = [node for node in walk(forward) if isinstance(node, ast.Call) and _method(node) in _RESHAPES]
    given = (one for node in shaping for one in (*node.args[:1], *children(node.func)))
    return any(dotted_name(one) == name for one in (*indexed, *given))


def _method(node: ast.Call) -> str | None:
    return node.func.attr if isinstance(node.func, ast.Attribute) else None


def _without_call(node: ast.Call, file: SourceFile) -> Edit:
    """Takes `.method(...)` off an expression."""
    end = file.span(node.func.value)[1] if isinstance(node.func, ast.Attribute) else file.span(node)[0]
    end += len(file.text[end:]) - len(file.text[end:].lstrip(")"))
    return Edit(file=file.path, start=end, end=file.span(node)[1], new="")


def _is_none(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is None


def _made(value: ast.expr, at: ast.stmt, backward: ast.FunctionDef) -> tuple[ast.expr, ast.stmt]:
    """What a name in `return` was last bound to, and where; else the value itself."""
    name = dotted_name(value)
    bound = [
        one
        for one in statements_of(backward)
        if isinstance(one, ast.Assign) and name is not None and dotted_name(one.targets[0]) == name
    ]
    return (bound[-1].value, bound[-1]) if bound else (value, at)


def _is_sum(node: ast.Call) -> bool:
    return isinstance(node.func, ast.Attribute) and node.func.attr == "sum" and dotted_name(node.func) != "torch.sum"


def _is_one(value: ast.expr, backward: ast.FunctionDef) -> bool:
    """Whether a name or call in `return` is one tensor: not what a tuple was bound to."""
    name = dotted_name(value)
    made = [
        one.value
        for one in statements_of(backward)
        if isinstance(one, ast.Assign) and dotted_name(one.targets[0]) == name
    ]
    return not any(isinstance(one, (ast.Tuple, ast.List)) for one in made)


def _no_tensors(file: SourceFile, pair: Pair, owner: ast.ClassDef, program: Program) -> Iterator[Proposal]:
    """Arguments that a caller gives as numbers or strings become attributes of `ctx`."""
    forward, backward = pair
    ctx, other = forward.args.args[0].arg, backward.args.args[0].arg
    saves = [
        node
        for node in walk(forward)
        if isinstance(node, ast.Call) and dotted_name(node.func) == f"{ctx}.save_for_backward"
    ]
    plain = _plain_arguments(forward, owner, program)
    if len(saves) != 1:
        return
    saved = [dotted_name(one) for one in saves[0].args]
    moved = [name for name in saved if name in plain]
    if not moved or None in saved:
        return
    edits = [*_saving(file, saves[0], moved, ctx), *_reading(file, backward, saved, moved, other)]
    why = f"saves `{moved[0]}`, which is no tensor"
    yield Proposal(edits=tuple(edits), culprit=culprit_of(file, saves[0], why), belief=1.5)


def _plain_arguments(forward: ast.FunctionDef, owner: ast.ClassDef, program: Program) -> set[str]:
    """The arguments that every `apply` gives as a constant, or whose default or annotation says so."""
    names, found = _inputs(forward), set[str]()
    for one in forward.args.args:
        if dotted_name(one.annotation) in ("int", "float", "bool", "str"):
            found.add(one.arg)
    for _, call in _applied(owner, program):
        found |= {name for name, value in zip(names, call.args, strict=False) if isinstance(value, (ast.Constant, ast.UnaryOp))
                  and not (isinstance(value, ast.UnaryOp) and not isinstance(value.operand, ast.Constant))}  # fmt: skip
    return found


def _saving(file: SourceFile, save: ast.Call, moved: list[str], ctx: str) -> Iterator[Edit]:
    kept = [file.segment(one) for one in save.args if dotted_name(one) not in moved]
    statement = file.statement(save)
    yield edit_of(file, save, f"{file.segment(save.func)}({', '.join(kept)})")
    yield insert_after(file, statement, "\n".join(f"{ctx}.{name} = {name}" for name in moved))


def _reading(
    file: SourceFile, backward: ast.FunctionDef, saved: list[str | None], moved: list[str], ctx: str
) -> Iterator[Edit]:
    """The unpacking of `saved_tensors` without them, and their names read from `ctx`."""
    for one in statements_of(backward):
        value = one.value if isinstance(one, ast.Assign) else None
        if (
            dotted_name(value) != f"{ctx}.saved_tensors"
            or not isinstance(one, ast.Assign)
            or not isinstance(one.targets[0], ast.Tuple)
        ):
            continue
        targets = [file.segment(each) for each in one.targets[0].elts]
        local = {target: name for target, name in zip(targets, saved, strict=False) if name in moved}
        kept = [each for each in targets if each not in local]
        yield edit_of(file, one.targets[0], f"({kept[0]},)" if len(kept) == 1 else ", ".join(kept))
        for node in walk(backward):
            if isinstance(node, ast.Name) and node.id in local and isinstance(node.ctx, ast.Load):
                yield edit_of(file, node, f"{ctx}.{local[node.id]}")
