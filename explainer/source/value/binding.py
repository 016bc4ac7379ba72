"""What a name is bound to at a place: the assignments that reach it, loops, arguments of the calls that are seen."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache

from explainer.source.file import SourceFile
from explainer.source.name import Function, dotted_name
from explainer.source.program import Program
from explainer.source.tree import children, end_of, start_of, walk

Scope = Function | ast.Lambda | ast.Module
_FILLS = frozenset({"append", "extend", "insert", "add", "update", "setdefault", "add_", "add_module", "appendleft"})
_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.Module)


@dataclass(frozen=True, eq=False)
class Value:
    """An expression in its file, with what the parameters of the function around it stand for.

    `pick` is the element that is taken of it where it is unpacked (`a, b = f()`) or looked up (`out["loss"]`); `is_element`
    says that a loop hands out its elements. `statement` is what binds it, `key` the entry that it fills.
    """

    node: ast.expr
    file: SourceFile
    arguments: Mapping[str, Value] = field(default_factory=dict)
    pick: int | str | None = None
    is_element: bool = False
    statement: ast.AST | None = None
    key: str | None = None


@dataclass(frozen=True)
class Bound:
    """One binding of a name in a scope; `fills` where it adds to what the name holds."""

    name: str
    node: ast.expr
    statement: ast.AST
    pick: int | None = None
    is_element: bool = False
    fills: bool = False
    key: str | None = None


def scope_of(node: ast.AST, file: SourceFile) -> Scope:
    """The function, lambda or module around a node."""
    found = file.enclosing(node, *_SCOPES)
    assert isinstance(found, _SCOPES)
    return found


def walk_scope(scope: ast.AST) -> Iterator[ast.AST]:
    """The nodes of a scope in the order of the file, without the bodies of functions and classes in it."""
    todo = list(reversed(_body(scope)))
    while todo:
        node = todo.pop()
        yield node
        if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)):
            todo.extend(reversed(list(children(node))))


def _body(scope: ast.AST) -> list[ast.AST]:
    body = getattr(scope, "body", [])
    return list(body) if isinstance(body, list) else [body]


@lru_cache(maxsize=4096)
def bounds_of(scope: ast.AST) -> tuple[Bound, ...]:
    """Every binding of a scope, in the order of the file."""
    return tuple(bound for node in walk_scope(scope) for bound in _bounds(node))


def _bounds(node: ast.AST) -> Iterator[Bound]:
    if isinstance(node, ast.Assign):
        for target in node.targets:
            yield from _unpack(target, node.value, node)
    elif isinstance(node, (ast.AnnAssign, ast.NamedExpr)) and node.value is not None:
        yield from _unpack(node.target, node.value, node)
    elif isinstance(node, ast.AugAssign):
        target = node.target.value if isinstance(node.target, ast.Subscript) else node.target
        if name := dotted_name(target):
            yield Bound(name, node.value, node, fills=True)
    elif isinstance(node, (ast.For, ast.AsyncFor, ast.comprehension)):
        yield from _elements(node.target, node.iter, node)
    elif isinstance(node, (ast.With, ast.AsyncWith)):
        for item in node.items:
            if item.optional_vars is not None:
                yield from _unpack(item.optional_vars, item.context_expr, node)
    elif isinstance(node, ast.Call):
        yield from _filled(node)


def _filled(node: ast.Call) -> Iterator[Bound]:
    func = node.func
    if isinstance(func, ast.Attribute) and func.attr in _FILLS and (name := dotted_name(func.value)):
        for one in (*node.args, *(keyword.value for keyword in node.keywords)):
            yield Bound(name, one, node, fills=True)


def _unpack(target: ast.expr, value: ast.expr, statement: ast.AST) -> Iterator[Bound]:
    if isinstance(target, (ast.Tuple, ast.List)):
        same = isinstance(value, (ast.Tuple, ast.List)) and len(value.elts) == len(target.elts)
        for at, one in enumerate(target.elts):
            if same:
                yield from _unpack(one, value.elts[at], statement)  # type: ignore[attr-defined]
            elif isinstance(one, ast.Subscript):
                yield from _entry(one, value, statement, at)
            elif name := dotted_name(one):
                yield Bound(name, value, statement, pick=at)
    elif isinstance(target, ast.Subscript):
        yield from _entry(target, value, statement, None)
    elif name := dotted_name(target):
        yield Bound(name, value, statement)


def _entry(target: ast.Subscript, value: ast.expr, statement: ast.AST, pick: int | None) -> Iterator[Bound]:
    """`x[key] = value`, also where that is unpacked: `x["h"], x["c"] = cell(...)`."""
    if name := dotted_name(target.value):
        key = target.slice.value if isinstance(target.slice, ast.Constant) else None
        yield Bound(name, value, statement, pick, fills=True, key=key if isinstance(key, str) else None)


def _elements(target: ast.expr, value: ast.expr, statement: ast.AST) -> Iterator[Bound]:
    """The names of a loop; through `zip` and `enumerate` each gets its own argument."""
    called = value.func.id if isinstance(value, ast.Call) and isinstance(value.func, ast.Name) else ""
    if isinstance(target, (ast.Tuple, ast.List)):
        parts = list(value.args) if isinstance(value, ast.Call) else []
        for at, one in enumerate(target.elts):
            if called == "zip" and at < len(parts):
                yield from _elements(one, parts[at], statement)
            elif called == "enumerate" and parts and at == 1:
                yield from _elements(one, parts[0], statement)
            elif called not in ("zip", "enumerate") and (name := dotted_name(one)):
                yield Bound(name, value, statement, pick=at, is_element=True)
    elif name := dotted_name(target):
        yield Bound(name, value, statement, is_element=True)


def reaching(name: str, node: ast.AST, file: SourceFile) -> list[Bound]:
    """The bindings of `name` in the scope of `node` that can reach it, the latest first."""
    scope = scope_of(node, file)
    found = [one for one in bounds_of(scope) if one.name == name]
    here = start_of(node)
    before = [one for one in found if end_of(one.statement) <= here or _holds(one.statement, node, file)]
    reached: list[Bound] = []
    for one in reversed(before):
        reached.append(one)
        if not one.fills and dominates(one.statement, node, file):
            return reached
    loop = file.enclosing(node, ast.For, ast.While, ast.AsyncFor)
    if loop is not None and scope_of(loop, file) is scope:
        inside = set(walk(loop))
        reached += [one for one in found if one not in before and one.statement in inside]
    return reached


def calls_behind(value: ast.expr, file: SourceFile) -> Iterator[ast.Call]:
    """The calls that an expression is made by, seen through the names of its function, nearest first."""
    todo: list[ast.AST] = [value]
    seen: set[str] = set()
    while todo:
        for node in walk(todo.pop(0)):
            if isinstance(node, ast.Call):
                yield node
            elif isinstance(node, ast.Name) and node.id not in seen:
                seen.add(node.id)
                todo += [one.node for one in reaching(node.id, node, file)]


def _holds(statement: ast.AST, node: ast.AST, file: SourceFile) -> bool:
    """Whether the node stands in the body of the loop or `with`, or in the comprehension, that binds a name."""
    if isinstance(statement, ast.comprehension):
        above = file.parents.get(statement)
        return above is not None and above in file.around(node)
    is_block = isinstance(statement, (ast.For, ast.AsyncFor, ast.With, ast.AsyncWith))
    return is_block and statement in file.around(node)


def dominates(statement: ast.AST, node: ast.AST, file: SourceFile) -> bool:
    """Whether a binding is always executed before the node: its block lies around the node."""
    if _holds(statement, node, file):
        return True
    holder = file.parents.get(statement if isinstance(statement, ast.stmt) else file.statement(statement))
    return isinstance(holder, _SCOPES) or any(one is holder for one in file.around(node))


def parameters_of(function: Function | ast.Lambda) -> list[str]:
    """The names of a function's positional parameters, `self` left out."""
    names = [one.arg for one in (*function.args.posonlyargs, *function.args.args)]
    return names[1:] if names[:1] in (["self"], ["cls"]) else names


