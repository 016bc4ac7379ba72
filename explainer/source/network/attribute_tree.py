"""The names that the modules of a program have in one another, by the attributes of its classes: `net.head` and the like."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from explainer.source.file import SourceFile
from explainer.source.program import Program
from explainer.source.value.binding import Value, bounds_of
from explainer.source.value.resolve import resolver_of

_DEPTH = 4
_LAYERS = ("torch.nn.", "torchvision.", "transformers.", "timm.")


def names_of(model: ast.expr, file: SourceFile, program: Program) -> list[str]:
    """The names of the parts of a module, deeper ones included; none where its class is not one class of the program."""
    classes = {id(one[1]): one for one in resolver_of(program).classes_of(Value(model, file))}
    if len(classes) != 1:
        return []
    ((where, owner),) = classes.values()
    return [f"{name}.weight" for name in _names(owner, where, program, 0)]


def _names(owner: ast.ClassDef, file: SourceFile, program: Program, depth: int) -> Iterator[str]:
    made = next((one for one in owner.body if isinstance(one, ast.FunctionDef) and one.name == "__init__"), None)
    for bound in bounds_of(made) if made is not None and depth < _DEPTH else ():
        if bound.fills or not bound.name.startswith("self."):
            continue
        name = bound.name.removeprefix("self.")
        inner = resolver_of(program).classes_of(Value(bound.node, file))
        called = program.names(file).qualified(bound.node.func) if isinstance(bound.node, ast.Call) else None
        if inner or (called or "").startswith(_LAYERS):
            yield name
        for where, one in inner[:1]:
            yield from (f"{name}.{each}" for each in _names(one, where, program, depth + 1))
