"""Tables of classes that fill themselves: `__init_subclass__` puts each class that derives from a base under a key of its own.

`class Deep(Expert, kind="deep")` with `Expert.kinds[kind] = cls` stands under "deep" of `Expert.kinds`; a key `cls.__name__` is the
class's name, `cls.kind` what it binds in its body.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import NamedTuple

from explainer.source.file import SourceFile
from explainer.source.name import dotted_name
from explainer.source.program import Program
from explainer.source.tree import walk


class Filed(NamedTuple):
    """A class under a key of a table, which is named as the base's method writes it; the key is None where it is not known."""

    table: ast.expr
    base: ast.ClassDef
    base_file: SourceFile
    key: str | None
    file: SourceFile
    member: ast.ClassDef


def filed_by_subclass(program: Program) -> Iterator[Filed]:
    """Each class of a program that a base's `__init_subclass__` files."""
    for file in program.parsed():
        for base in program.names(file).classes.values():
            made = next((one for one in base.body if getattr(one, "name", "") == "__init_subclass__"), None)
            stored = _stored(made) if isinstance(made, ast.FunctionDef) else None
            for where, one in derived(base, file, program) if stored is not None else ():
                assert stored is not None
                yield Filed(stored.value, base, file, _key(stored.slice, one), where, one)


def derived(base: ast.ClassDef, file: SourceFile, program: Program) -> Iterator[tuple[SourceFile, ast.ClassDef]]:
    """The classes of a program that derive from one, also through others."""
    found, todo = {base}, [(file, base)]
    while todo:
        _, above = todo.pop()
        for where in program.parsed():
            for one in program.names(where).classes.values():
                if one not in found and any(_class_of(each, where, program) is above for each in one.bases):
                    found.add(one)
                    todo.append((where, one))
                    yield where, one


def _class_of(node: ast.expr, file: SourceFile, program: Program) -> ast.ClassDef | None:
    name = program.names(file).qualified(node)
    if name is None:
        return None
    own = program.names(file).classes.get(name)
    elsewhere = program.find_class(name) if own is None else None
    return own if own is not None else elsewhere[1] if elsewhere is not None else None


def _stored(method: ast.FunctionDef) -> ast.Subscript | None:
    """`TABLE[key]` of `TABLE[key] = cls`."""
    own = method.args.args[0].arg if method.args.args else "cls"
    for one in walk(method):
        if isinstance(one, ast.Assign) and isinstance(one.value, ast.Name) and one.value.id == own:
            for target in one.targets:
                if isinstance(target, ast.Subscript):
                    return target
    return None


def _key(node: ast.expr, owner: ast.ClassDef) -> str | None:
    """The key of a class: of its keyword, its own name or what it binds in its body."""
    name = dotted_name(node) or ""
    if name == "cls.__name__":
        return owner.name
    if name.startswith("cls."):
        bound = [
            one.value
            for one in owner.body
            if isinstance(one, ast.Assign) and any(dotted_name(each) == name[4:] for each in one.targets)
        ]
    else:
        bound = [one.value for one in owner.keywords if one.arg == name]
    value = bound[0] if bound else None
    return value.value if isinstance(value, ast.Constant) and isinstance(value.value, str) else None
