"""Where a model takes the modules of another one that is frozen, rather than copies of them.

Only for two names that a run has seen to share their parameters: the source alone does not tell a copy that a constructor makes.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from explainer.source.file import SourceFile
from explainer.source.name import dotted_name
from explainer.source.network.freeze import Freeze, find_freezes, switches_in
from explainer.source.program import Program
from explainer.source.tree import end_of, start_of, walk
from explainer.source.value.binding import Bound, Value, all_parameters, bind_call, bounds_of, scope_of, walk_scope
from explainer.source.value.lineage import Scope, root_of
from explainer.source.value.resolve import resolver_of

_DEPTH = 4
_MAX_TAKEN = 8
_NO_MODULE = frozenset({"config", "cfg", "device", "dtype", "training", "state_dict"})
_COPIES = frozenset({"deepcopy", "load_state_dict", "from_pretrained", "clone"})
_ITSELF = frozenset({"eval", "train", "to", "cuda", "cpu", "requires_grad_"})
_ADDS = frozenset({"append", "add_module", "register_module", "insert", "extend"})


@dataclass(frozen=True, slots=True)
class Taken:
    """The expressions that give one model the modules of another, and the statement that freezes this one.

    `is_frozen_before` where the modules are frozen already when they are taken, so that a copy of them is frozen too.
    """

    file: SourceFile
    values: tuple[ast.expr, ...]
    freeze: tuple[SourceFile, ast.AST]
    is_frozen_before: bool


@dataclass(frozen=True, slots=True)
class _Pair:
    """What is to learn, what is frozen, by the last part of their names, and where the program is."""

    learns: str
    frozen: str
    program: Program


@dataclass(frozen=True, slots=True)
class _Room:
    """The bindings of one scope, and the pair that is looked for in it."""

    bounds: Sequence[Bound]
    file: SourceFile
    pair: _Pair


def taken_of(learns: str, frozen: str, program: Program) -> Taken | None:
    """The one place where the modules are taken; None where there are several, or what is to learn is frozen by itself."""
    freezes = list(_freezes_of(frozen, program))
    if not freezes or any(True for _ in _freezes_of(learns, program)):
        return None
    pair = _Pair(learns, frozen, program)
    found = {tuple(map(id, one.values)): one for one in _everywhere(pair, freezes) if one.values}
    return next(iter(found.values())) if len(found) == 1 else None if found else _handed_out_again(pair, freezes)


def _handed_out_again(pair: _Pair, freezes: Sequence[tuple[SourceFile, ast.AST]]) -> Taken | None:
    """The call that makes what is frozen, in a function of its own, of what made the other one elsewhere: a registry, a cache."""
    both = [
        [(file, _base(one.node)) for file, scope in _scopes(pair.program) for one in _bindings(name, bounds_of(scope))]
        for name in (pair.learns, pair.frozen)
    ]
    calls = [[(file, one) for file, one in each if isinstance(one, ast.Call)] for each in both]
    if any(len(each) != 1 for each in both) or any(len(each) != 1 for each in calls):
        return None
    (((_, first),), ((where, second),)) = calls
    is_alike = ast.unparse(first.func) == ast.unparse(second.func)
    return Taken(where, (second,), freezes[0], is_frozen_before=False) if is_alike else None


def _everywhere(pair: _Pair, freezes: Sequence[tuple[SourceFile, ast.AST]]) -> Iterator[Taken]:
    for file, scope in _scopes(pair.program):
        values = _taken_in(scope, pair, file)
        where, inner = file, values
        is_before = bool(values) and _is_before(values[0], scope, file, pair, freezes)
        if is_before and values[0] not in [one.node for one in _bindings(pair.learns, bounds_of(scope))]:
            continue  # a copy of what is frozen would be switched on, or a part that is no module
        base = _base(values[0]) if len(values) == 1 else None
        if isinstance(base, ast.Call) and not is_before:
            where, inner = _in_helper(base, file, pair, 0)
        if len(inner) == 1 or (len(inner) <= _MAX_TAKEN and not is_before and not _ties(pair.program)):
            yield Taken(where, tuple(map(_base, inner)), freezes[0], is_before)


def _taken_in(scope: Scope, pair: _Pair, file: SourceFile) -> tuple[ast.expr, ...]:
    """What a scope makes one of the two of the other with: a binding of its name, or the parts that it is given."""
    bounds = bounds_of(scope)
    room = _Room(bounds, file, pair)
    made = [one for one in _bindings(pair.learns, bounds) if _is_made_of(one.node, pair.frozen, room)]
    copies = [one for one in _bindings(pair.frozen, bounds) if _is_made_of(one.node, pair.learns, room)]
    parts = tuple(_parts(scope, room))
    if copies:
        return (copies[0].node,) if len(copies) == 1 and not made and not parts else ()
    if len(made) > 1:
        return ()
    return (*(one.node for one in made), *parts) or _made_alike(pair, bounds)


def _bindings(name: str, bounds: Sequence[Bound]) -> list[Bound]:
    """What binds a name or an attribute of that name, without its own moves: `net = net.to(device)`, `self.net = net`."""
    found = [one for one in bounds if _last(one.name) == name and not (one.fills or one.is_element)]
    return [one for one in found if one.pick is None and name not in (_last(dotted_name(one.node)), _last(root_of(one.node)))]  # fmt: skip


def _is_made_of(node: ast.AST, name: str, room: _Room, depth: int = 0) -> bool:
    """Whether an expression reads the modules of that name, also through other names of the scope; not through a copy."""
    if any(isinstance(one, (ast.Name, ast.Attribute)) and _last(dotted_name(one)) in _COPIES for one in walk(node)):
        return False
    read = [one for one in walk(node) if isinstance(one, (ast.Name, ast.Attribute)) and not _is_setting(one, room.file)]
    if any(_last(dotted_name(one)) == name for one in read):
        return True
    names = {one.id for one in read if isinstance(one, ast.Name)}
    through = [one for one in room.bounds if one.name in names - {room.pair.learns, room.pair.frozen}]
    return depth < _DEPTH and any(_is_made_of(one.node, name, room, depth + 1) for one in through)


def _is_setting(node: ast.AST, file: SourceFile) -> bool:
    """Whether only a setting is read of a model: `teacher.config`."""
    above = file.parents.get(node)
    return isinstance(above, ast.Attribute) and above.attr in _NO_MODULE


def _parts(scope: Scope, room: _Room) -> Iterator[ast.expr]:
    """What the one model is given of the other part by part: `student.head = teacher.head`, `student.layers.append(layer)`."""
    for node in walk_scope(scope):
        value: ast.expr | None = None
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], (ast.Attribute, ast.Subscript)):
            value = node.value if _is_part_of(node.targets[0], room.pair.learns) else None
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _ADDS:
            value = node.args[-1] if node.args and _last(dotted_name(node.func.value)) == room.pair.learns else None
            value = node.args[-1] if node.args and _is_part_of(node.func.value, room.pair.learns) else value
        if value is not None and _is_made_of(value, room.pair.frozen, room):
            yield value


def _is_part_of(target: ast.expr, name: str) -> bool:
    """Whether an expression lies within a name: `student.layers`, `self.student.layers[0]`."""
    while isinstance(target, (ast.Attribute, ast.Subscript)):
        target = target.value
        if _last(dotted_name(target)) == name:
            return True
    return False


def _made_alike(pair: _Pair, bounds: Sequence[Bound]) -> tuple[ast.expr, ...]:
    """The later of two calls of one function, which gave the same modules twice: a registry, a cache."""
    both = [_bindings(name, bounds) for name in (pair.learns, pair.frozen)]
    if any(len(one) != 1 for one in both):
        return ()
    calls = [_base(one[0].node) for one in both]
    if not all(isinstance(one, ast.Call) for one in calls):
        return ()
    functions = {ast.unparse(one.func) for one in calls if isinstance(one, ast.Call)}
    return (max(calls, key=start_of),) if len(functions) == 1 else ()


def _in_helper(call: ast.Call, file: SourceFile, pair: _Pair, depth: int) -> tuple[SourceFile, tuple[ast.expr, ...]]:
    """Where the function that a call runs takes the modules, if nothing else calls it; the call itself where that is not plain."""
    itself = (file, (call,))
    resolver = resolver_of(pair.program)
    found = resolver.function_of(call, Value(call, file))
    if found is None or depth >= _DEPTH or len(resolver.calls_of(found[1], found[0])) != 1:
        return itself
    where, function = found
    given = [
        name for name, one in bind_call(call, function, Value(call, file)).items()
        if any(_last(dotted_name(node)) in (pair.frozen, pair.learns) for node in walk(one.node))
    ]  # fmt: skip
    results = [one.value for one in walk_scope(function) if isinstance(one, ast.Return) and one.value is not None]
    if len(given) != 1 or len(results) != 1:
        return itself
    result = results[0]
    name = dotted_name(result)
    inner = _Pair(_last(name) or "", given[0], pair.program)
    if name is not None:
        values = _taken_in(function, inner, where)
        return (where, values) if values else itself
    room = _Room(bounds_of(function), where, inner)
    if not isinstance(result, ast.Call) or not _is_made_of(result, given[0], room):
        return itself
    return _in_helper(result, where, inner, depth + 1)


def _is_before(
    value: ast.expr, scope: Scope, file: SourceFile, pair: _Pair, freezes: Sequence[tuple[SourceFile, ast.AST]]
) -> bool:
    """Whether the modules are frozen when they are taken: above in the scope, or by the function that makes them."""
    if any(where is file and scope_of(one, file) is scope and end_of(one) <= start_of(value) for where, one in freezes):
        return True
    functions = [scope_of(one, where) for where, one in freezes]
    for one in _bindings(pair.frozen, bounds_of(scope)):
        made = one.node if isinstance(one.node, ast.Call) else None
        target = resolver_of(pair.program).function_of(made, Value(made, file)) if made is not None else None
        if target is not None and target[1] in functions:
            return True
    return False


def _freezes_of(name: str, program: Program) -> Iterator[tuple[SourceFile, ast.AST]]:
    """The statements and calls that switch the whole module of that name off: directly, or by a function that it is given to."""
    for file, scope in _scopes(program):
        for statement, module, is_off in switches_in(scope, file, program):
            if is_off and _last(module) == name and not isinstance(statement, ast.Assign):
                yield file, statement
    for freeze in find_freezes(program):
        if not freeze.is_on and freeze.test is None:
            yield from _by_helper(freeze, name, program)
            is_chain = dotted_name(freeze.owner) is None or isinstance(freeze.statement, ast.Assign)
            if is_chain and _last(_name_in_chain(freeze)) == name:
                yield freeze.file, freeze.statement


def _name_in_chain(freeze: Freeze) -> str | None:
    """What `ema = model.eval().requires_grad_(False)` binds, or what `ema.eval().requires_grad_(False)` is about."""
    statement = freeze.statement
    if isinstance(statement, ast.Assign):
        return dotted_name(statement.targets[0])
    return dotted_name(_base(freeze.owner))


def _base(node: ast.expr) -> ast.expr:
    """What methods that return the module itself are called on: `model` of `model.eval().requires_grad_(False)`."""
    while isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _ITSELF:
        node = node.func.value
    return node


def _by_helper(freeze: Freeze, name: str, program: Program) -> Iterator[tuple[SourceFile, ast.AST]]:
    """The calls of the function of a freeze that give it the module: as an argument, or as what the method is of."""
    function = scope_of(freeze.statement, freeze.file)
    if not isinstance(function, (ast.FunctionDef, ast.AsyncFunctionDef)):
        return
    owner = dotted_name(freeze.owner)
    for file, call in resolver_of(program).calls_of(function, freeze.file):
        given = bind_call(call, function, Value(call, file))
        module = given[owner].node if owner in given and owner in all_parameters(function) else None
        if owner == "self" and isinstance(call.func, ast.Attribute):
            module = call.func.value
        if module is not None and _last(dotted_name(module)) == name:
            yield file, call


def _scopes(program: Program) -> Iterator[tuple[SourceFile, Scope]]:
    yield from program.functions()
    yield from ((file, file.tree) for file in program.parsed() if file.tree is not None)


def _ties(program: Program) -> bool:
    """Whether the program ties weights: copies of several parts do not know of one another."""
    return any(
        isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Attribute) and node.targets[0].attr == "weight"
        for file in program.parsed()
        for node in file.walk()
    )


def _last(name: str | None) -> str | None:
    return name.rpartition(".")[2] if name is not None else None
