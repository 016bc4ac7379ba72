"""Which modules and tensors an optimizer was made of, by the names that they have where it is stepped."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from explainer.source.file import SourceFile
from explainer.source.name import Function, dotted_name, entry_name
from explainer.source.program import Program
from explainer.source.tree import walk
from explainer.source.value.binding import Value
from explainer.source.value.flow import arguments_of
from explainer.source.value.keyed import entry_made, key_of, walked
from explainer.source.value.lineage import reads
from explainer.source.value.resolve import resolver_of

_DEPTH = 4


def owned_by(optimizer: str, at: ast.AST, file: SourceFile, program: Program, depth: int = 0) -> frozenset[str]:
    """The modules, as named where `at` stands, whose parameters an optimizer was made of; empty where that is not known."""
    names = program.names(file)
    function = names.function_of(at)
    parameter = _parameter(optimizer, function)
    if function is not None and parameter and depth < _DEPTH:
        return _through_callers(optimizer, function, program, depth)
    scope: ast.AST | None = names.class_of(at) if optimizer.startswith("self.") else function
    for place in (scope, file.tree):
        value = _made(optimizer, place) if place is not None else None
        owner = names.class_of(at)
        if value is not None and owner is not None and _is_asked_for(value[0]):
            return _configured(value[1] or 0, owner, file, program)
        if value is not None:
            found = _modules(value, program)
            return frozenset(_kept_as(one, owner) for one in found) if owner is not None else found
    return _of_object(optimizer, at, file, program) if depth < _DEPTH else frozenset()


def _kept_as(name: str, owner: ast.ClassDef) -> str:
    """The attribute under which an object keeps what its constructor was given: `self.nets["g"]` for `nets["g"]`."""
    root = re.split(r"[.\[]", name)[0]
    for node in walk(owner) if root != "self" else ():
        for target, value in _given(node):
            kept = dotted_name(target) or ""
            if dotted_name(value) == root and kept.startswith("self."):
                return f"{kept}{name.removeprefix(root)}"
    return name


def _given(node: ast.AST) -> Iterator[tuple[ast.expr, ast.expr]]:
    """Each target of an assignment with its part of the value: `self.a` and `a` of `self.a, self.b = a, b`."""
    for target in node.targets if isinstance(node, ast.Assign) else ():
        value = node.value  # type: ignore[attr-defined]
        if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple) and len(target.elts) == len(value.elts):
            yield from zip(target.elts, value.elts, strict=True)
        else:
            yield target, value


def _of_object(optimizer: str, at: ast.AST, file: SourceFile, program: Program) -> frozenset[str]:
    """What `model.opt_D` owns, made as `self.opt_D` in the class of `model`: `model.D`."""
    owner, _, last = optimizer.rpartition(".")
    found: set[str] = set()
    for where, one in classes_named(owner, at, file, program):
        inner = owned_by(f"self.{last}", one.body[0], where, program, _DEPTH)
        found |= {f"{owner}{name.removeprefix('self')}" for name in inner if name.startswith("self.")}
    return frozenset(found)


def classes_named(name: str, at: ast.AST, file: SourceFile, program: Program) -> list[tuple[SourceFile, ast.ClassDef]]:
    """The classes of the object that a name stands for in a statement."""
    node = next((one for one in ast.walk(at) if isinstance(one, ast.expr) and dotted_name(one) == name), None)
    return resolver_of(program).classes_of(Value(node, file)) if node is not None and name != "self" else []


def tensors_of(optimizer: str, at: ast.AST, file: SourceFile, program: Program) -> frozenset[str]:
    """The tensors by name that an optimizer was made of, and nothing else: `Adam([log_alpha])`; empty where it owns modules."""
    names = program.names(file)
    scope: ast.AST | None = names.class_of(at) if optimizer.startswith("self.") else names.function_of(at)
    for place in (scope, file.tree):
        made = _made(optimizer, place) if place is not None else None
        if made is not None:
            given = made[0].args[0] if isinstance(made[0], ast.Call) and made[0].args else None
            parts = given.elts if isinstance(given, (ast.List, ast.Tuple)) else []
            found = [dotted_name(one) for one in parts]
            return frozenset(one for one in found if one) if all(found) else frozenset()
    return frozenset()


def _is_asked_for(value: ast.expr) -> bool:
    """`self.optimizers()` of Lightning, which are those of `configure_optimizers`, in their order."""
    return isinstance(value, ast.Call) and dotted_name(value.func) == "self.optimizers"


def _configured(place: int, owner: ast.ClassDef, file: SourceFile, program: Program) -> frozenset[str]:
    """The modules of the optimizer at a place of what `configure_optimizers` returns: optimizers, or lists of them and of schedulers."""
    methods = [one for one in owner.body if isinstance(one, ast.FunctionDef) and one.name == "configure_optimizers"]
    for node in (each for one in methods for each in walk(one)):
        if not isinstance(node, ast.Return) or node.value is None:
            continue
        given = node.value.elts if isinstance(node.value, (ast.Tuple, ast.List)) else [node.value]
        given = given[0].elts if given and isinstance(given[0], (ast.Tuple, ast.List)) else given
        if place < len(given):
            name = dotted_name(given[place])
            return owned_by(name, node, file, program) if name else _modules((given[place], None), program)
    return frozenset()


def _parameter(name: str, function: Function | None) -> bool:
    if function is None:
        return False
    return name in {one.arg for one in (*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs)}


def _through_callers(optimizer: str, function: Function, program: Program, depth: int) -> frozenset[str]:
    """The owned modules by the names that the function's parameters give them, read where it is called."""
    for where in program.parsed():
        for call in where.walk():
            if not isinstance(call, ast.Call) or (dotted_name(call.func) or "").rpartition(".")[2] != function.name:
                continue
            given = {name: dotted_name(value) for name, value in arguments_of(call, function)}
            outer = given.get(optimizer)
            modules = owned_by(outer, call, where, program, depth + 1) if outer else frozenset()
            found = {name for name, value in given.items() if value in modules}
            if found:
                return frozenset(found)
            if modules:  # a module-level name that the function reads as it is
                return modules & frozenset(reads(function, graph=False))
    return frozenset()


