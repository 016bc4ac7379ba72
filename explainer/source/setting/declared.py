"""Where a setting of a name gets its value: a class field, a dictionary's entry, a command line option, an assignment."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from explainer.source.file import SourceFile
from explainer.source.program import Program
from explainer.source.value.binding import Value

_FIELDS = ("dataclasses.field", "pydantic.Field")


def declared_values(name: str, program: Program) -> Iterator[Value]:
    """The values that a program writes for a setting: `name: list = field(default_factory=lambda: [...])`, `{"name": [...]}`."""
    for file in program.parsed():
        for node in file.walk():
            for value in _values(node, name, file):
                yield Value(_default(value, file, program), file)


def _values(node: ast.AST, name: str, file: SourceFile) -> Iterator[ast.expr]:
    if isinstance(node, ast.AnnAssign) and node.value is not None and _is_target(node.target, name):
        if isinstance(file.parents.get(node), ast.ClassDef) or not isinstance(node.target, ast.Name):
            yield node.value
    elif isinstance(node, ast.Assign):
        for target in node.targets:
            is_field = isinstance(file.parents.get(node), ast.ClassDef) or not isinstance(target, ast.Name)
            if is_field and _is_target(target, name):
                yield node.value
    elif isinstance(node, ast.Dict):
        for key, value in zip(node.keys, node.values, strict=True):
            if isinstance(key, ast.Constant) and key.value == name:
                yield value
    elif isinstance(node, ast.Call):
        yield from _option(node, name)
        if isinstance(node.func, ast.Name) and node.func.id == "dict":
            yield from (one.value for one in node.keywords if one.arg == name)


def _is_target(target: ast.expr, name: str) -> bool:
    if isinstance(target, ast.Subscript):
        return isinstance(target.slice, ast.Constant) and target.slice.value == name
    return (isinstance(target, ast.Name) and target.id == name) or (
        isinstance(target, ast.Attribute) and target.attr == name
    )


def _option(node: ast.Call, name: str) -> Iterator[ast.expr]:
    """The default of `add_argument("--name", default=...)`."""
    if not isinstance(node.func, ast.Attribute) or node.func.attr != "add_argument":
        return
    given = [one.value for one in node.args if isinstance(one, ast.Constant) and isinstance(one.value, str)]
    if any(one.lstrip("-").replace("-", "_") == name for one in given):
        yield from (one.value for one in node.keywords if one.arg == "default")


def _default(value: ast.expr, file: SourceFile, program: Program) -> ast.expr:
    """The literal inside `field(default_factory=lambda: [...])`, or `field(default=(...))`."""
    if isinstance(value, ast.Call) and program.names(file).is_call(value, *_FIELDS):
        for one in value.keywords:
            if one.arg == "default_factory" and isinstance(one.value, ast.Lambda):
                return one.value.body
            if one.arg == "default":
                return one.value
    return value


def is_literal_list(node: ast.expr) -> bool:
    """Whether an expression lists its elements: a list, tuple or set."""
    return isinstance(node, (ast.List, ast.Tuple, ast.Set))
