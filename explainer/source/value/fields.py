"""The fields of a record: of a dataclass or a named tuple, whose `__init__` the source does not show."""

from __future__ import annotations

import ast

from explainer.source.name import Names, dotted_name
from explainer.source.value.binding import Value

_DATACLASSES = ("dataclasses.dataclass", "attrs.define", "attrs.frozen", "attr.s", "attr.dataclass")


def fields_of(owner: ast.ClassDef, names: Names) -> tuple[str, ...]:
    """The names of a record's fields in the order of its arguments.

    None for a class of another kind, one that makes or changes its fields by itself, and where bases or options give the
    arguments another order.
    """
    if not _is_record(owner, names):
        return ()
    makers = ("__init__", "__new__", "__post_init__")
    if any(isinstance(one, ast.FunctionDef) and one.name in makers for one in owner.body):
        return ()
    listed = [one for one in owner.body if isinstance(one, ast.AnnAssign) and not _is_class_variable(one.annotation)]
    if any(_has_options(one) for one in listed):
        return ()
    return tuple(one.target.id for one in listed if isinstance(one.target, ast.Name))


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


def is_named_tuple(owner: ast.ClassDef) -> bool:
    """Whether a class is a tuple with names: `class State(NamedTuple)`."""
    return any((dotted_name(base) or "").endswith("NamedTuple") for base in owner.bases)


def _is_record(owner: ast.ClassDef, names: Names) -> bool:
    if is_named_tuple(owner) or any(dotted_name(one) != "object" for one in owner.bases):
        return is_named_tuple(owner) and len(owner.bases) == 1
    marks = [one.func if isinstance(one, ast.Call) else one for one in owner.decorator_list]
    return any((names.qualified(one) or "") in _DATACLASSES for one in marks)


def _has_options(field: ast.AnnAssign) -> bool:
    """Whether a field may be no argument, or none by its place: `field(init=False)`, what follows `_: KW_ONLY`."""
    options = {one.arg for one in field.value.keywords} if isinstance(field.value, ast.Call) else set()
    return bool(options & {"init", "kw_only", "alias"}) or "KW_ONLY" in ast.unparse(field.annotation)


def _is_class_variable(annotation: ast.expr) -> bool:
    """Whether an annotation says that a name is no field: `ClassVar[int]`."""
    return "ClassVar" in ast.unparse(annotation)