def all_parameters(function: Function | ast.Lambda) -> set[str]:
    """Every parameter of a function, starred ones too."""
    arguments = function.args
    found = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
    found += [one for one in (arguments.vararg, arguments.kwarg) if one is not None]
    return {one.arg for one in found}


def default_of(function: Function | ast.Lambda, name: str) -> ast.expr | None:
    """The default of a parameter."""
    positional = [*function.args.posonlyargs, *function.args.args]
    shift = len(positional) - len(function.args.defaults)
    for at, one in enumerate(positional):
        if one.arg == name and at >= shift:
            return function.args.defaults[at - shift]
    for one, value in zip(function.args.kwonlyargs, function.args.kw_defaults, strict=True):
        if one.arg == name:
            return value
    return None


def bind_call(call: ast.Call, function: Function | ast.Lambda, value: Value, skip: int = 0) -> dict[str, Value]:
    """What the parameters of `function` stand for in a call that stands in `value`'s surroundings."""
    given = list(call.args[skip:])
    names = parameters_of(function)
    bound: dict[str, Value] = {}
    for name, one in zip(names, given, strict=False):
        if isinstance(one, ast.Starred):
            break
        bound[name] = Value(one, value.file, value.arguments)
    rest = given[len(names) :]
    if function.args.vararg is not None and rest:
        bound[function.args.vararg.arg] = Value(ast.Tuple(elts=rest, ctx=ast.Load()), value.file, value.arguments)
    known = all_parameters(function)
    for keyword in call.keywords:
        if keyword.arg in known and keyword.arg is not None:
            bound[keyword.arg] = Value(keyword.value, value.file, value.arguments)
    return bound


def find_calls(program: Program) -> Iterator[tuple[SourceFile, ast.Call]]:
    """Every call of the program."""
    for file in program.parsed():
        for node in file.walk():
            if isinstance(node, ast.Call):
                yield file, node
