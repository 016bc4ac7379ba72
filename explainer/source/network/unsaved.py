"""Tensors of modules that no state dict holds: buffers with `persistent=False`, and plain attributes that torch makes of numbers."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from explainer.source.file import SourceFile
from explainer.source.graph.cut import asks_for
from explainer.source.graph.draw import draws
from explainer.source.name import Function, bound_names, dotted_name
from explainer.source.network.module import inherits_module
from explainer.source.program import Program
from explainer.source.tree import walk
from explainer.source.value.binding import calls_behind
from explainer.source.value.constant_tensor import constants_of
from explainer.source.value.resolve import resolver_of

_OF_HOST = frozenset({"torch.from_numpy", "torch.frombuffer"})  # on the CPU, whatever the default device is
# A program that looks for such buffers, or writes them by name, gives them values itself.
_BY_NAME = ("named_buffers", "_buffers", "is_meta")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Unsaved:
    """A tensor that a module makes as it is built and no state holds; `attribute` is "" where its name is computed."""

    file: SourceFile
    owner: ast.ClassDef
    attribute: str
    node: ast.AST
    value: ast.expr


def unsaved_tensors(program: Program) -> Iterator[Unsaved]:
    """The tensors that the modules of a program make on the default device, apart from parameters and saved buffers."""
    for file in program.parsed():
        for owner in program.names(file).classes.values():
            if inherits_module(owner, file, program):
                for method in built_by(owner):
                    yield from _made(method, owner, file, program)


def built_by(owner: ast.ClassDef) -> Iterator[Function]:
    """`__init__`, and the methods of its class that it calls, whatever these call too."""
    methods = {one.name: one for one in owner.body if isinstance(one, (ast.FunctionDef, ast.AsyncFunctionDef))}
    todo, seen = ["__init__"], set()
    while todo:
        name = todo.pop()
        if name in seen or name not in methods:
            continue
        seen.add(name)
        yield methods[name]
        called = (dotted_name(node.func) or "" for node in walk(methods[name]) if isinstance(node, ast.Call))
        todo += [one.removeprefix("self.") for one in called if one.startswith("self.")]


def _made(method: Function, owner: ast.ClassDef, file: SourceFile, program: Program) -> Iterator[Unsaved]:
    constants = constants_of(method, file, program)
    for node in walk(method):
        found: tuple[str, ast.expr] | None = None
        if isinstance(node, ast.Call) and dotted_name(node.func) == "self.register_buffer":
            found = _registered(node)
        elif isinstance(node, ast.Assign) and len(node.targets) == 1:
            name = dotted_name(node.targets[0]) or ""
            is_own = name.startswith("self.") and name.count(".") == 1
            found = (name.removeprefix("self."), node.value) if is_own and constants.is_tensor(node.value) else None
        if found is not None and not _is_elsewhere(found[1], file, program):
            yield Unsaved(file=file, owner=owner, attribute=found[0], node=node, value=found[1])


def _registered(call: ast.Call) -> tuple[str, ast.expr] | None:
    """The name and the tensor of a buffer that no state holds."""
    named = {one.arg: one.value for one in call.keywords}
    given = [*call.args, *(named[one] for one in ("name", "tensor")[len(call.args) :] if one in named)]
    is_left_out = asks_for(call, "persistent", value=False) or (
        len(call.args) > 2 and isinstance(call.args[2], ast.Constant) and call.args[2].value is False
    )
    if not is_left_out or len(given) < 2 or isinstance(given[1], ast.Constant):
        return None
    key = given[0].value if isinstance(given[0], ast.Constant) else ""
    return str(key), given[1]


def _is_elsewhere(value: ast.expr, file: SourceFile, program: Program) -> bool:
    """Whether a tensor is made on a device of its own: that of an array, or a real one that the call names."""
    names = program.names(file)
    for node in walk(value):
        if not isinstance(node, ast.Call):
            continue
        device = next((one.value for one in node.keywords if one.arg == "device"), None)
        if names.qualified(node.func) in _OF_HOST or (isinstance(device, ast.Constant) and device.value is not None):
            return True
    return False


def is_drawn(one: Unsaved, program: Program) -> bool:
    """Whether the values of a tensor are random numbers."""
    return draws(one.value, one.file, program) or any(
        draws(call, one.file, program) for call in calls_behind(one.value, one.file)
    )


def is_filled_later(one: Unsaved, program: Program) -> bool:
    """Whether the program gives a tensor values once its module is built: from outside, or by a method that is called for it."""
    if any(file.attributes.get(name) for file in program.parsed() for name in _BY_NAME):
        return True
    built = set(built_by(one.owner))
    for file in program.parsed():
        names = program.names(file)
        for node in file.walk():
            receiver = _bound_on(node, one.attribute)
            function = names.function_of(node) if receiver is not None else None
            if receiver is None or function in built:
                continue
            if receiver != "self" or (_is_of(names.class_of(node), one.owner) and _is_called(function, program)):
                return True
    return False


def _bound_on(node: ast.AST, attribute: str) -> str | None:
    """What a node gives an attribute of that name a tensor of: by an assignment, `setattr`, another registration."""
    if isinstance(node, (ast.Assign, ast.AugAssign, ast.AnnAssign)):
        pairs = [name.removesuffix(".data").rpartition(".") for name in bound_names(node)]
        return next((owner for owner, _, last in pairs if owner and last == attribute), None)
    if not isinstance(node, ast.Call):
        return None
    called = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
    at = {"setattr": 1, "register_buffer": 0}.get(called, len(node.args))
    key = node.args[at] if at < len(node.args) else None
    if not isinstance(key, ast.Constant) or key.value != attribute:
        return None
    return dotted_name(node.func.value if isinstance(node.func, ast.Attribute) else node.args[0]) or ""


def _is_of(around: ast.ClassDef | None, owner: ast.ClassDef) -> bool:
    """Whether a class is a module's own, or derived from it."""
    bases = [(dotted_name(base) or "").rpartition(".")[2] for base in around.bases] if around is not None else []
    return around is owner or owner.name in bases


def _is_called(function: Function | None, program: Program) -> bool:
    """Whether the program calls a method on an object, not only the class on itself: `net.fill_tables()`."""
    is_own = function is None or function.name in ("forward", "__init__")
    calls = resolver_of(program).calls_named(function.name) if function is not None and not is_own else ()
    return any(
        isinstance(call.func, ast.Attribute) and dotted_name(call.func.value) not in ("self", "cls")
        for _, call in calls
    )
