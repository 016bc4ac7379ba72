"""The fields of a record: of a dataclass or a named tuple, whose `__init__` the source does not show."""

from __future__ import annotations

import ast

from explainer.source.binding import Value
from explainer.source.name import Names

_DATACLASSES = ("dataclasses.dataclass", "attrs.define", "attrs.frozen", "attr.s", "attr.dataclass")


def fields_of(owner: ast.ClassDef, names: Names) -> tuple[str, ...]:
    """The names of a record's fields in the order of its arguments; none for a class of another kind, or with its own `__init__`."""
    if not _is_record(owner, names):
        return ()
    if any(isinstance(one, ast.FunctionDef) and one.name in ("__init__", "__new__") for one in owner.body):
        return ()
    return tuple(
        one.target.id
        for one in owner.body
        if isinstance(one, ast.AnnAssign) and isinstance(one.target, ast.Name) and not _is_of_class(one.annotation)
    )


def given_field(field: str, fields: tuple[str, ...], made: Value) -> Value | None:
    """What the call that makes a record gives one of its fields; None where it leaves the default."""
    call = made.node
    if not isinstance(call, ast.Call):
        return None
    given = {one.arg: one.value for one in call.keywords if one.arg is not None}
    given |= dict(zip(fields, call.args, strict=False))
    if any(isinstance(one, ast.Starred) for one in call.args) or field not in given:
        return None
    return Value(given[field], made.file, made.arguments)


def _is_record(owner: ast.ClassDef, names: Names) -> bool:
    marks = [one.func if isinstance(one, ast.Call) else one for one in owner.decorator_list]
    if any((names.qualified(one) or "") in _DATACLASSES for one in marks):
        return True
    return any((names.qualified(one) or "") == "typing.NamedTuple" for one in owner.bases)


def _is_of_class(annotation: ast.expr) -> bool:
    """Whether an annotation says that a name is no field: `ClassVar[int]`."""
    return "ClassVar" in ast.unparse(annotation)
