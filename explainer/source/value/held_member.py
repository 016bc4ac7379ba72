"""The classes and functions that records hold: `spec.build_optimizer(model)` of `Spec(build_optimizer=build_adam)`.

A record comes out of a registry as often as not, and what it is nobody can follow: its fields are known by their names, where no
class of the program has an attribute or a method of the same name.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator

from explainer.source.file import SourceFile
from explainer.source.program import Program
from explainer.source.value.binding import Value, bounds_of, find_calls
from explainer.source.value.fields import fields_of, given_field


def held_members(program: Program) -> Iterator[tuple[str, SourceFile, ast.expr]]:
    """The fields that records alone have, with what the calls that make them give, and the defaults."""
    records = {
        (file, owner.name): (owner, fields)
        for file in program.parsed()
        for owner in program.names(file).classes.values()
        if (fields := fields_of(owner, program.names(file)))
    }
    counts = Counter(field for _, fields in records.values() for field in fields)
    alone = {name for name, count in counts.items() if count == 1} - _attributes(program)
    by_name = {name: (file, *made) for (file, name), made in records.items()}
    if not alone:
        return
    for file, owner, _ in by_name.values():
        for one in owner.body:
            name = one.target.id if isinstance(one, ast.AnnAssign) and isinstance(one.target, ast.Name) else ""
            if name in alone and isinstance(one, ast.AnnAssign) and one.value is not None:
                yield name, file, one.value
    for file, call in find_calls(program):
        name = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
        for field in by_name[name][2] if name in by_name else ():
            given = given_field(field, by_name[name][2], Value(call, file))
            if given is not None and field in alone:
                yield field, file, given.node


def _attributes(program: Program) -> set[str]:
    """What the classes of a program call their attributes and methods."""
    found: set[str] = set()
    for file in program.parsed():
        for owner in program.names(file).classes.values():
            for method in owner.body:
                if isinstance(method, (ast.FunctionDef, ast.AsyncFunctionDef)):
                    found.add(method.name)
                    found |= {one.name[5:] for one in bounds_of(method) if one.name.startswith("self.")}
    return found
