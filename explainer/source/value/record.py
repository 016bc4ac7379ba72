"""Records as a program makes them: a dataclass, a `NamedTuple` class, what `namedtuple("State", "h c")` gives."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import dataclass, field

from explainer.source.name import dotted_name
from explainer.source.value.binding import Value
from explainer.source.value.fields import fields_of, is_named_tuple
from explainer.source.value.resolve import Resolver


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """The class of a record: "named" for tuples with names, "record" for a dataclass; no fields where they are not known.

    `defaults` and `annotations` are those that the class gives its fields.
    """

    kind: str
    fields: tuple[str, ...] = ()
    defaults: Mapping[str, Value] = field(default_factory=dict)
    annotations: Mapping[str, ast.expr] = field(default_factory=dict)


def record_of(made_by: Value, resolver: Resolver) -> Record | None:
    """The record that an expression is the class of; None where it is another class, or none."""
    found = resolver.find_class(made_by.node, made_by.file)
    if found is None:
        return _made_by_function(made_by, resolver)
    file, owner = found
    names = resolver.program.names(file)
    fields = fields_of(owner, names)
    if not fields:
        return Record(kind="named") if is_named_tuple(owner) else None
    listed = [one for one in owner.body if isinstance(one, ast.AnnAssign) and isinstance(one.target, ast.Name)]
    defaults = {one.target.id: _default(one.value) for one in listed if isinstance(one.target, ast.Name)}
    return Record(
        kind="named" if is_named_tuple(owner) else "record",
        fields=fields,
        defaults={name: Value(one, file) for name, one in defaults.items() if one is not None},
        annotations={one.target.id: one.annotation for one in listed if isinstance(one.target, ast.Name)},
    )


def _default(value: ast.expr | None) -> ast.expr | None:
    """What a field is where none is given: the default, or what its factory gives: `field(default_factory=lambda: zeros)`."""
    if not isinstance(value, ast.Call) or (dotted_name(value.func) or "").rpartition(".")[2] not in ("field", "ib"):
        return value
    given = {one.arg: one.value for one in value.keywords}
    factory = given.get("default_factory", given.get("factory"))
    if isinstance(factory, ast.Lambda):
        return factory.body
    return given.get("default") if factory is None else None


def _made_by_function(made_by: Value, resolver: Resolver) -> Record | None:
    """`State = namedtuple("State", "h c")`, `State = NamedTuple("State", [("h", Tensor), ("c", Tensor)])`."""
    for one in resolver.behind(made_by):
        call = one.node
        if not isinstance(call, ast.Call):
            continue
        last = (dotted_name(call.func) or "").rpartition(".")[2]
        if last in ("namedtuple", "NamedTuple"):
            return Record(kind="named", fields=_listed(call.args[1]) if len(call.args) == 2 else ())
    return None


def _listed(node: ast.expr) -> tuple[str, ...]:
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return tuple(node.value.replace(",", " ").split())
    parts = node.elts if isinstance(node, (ast.List, ast.Tuple)) else []
    names = [one.elts[0] if isinstance(one, ast.Tuple) and one.elts else one for one in parts]
    words = [one.value for one in names if isinstance(one, ast.Constant) and isinstance(one.value, str)]
    return tuple(words) if len(words) == len(parts) else ()
