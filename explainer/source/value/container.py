"""Which list, or dictionary of lists, an expression stands for: the expression that made it, followed through names and calls.

`feats` of `make_hook(feats, name)`, `outs` of `for outs in self.outputs.values()` and `penalty.outputs` may all be the one
that `{name: [] for name in layers}` made.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, replace

from explainer.source.file import SourceFile
from explainer.source.program import Program
from explainer.source.value.binding import Value, all_parameters, bounds_of, reaching, scope_of
from explainer.source.value.resolve import Resolver, resolver_of

LIST, LISTS, TABLE, SUM = "list", "lists", "table", "sum"
"""A list; a dictionary or list of lists that are there from the start; a dictionary that gets its lists one by one; a number
that is added to, which `held_by` does not look for."""
_PARTS = frozenset({"setdefault", "get", "values", "items", "__getitem__"})
_SAME = frozenset({"list", "tuple", "iter", "reversed", "sorted"})
_DICTS = frozenset({"dict", "OrderedDict", "collections.OrderedDict"})
_DEPTH = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Container:
    """An expression that makes an empty list or a dictionary of such, and the statement that binds it."""

    file: SourceFile
    made: ast.expr
    form: str

    @property
    def statement(self) -> ast.stmt:
        """The statement that makes it."""
        return self.file.statement(self.made)

    @property
    def is_nested(self) -> bool:
        """Whether lists are in it, rather than values."""
        return self.form in (LISTS, TABLE)

    @property
    def is_dictionary(self) -> bool:
        """Whether a loop over it hands out keys."""
        return self.is_nested and not isinstance(self.made, ast.ListComp)


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """A container that an expression may be, or whose list it may be: `depth` 0 the container itself, 1 what is in it."""

    container: Container
    depth: int = 0

    @property
    def is_list(self) -> bool:
        """Whether this is a list of values rather than a dictionary or list of such lists."""
        return self.depth == (0 if self.container.form == LIST else 1)


def held_by(node: ast.expr, file: SourceFile, program: Program) -> tuple[Held, ...]:
    """Every container that the value of an expression may be, or be in, each once."""
    found = _held(Value(node, file), resolver_of(program), 0)
    return tuple({(one.container.made, one.depth): one for one in found}.values())


def _held(value: Value, resolver: Resolver, depth: int) -> Iterator[Held]:
    form = _form(value, resolver)
    if form is not None:
        yield Held(container=Container(file=value.file, made=value.node, form=form))
    elif depth <= _DEPTH:
        yield from _followed(value, resolver, depth)


def _followed(value: Value, resolver: Resolver, depth: int) -> Iterator[Held]:
    node = value.node
    if isinstance(node, ast.Subscript):
        yield from _inside(_held(replace(value, node=node.value), resolver, depth + 1))
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _PARTS:
        parts = _held(replace(value, node=node.func.value), resolver, depth + 1)
        yield from parts if node.func.attr in ("values", "items") else _inside(parts)
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in _SAME and node.args:
        yield from _held(replace(value, node=node.args[0]), resolver, depth + 1)
    elif isinstance(node, ast.Call):
        yield from _returned(node, value, resolver, depth)
    elif isinstance(node, (ast.Name, ast.Attribute)):
        for one in _behind(node, value, resolver):
            found = _held(replace(one, is_element=False, pick=None), resolver, depth + 1)
            if one.is_element:
                yield from _inside(held for held in found if not _is_key(one, held))
            elif one.pick is None:
                yield from found


def _behind(node: ast.Name | ast.Attribute, value: Value, resolver: Resolver) -> Iterator[Value]:
    """What a name stands for, also where its function only fills it."""
    yield from (one for one in resolver.behind(value) if not _is_filling(one))
    if isinstance(node, ast.Attribute):
        yield from _of_module(node, value, resolver)
        return
    scope = scope_of(node, value.file)
    bound = [one for one in bounds_of(scope) if one.name == node.id]
    is_own = not isinstance(scope, ast.Module) and node.id in all_parameters(scope)
    if bound and not is_own and all(one.fills for one in bound):
        yield from resolver.outside(value)


def _of_module(node: ast.Attribute, value: Value, resolver: Resolver) -> Iterator[Value]:
    """`m.balance` of `for m in self.modules()`: what the classes of the program give an attribute of that name."""
    bound = reaching(node.value.id, node, value.file) if isinstance(node.value, ast.Name) else []
    called = [one.node.func for one in bound if one.is_element and isinstance(one.node, ast.Call)]
    if not any(isinstance(one, ast.Attribute) and one.attr == "modules" for one in called):
        return
    for file, function in resolver.program.functions_named("__init__"):
        yield from (Value(one.node, file) for one in bounds_of(function) if one.name == f"self.{node.attr}")


def _is_filling(value: Value) -> bool:
    """Whether a binding adds to what a name holds: `x[key] = []`, `x.setdefault(key, [])`."""
    statement = value.statement
    if isinstance(statement, ast.Assign):
        return all(isinstance(one, ast.Subscript) for one in statement.targets)
    return isinstance(statement, (ast.Call, ast.AugAssign))


def _is_key(value: Value, held: Held) -> bool:
    """Whether a loop hands out the keys of a dictionary: `for name in self.outputs`, `name` of `for name, outs in x.items()`."""
    node = value.node
    while isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in _SAME and node.args:
        node = node.args[0]
    method = node.func.attr if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) else ""
    if method in ("items", "values"):
        return method == "items" and value.pick == 0
    return held.container.is_dictionary and held.depth == 0


def _returned(node: ast.Call, value: Value, resolver: Resolver, depth: int) -> Iterator[Held]:
    """What a function or method of the program gives back: `collector.read()`."""
    target = resolver.function_of(node, value)
    for one in resolver.returns_of(target, node, value) if target is not None else ():
        yield from _held(one, resolver, depth + 1)


def _inside(found: Iterator[Held]) -> Iterator[Held]:
    """The lists of containers; what is in a list is none any more."""
    return (replace(one, depth=one.depth + 1) for one in found if not one.is_list)


def _form(value: Value, resolver: Resolver) -> str | None:
    """Of what form a container is that an expression makes; None where it makes none, or one that is not empty."""
    node, names = value.node, resolver.program.names(value.file)
    if isinstance(node, ast.Dict):
        return TABLE if not node.keys else LISTS if all(_is_empty_list(one) for one in node.values) else None
    if isinstance(node, (ast.DictComp, ast.ListComp)):
        made = node.value if isinstance(node, ast.DictComp) else node.elt
        return LISTS if _is_empty_list(made) else None
    if _is_empty_list(node):
        return LIST
    if not isinstance(node, ast.Call):
        return None
    called = names.qualified(node.func) or ""
    if called in ("defaultdict", "collections.defaultdict"):
        factory = node.args[0] if len(node.args) == 1 else None
        return TABLE if isinstance(factory, ast.Name) and factory.id == "list" else None
    return TABLE if called in _DICTS and not node.args and not node.keywords else None


def _is_empty_list(node: ast.expr) -> bool:
    if isinstance(node, ast.Call):
        return isinstance(node.func, ast.Name) and node.func.id == "list" and not node.args
    return isinstance(node, ast.List) and not node.elts


def is_list_field(node: ast.Call) -> bool:
    """Whether a field of a record starts as an empty list: `field(default_factory=list)`."""
    made = next((one.value for one in node.keywords if one.arg in ("default_factory", "factory")), None)
    return isinstance(made, ast.Name) and made.id == "list"
