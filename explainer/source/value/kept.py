"""Values that a program keeps under a name and reads again elsewhere, through whatever buffer, batch or record lies between."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from explainer.source.file import SourceFile
from explainer.source.name import dotted_name
from explainer.source.program import Program
from explainer.source.value.fields import fields_of
from explainer.source.value.resolve import resolver_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """An expression that is kept under a name; `is_appended` where a list of that name grows by it."""

    file: SourceFile
    name: str
    value: ast.expr
    is_appended: bool


def name_read(node: ast.expr) -> str | None:
    """What a value is called where it is read: `logp` of `batch["logp"]`, `rollout.logp`, `batch["logp"][rows]` and `logp`."""
    if isinstance(node, ast.Subscript):
        if isinstance(node.slice, ast.Constant) and isinstance(node.slice.value, str):
            return node.slice.value
        return name_read(node.value)
    return (dotted_name(node) or "").rpartition(".")[2] or None


def find_kept(names: set[str], program: Program) -> Iterator[Kept]:
    """What is appended to a list, given by keyword, put into a dictionary, an attribute or an entry of one of some names."""
    for file in program.parsed() if names else ():
        for node in file.walk():
            is_grown = is_append(node)
            for name, value in (*_kept(node), *_fields(node, file, program)):
                if name in names and name is not None:
                    yield Kept(file=file, name=name, value=value, is_appended=is_grown)


def is_append(node: ast.AST) -> bool:
    """Whether a list grows by one value: `rows.append(row)`."""
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "append"


def _kept(node: ast.AST) -> Iterator[tuple[str | None, ast.expr]]:
    if isinstance(node, ast.Call):
        if isinstance(node.func, ast.Attribute) and is_append(node) and len(node.args) == 1:
            yield name_read(node.func.value), node.args[0]
        yield from ((one.arg, one.value) for one in node.keywords)
    elif isinstance(node, ast.Dict):
        for key, value in zip(node.keys, node.values, strict=True):
            if isinstance(key, ast.Constant) and isinstance(key.value, str):
                yield key.value, value
    elif isinstance(node, ast.Assign) and isinstance(node.targets[0], (ast.Attribute, ast.Subscript)):
        yield name_read(node.targets[0]), node.value


def _fields(node: ast.AST, file: SourceFile, program: Program) -> Iterator[tuple[str, ast.expr]]:
    """What a record of the program is given by place: `Rollout(observations, logp)`."""
    if not isinstance(node, ast.Call) or not node.args or any(isinstance(one, ast.Starred) for one in node.args):
        return
    found = resolver_of(program).find_class(node.func, file)
    if found is not None:
        yield from zip(fields_of(found[1], program.names(found[0])), node.args, strict=False)
