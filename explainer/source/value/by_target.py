"""Classes that a program makes by a name out of its configuration: `instantiate(cfg.model)`, `load(config["target"])(**params)`.

Hydra's `instantiate`, and functions of the program that import a module by a name and take a class out of it. The dotted names stand
in the configuration files; the words by which a call asks for its part of them tell which are meant.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from explainer.source.file import SourceFile
from explainer.source.name import Function
from explainer.source.program import Program
from explainer.source.tree import walk
from explainer.source.value.binding import Value, bind_call, reaching

if TYPE_CHECKING:
    from explainer.source.value.resolve import Resolver

_MAKES = ("hydra.utils.instantiate", "hydra.utils.call")
_LOADS = frozenset({"hydra.utils.get_class", "hydra.utils.get_object", "pydoc.locate"})
_IMPORTS = frozenset({"import_module", "__import__"})
_DOTTED = re.compile(r"[A-Za-z_]\w*(?:\.\w+)+")
_TARGETS = frozenset({"target", "_target_", "class_path", "class", "type", "cls"})
_DEPTH = 6
_MOST = 4

Target = tuple[tuple[str, ...], SourceFile, ast.ClassDef]


def classes_by_target(
    func: ast.expr, file: SourceFile, arguments: Mapping[str, Value], resolver: Resolver
) -> list[tuple[SourceFile, ast.ClassDef]]:
    """The program's classes of which a call with this function makes one, as its configuration names them."""
    targets = resolver.program.once(_targets)
    asked = _asked(func, file, arguments, resolver) if targets else None
    if asked is None:
        return []
    for word in _words(asked, resolver, 0):
        named = [one for one in targets if one[0][-2:-1] == (word,)] or [one for one in targets if word in one[0]]
        if named:
            targets = tuple(named)
            break
    found = {id(owner): (where, owner) for _, where, owner in targets}
    return list(found.values()) if len(found) == 1 or len(targets) < len(resolver.program.once(_targets)) else []


def _asked(func: ast.expr, file: SourceFile, arguments: Mapping[str, Value], resolver: Resolver) -> Value | None:
    """What a call asks its class by: the configuration, or the name in it; None of a call that loads no class."""
    above = file.parents.get(func)
    if isinstance(above, ast.Call) and above.func is func and isinstance(func, (ast.Name, ast.Attribute)):
        if resolver.program.names(file).is_call(above, *_MAKES):
            return Value(above.args[0], file, arguments) if above.args else None
        factories = resolver.program.once(_factories)
        last = func.attr if isinstance(func, ast.Attribute) else func.id
        if any(function.name == last for function, _ in factories):
            target = resolver.function_of(above, Value(above, file, arguments))
            made = next((one for function, one in factories if target and function is target[1]), None)
            if target is not None and made is not None:
                return Value(made, target[0], bind_call(above, target[1], Value(above, file, arguments)))
    asked = _loaded_by(func, file, resolver.program)
    return Value(asked, file, arguments) if asked is not None else None


def _factories(program: Program) -> Iterator[tuple[Function, ast.expr]]:
    """The program's functions that return an object of a class which they load by a name, and what names it there."""
    for file, function in program.functions():
        for node in walk(function):
            made = node.value if isinstance(node, ast.Return) else None
            asked = _loaded_by(made.func, file, program) if isinstance(made, ast.Call) else None
            if asked is not None:
                yield function, asked


def _loaded_by(func: ast.expr, file: SourceFile, program: Program) -> ast.expr | None:
    """What names the class that an expression loads: `load(config["target"])`, `getattr(import_module(path), name)`."""
    if isinstance(func, ast.Name) and len(taken := reaching(func.id, func, file)) == 1:
        func = taken[0].node
    if not isinstance(func, ast.Call) or not func.args:
        return None
    if getattr(func.func, "id", "") == "getattr":
        return func.args[-1] if any(_is_import(one) for one in walk(func.args[0])) else None
    called = program.names(file).qualified(func.func) or ""
    if called in _LOADS:
        return func.args[0]
    target = program.find_function(called) if called else None
    return func.args[0] if target is not None and target[1] in program.once(_loaders) else None


def _loaders(program: Program) -> Iterator[Function]:
    """The program's functions that import a module by a name and take something out of it."""
    for _, function in program.functions():
        nodes = list(walk(function))
        takes = any(isinstance(one, ast.Name) and one.id == "getattr" for one in nodes)
        if takes and any(_is_import(one) for one in nodes):
            yield function


def _is_import(node: ast.AST) -> bool:
    func = node.func if isinstance(node, ast.Call) else None
    return (func.attr if isinstance(func, ast.Attribute) else getattr(func, "id", "")) in _IMPORTS


def _words(value: Value, resolver: Resolver, depth: int) -> Iterator[str]:
    """The words by which an expression takes a part of a configuration, the innermost part first: `model` of `cfg["model"]`."""
    node = value.node
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.args:
        node = ast.Subscript(value=node.func.value, slice=node.args[0], ctx=ast.Load())  # `config.get("target")`
    if isinstance(node, ast.Subscript):
        word = node.slice.value if isinstance(node.slice, ast.Constant) else None
        inner: ast.expr | None = node.value
    elif isinstance(node, ast.Attribute):
        word, inner = node.attr, node.value
    elif isinstance(node, ast.Name) and depth < _DEPTH:
        given = value.arguments.get(node.id)
        behind = [given] if given is not None else [one for one in resolver.behind(value) if one.node is not node]
        for one in behind[:_MOST]:
            yield from _words(one, resolver, depth + 1)
        word, inner = node.id if given is None else None, None
    else:
        word, inner = getattr(node, "id", None), None
    if isinstance(word, str) and word not in _TARGETS:
        yield word
    if inner is not None and depth < _DEPTH:
        yield from _words(Value(inner, value.file, value.arguments), resolver, depth + 1)


def _targets(program: Program) -> Iterator[Target]:
    """The entries of configuration files that are the dotted name of one of the program's classes."""
    for document in program.documents():
        for one in document.settings if any(word in document.file.text for word in _TARGETS) else ():
            if isinstance(one.value, str) and _DOTTED.fullmatch(one.value):
                found = program.find_class(one.value)
                if found is not None and _is_there(one.value, found[0], program):
                    yield tuple(str(part) for part in one.path), *found


def _is_there(name: str, file: SourceFile, program: Program) -> bool:
    """Whether the module of a dotted name is the class's own, or a package that hands it on."""
    module = name.rpartition(".")[0]
    own = program.names(file).module or ""
    return own == module or own.endswith(f".{module}") or own.startswith(f"{module}.")