def _made(name: str, within: ast.AST) -> tuple[ast.expr, int | None] | None:
    """What `name` is assigned, and at which place of a tuple; for an entry, as `opts["g"]`, also where its container is made."""
    for node in walk(within):
        if not isinstance(node, ast.Assign):
            continue
        for target in node.targets:
            if entry_name(target) == name:
                return node.value, None
            parts = target.elts if isinstance(target, (ast.Tuple, ast.List)) else []
            for place, one in enumerate(parts):
                if entry_name(one) == name:
                    value = node.value
                    if isinstance(value, (ast.Tuple, ast.List)) and len(value.elts) == len(parts):
                        return value.elts[place], None
                    return value, place
    container, key = key_of(name)
    entry = entry_made(container, key, within) if key is not None else None
    return (entry, None) if entry is not None else None


def _modules(made: tuple[ast.expr, int | None], program: Program) -> frozenset[str]:
    """The modules whose `.parameters()` stand in an expression, or in what the function that it calls returns."""
    value, place = made
    found = {name for node in walk(value) if (name := _listed(node))}
    if found or not isinstance(value, ast.Call):
        return frozenset(each for name in found for each in walked(name, value))
    target = program.find_function(dotted_name(value.func) or "")
    if target is None:
        return frozenset()
    where, function = target
    given = {name: dotted_name(one) for name, one in arguments_of(value, function)}
    inner: set[str] = set()
    for node in walk(function):
        if isinstance(node, ast.Return) and node.value is not None:
            one = node.value.elts[place] if isinstance(node.value, ast.Tuple) and place is not None else node.value
            name = dotted_name(one)
            inner |= _modules((one, None), program) if name is None else owned_by(name, one, where, program, _DEPTH)
    return frozenset(outer for name in inner if (outer := given.get(name)))


def _listed(node: ast.AST) -> str | None:
    """`net` of `net.parameters()`, `net.fc` of `net.fc.weight` in a list is not followed."""
    func = node.func if isinstance(node, ast.Call) else None
    is_list = isinstance(func, ast.Attribute) and func.attr in ("parameters", "named_parameters")
    return entry_name(func.value) if is_list and isinstance(func, ast.Attribute) else None
