"""Where a value comes from: through names, calls of the program's own functions, loaders and data sets, to what makes it."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import replace

from explainer.source.data.loader import LOADERS
from explainer.source.name import Function, dotted_name
from explainer.source.program import Program
from explainer.source.tree import walk
from explainer.source.value.binding import Value
from explainer.source.value.resolve import Resolver, resolver_of

_DEPTH = 12
_TENSORS = ("torch.utils.data.TensorDataset", "torch.utils.data.dataset.TensorDataset")
_PARTS = ("torch.utils.data.Subset", "torch.utils.data.random_split", "torch.utils.data.ConcatDataset")
# Methods that hand on what they are called on, in the same dtype.
KEEP = frozenset(
    {"to", "cuda", "cpu", "view", "reshape", "flatten", "squeeze", "unsqueeze", "transpose", "permute", "contiguous", "clone", "detach"}
    | {"pin_memory", "t", "copy", "ravel", "expand", "repeat", "requires_grad_", "T"}
)  # fmt: skip


def origins(value: Value, program: Program, depth: int = 0) -> Iterator[Value]:
    """The expressions that make a value: no plain names, no elements of a loader, no results of the program's functions."""
    if depth > _DEPTH:
        return
    resolver = resolver_of(program)
    if value.is_element or value.pick is not None:
        yield from _taken(value, program, resolver, depth)
        return
    node = value.node
    if isinstance(node, (ast.Name, ast.Attribute)) and dotted_name(node):
        for one in resolver.behind(value):
            yield from origins(one, program, depth + 1)
        return
    if isinstance(node, ast.Call):
        found = called(node, value, program)
        if found:
            for one in found:
                yield from origins(one, program, depth + 1)
            return
    if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant) and isinstance(node.slice.value, str):
        taken = list(origins(replace(value, node=node.value, pick=node.slice.value), program, depth + 1))
        yield from [one for one in taken if one.pick is None] or [value]
        return
    if isinstance(node, ast.IfExp):
        for branch in (node.body, node.orelse):
            yield from origins(replace(value, node=branch), program, depth + 1)
        return
    yield value


def _taken(value: Value, program: Program, resolver: Resolver, depth: int) -> Iterator[Value]:
    """An element of a loader's batch, or of what a function returns as a tuple."""
    pick = value.pick
    whole = replace(value, pick=None, is_element=False)
    if not value.is_element:
        for one in origins(whole, program, depth + 1):
            if isinstance(one.node, (ast.Tuple, ast.List)) and isinstance(pick, int) and pick < len(one.node.elts):
                yield from origins(replace(one, node=one.node.elts[pick]), program, depth + 1)
            elif isinstance(one.node, ast.Dict) and isinstance(pick, str):
                for key, item in zip(one.node.keys, one.node.values, strict=True):
                    if isinstance(key, ast.Constant) and key.value == pick:
                        yield from origins(replace(one, node=item), program, depth + 1)
            elif isinstance(one.node, ast.DictComp) and (walked := walked_dictionary(one.node)) is not None:
                yield from origins(replace(one, node=walked, pick=pick), program, depth + 1)
            elif one.pick is None:
                yield replace(one, pick=pick)
            else:
                yield one
        return
    for made in resolver.constructors_of(whole):
        yield from _element(made, pick, program, depth + 1)


def walked_dictionary(node: ast.DictComp) -> ast.expr | None:
    """The dictionary whose items a comprehension hands on: `batch` of `{k: v.to(d) for k, v in batch.items()}`.

    `cfg.items("train")`, a section of an INI file, is what it hands on itself.
    """
    source = node.generators[0].iter
    if not isinstance(source, ast.Call) or not isinstance(source.func, ast.Attribute) or source.func.attr != "items":
        return None
    return source if source.args else source.func.value


def _element(made: Value, pick: int | str | None, program: Program, depth: int) -> Iterator[Value]:
    """What a loop over a loader or a data set hands out: `TensorDataset`'s columns, what `__getitem__` returns."""
    call = made.node
    if not isinstance(call, ast.Call) or depth > _DEPTH:
        return
    names = program.names(made.file)
    name = names.qualified(call.func) or ""
    resolver = resolver_of(program)
    if name in LOADERS or name in _PARTS or name.endswith(".prepare"):
        data = next((one.value for one in call.keywords if one.arg == "dataset"), call.args[0] if call.args else None)
        if data is not None:
            for one in resolver.constructors_of(replace(made, node=data, pick=None, is_element=False)):
                yield from _element(one, pick, program, depth + 1)
    elif name in _TENSORS and isinstance(pick, int) and pick < len(call.args):
        yield from origins(replace(made, node=call.args[pick], pick=None, is_element=False), program, depth + 1)
    else:
        for file, owner in resolver.classes_of(made):
            method = _method(owner, "__getitem__", "__iter__")
            for result in _results(method) if method is not None else ():
                yield from origins(Value(node=result, file=file, pick=pick), program, depth + 1)


def called(node: ast.Call, value: Value, program: Program) -> list[Value]:
    """What the program's own function, or the `__call__` of its own class, returns in a call."""
    resolver = resolver_of(program)
    target = resolver.function_of(node, value)
    if target is not None:
        return list(resolver.returns_of(target, node, value))
    found: list[Value] = []
    for one in _callees(replace(value, node=node.func, pick=None, is_element=False), program, 0):
        for file, owner in resolver.classes_of(one):
            method = _method(owner, "__call__")
            found += [Value(node=result, file=file) for result in _results(method)] if method is not None else []
    return found


def _callees(value: Value, program: Program, depth: int) -> Iterator[Value]:
    """What may be called by a name: through `transform or default`."""
    if depth > _DEPTH:
        return
    if isinstance(value.node, ast.BoolOp):
        for one in value.node.values:
            yield from _callees(replace(value, node=one), program, depth + 1)
    elif isinstance(value.node, (ast.Name, ast.Attribute)):
        for behind in resolver_of(program).behind(value):
            yield from _callees(behind, program, depth + 1)
    elif isinstance(value.node, ast.Call):
        yield value


def _method(owner: ast.ClassDef, *names: str) -> Function | None:
    return next(
        (one for one in owner.body if isinstance(one, (ast.FunctionDef, ast.AsyncFunctionDef)) and one.name in names),
        None,
    )


def _results(function: Function) -> list[ast.expr]:
    """What a function returns or yields."""
    return [one.value for one in walk(function) if isinstance(one, (ast.Return, ast.Yield)) and one.value is not None]
