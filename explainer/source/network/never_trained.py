"""Modules that nothing in a program trains: whose parameters nothing lists, and which no trainer and no trained module holds."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from explainer.source.file import SourceFile
from explainer.source.name import Names
from explainer.source.network.module import is_module
from explainer.source.program import Program
from explainer.source.tree import walk
from explainer.source.value.binding import Value, bounds_of, find_calls
from explainer.source.value.resolve import Resolver, resolver_of

PARAMETERS = frozenset({"parameters", "named_parameters"})
_TRAINS = re.compile(r"Trainer$|^(?:fit|prepare|setup|initialize)$")
_LOOKS = frozenset({"numel", "nelement", "size", "shape", "dtype", "device", "grad", "requires_grad"})
_DEPTH = 6


def is_never_trained(module: Value, program: Program) -> bool:
    """Whether the calls that make a module are known, and none of them makes what is trained.

    Whose parameters the program lists for whatever purpose counts as trained; so does each module that such a one holds.
    """
    made = resolver_of(program).constructors_of(module)
    trained = set(program.once(_trained))
    return bool(made) and not any(one.node in trained for one in made)


def _trained(program: Program) -> Iterator[ast.AST]:
    resolver, seen = resolver_of(program), set[ast.AST]()
    for file, call in find_calls(program):
        names = program.names(file)
        for root in _roots(call, file, names):
            if isinstance(root, ast.Name) and root.id == "self":
                owner = names.class_of(root)
                yield from _held_by_class(file, owner, resolver, seen, 0) if owner is not None else ()
            elif getattr(call.func, "attr", "") in PARAMETERS or is_module(Value(root, file), program):
                yield from _held(Value(root, file), resolver, seen, 0)


def _roots(call: ast.Call, file: SourceFile, names: Names) -> list[ast.expr]:
    """What a call takes the parameters of: the owner of `parameters()`, the modules that a trainer is given.

    `next(model.parameters())` asks for a device or a dtype; `sum(p.numel() for p in model.parameters())` counts.
    """
    func, above = call.func, file.parents.get(call)
    if isinstance(func, ast.Attribute) and func.attr in PARAMETERS:
        is_asked = isinstance(above, ast.Call) and getattr(above.func, "id", "") == "next"
        return [] if is_asked or _is_looked_at(call, file) else [func.value]
    called = str(names.qualified(func) or getattr(func, "attr", "")).rpartition(".")[2]
    return [*call.args, *(one.value for one in call.keywords)] if _TRAINS.search(called) else []


def _is_looked_at(call: ast.Call, file: SourceFile) -> bool:
    """Whether a loop over parameters reads nothing of them but their size, their kind and their gradient."""
    loop = file.parents.get(call)
    whole = file.parents.get(loop) if isinstance(loop, ast.comprehension) else loop
    if not isinstance(loop, (ast.For, ast.comprehension)) or loop.iter is not call or whole is None:
        return False
    target = loop.target.elts[-1] if isinstance(loop.target, ast.Tuple) else loop.target
    reads = [
        one
        for one in walk(whole)
        if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Load) and one.id == getattr(target, "id", None)
    ]
    return all(_is_look(file.parents.get(one), file) for one in reads)


def _is_look(node: ast.AST | None, file: SourceFile) -> bool:
    """`p.numel()`, `p.grad is not None`, `p.grad.norm()`; not `p.grad.add_(noise)`, and not `p.requires_grad = True`."""
    if not isinstance(node, ast.Attribute) or node.attr not in _LOOKS or not isinstance(node.ctx, ast.Load):
        return False
    above = file.parents.get(node)
    return not (isinstance(above, ast.Attribute) and (above.attr.endswith("_") or above.attr == "data"))


def _held(value: Value, resolver: Resolver, seen: set[ast.AST], depth: int) -> Iterator[ast.AST]:
    """The calls that make a module, and those that make what it is given or makes itself."""
    for made in resolver.constructors_of(value):
        if made.node in seen or depth > _DEPTH or not isinstance(made.node, ast.Call):
            continue
        seen.add(made.node)
        yield made.node
        for given in (*made.node.args, *(one.value for one in made.node.keywords)):
            yield from _named(given, made, resolver, seen, depth)
        found = resolver.find_class(made.node.func, made.file)
        if found is not None:
            yield from _held_by_class(*found, resolver, seen, depth)


def _held_by_class(
    file: SourceFile, owner: ast.ClassDef, resolver: Resolver, seen: set[ast.AST], depth: int
) -> Iterator[ast.AST]:
    for method in owner.body if owner not in seen else ():
        for bound in bounds_of(method) if isinstance(method, ast.FunctionDef) else ():
            if bound.name.startswith("self."):
                yield from _named(bound.node, Value(bound.node, file), resolver, seen, depth)
    seen.add(owner)


def _named(node: ast.expr, near: Value, resolver: Resolver, seen: set[ast.AST], depth: int) -> Iterator[ast.AST]:
    for part in walk(node):
        if isinstance(part, (ast.Call, ast.Name, ast.Attribute)):
            yield from _held(Value(part, near.file, near.arguments), resolver, seen, depth + 1)
