"""Values out of a pool, which have no graph, in the loss of the network that made what the pool was given.

A pool of earlier images keeps values only, as what outlives a step must, and one network is to learn from what it hands back. The
loss of the other one, which made them, takes what it made in this step: the pool stays as it is.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, count, pairwise

from explainer.fix.codemod import edit_of, insert_before
from explainer.model.patch import Edit
from explainer.source.file import SourceFile
from explainer.source.loop.backward import Backward, calls_of, stepped
from explainer.source.loop.ownership import owned_by
from explainer.source.loop.update import Update, find_turns
from explainer.source.name import Function, dotted_name
from explainer.source.program import Program
from explainer.source.tree import walk
from explainer.source.value.binding import all_parameters, bounds_of, reaching
from explainer.source.value.lineage import Scope, before, changes, lineage, scope_of, sources, statements_of
from explainer.source.value.resolve import resolver_of

_DEPTH = 3  # of calls between the line that cuts and the training loop
_BLOCKS = (ast.For, ast.AsyncFor, ast.While, ast.With, ast.AsyncWith, ast.If, ast.Try, ast.FunctionDef, ast.ClassDef)
_SAME_VALUES = frozenset(("detach", "to", "cuda", "cpu", "contiguous", "clone"))


@dataclass(frozen=True, slots=True)
class Pooled:
    """A loss that is given what a pool hands back: the edits that give it what was made, the place that reads it, the pool's function."""

    edits: tuple[Edit, ...]
    file: SourceFile
    place: ast.expr
    pool: Function


@dataclass(frozen=True, slots=True)
class _Turn:
    """A backward, the statements that its loss is computed by, its own the last, and the networks that are stepped behind it."""

    backward: Backward
    lines: tuple[ast.stmt, ...]
    owned: frozenset[str]


@dataclass(frozen=True, slots=True)
class _Query:
    """A call of a pool in a training step, and what it is given: `given` may end in a `detach`, `fresh` is that without."""

    file: SourceFile
    scope: Scope
    call: ast.Call
    given: ast.expr

    @property
    def fresh(self) -> ast.expr:
        return _uncut(self.given)

    @property
    def statement(self) -> ast.stmt:
        return self.file.statement(self.call)

    @property
    def name(self) -> str | None:
        """The name that what the pool hands back is bound to, as it is."""
        one = self.statement
        is_bound = isinstance(one, ast.Assign) and len(one.targets) == 1 and _uncut(one.value) is self.call
        return dotted_name(one.targets[0]) if isinstance(one, ast.Assign) and is_bound else None


def find_pooled(statement: ast.stmt, file: SourceFile, program: Program) -> Iterator[Pooled]:
    """The losses that train nothing because a statement leaves the graph on the way through a pool."""
    for pool, where, call in _queries(statement, file, program):
        scope = scope_of(call, where, program)
        turns = _turns(scope, where, program) if scope is not None else []
        if scope is None or len(turns) < 2:
            continue
        for given in (*call.args, *(one.value for one in call.keywords)):
            query = _Query(where, scope, call, given)
            own = [one for one in turns if _makes(one, query, program)]
            others = [one for one in turns if one not in own and one.owned and _reads(one, query, pool, program)]
            is_apart = len(own) == 1 and not any(own[0].owned & one.owned for one in others)
            if others and is_apart and _reads(own[0], query, pool, program, is_same=True):
                yield from _pooled(query, pool, own[0], turns)


def _queries(
    statement: ast.stmt, file: SourceFile, program: Program
) -> Iterator[tuple[Function, SourceFile, ast.Call]]:
    """The calls of a pool on whose way in, or in which, a statement stands, with the function that fills the pool."""
    resolver = resolver_of(program)
    fillers = [(where, one) for where, one in program.functions() if _fills(one)]
    inside = set(walk(statement)) if not isinstance(statement, _BLOCKS) else set()
    for where, one in fillers if inside else ():
        for caller, call in resolver.calls_of(one, where):
            if caller is file and call in inside:
                yield one, caller, call
    # Where a decorator switches grad mode off, the traced line is the function's own.
    within = statement if isinstance(statement, ast.FunctionDef) else program.names(file).function_of(statement)
    level: list[tuple[SourceFile, Function]] = [(file, within)] if within is not None else []
    pool: Function | None = None
    for _ in range(_DEPTH):
        above: list[tuple[SourceFile, Function]] = []
        for where, one in level:
            pool = pool or (one if _fills(one) else None)
            for caller, call in resolver.calls_of(one, where):
                around = program.names(caller).function_of(call)
                above += [(caller, around)] if around is not None else []
                if pool is not None:
                    yield pool, caller, call
        level = above


def _fills(function: Function) -> bool:
    """Whether a function puts values into what outlives its call: an attribute, a parameter, a name of the module."""
    own = {one.name for one in bounds_of(function) if not one.fills} - all_parameters(function)
    return any(name not in own for one in statements_of(function) for name in changes(one))


def _turns(scope: Scope, file: SourceFile, program: Program) -> list[_Turn]:
    """The backward calls of a scope with the networks that are stepped between each and the next."""
    found = [
        one for one in find_turns(program) if one.file is file and scope_of(one.call, file, program) is scope
    ]  # fmt: skip
    turns = []
    for one, later in pairwise((*found, None)):
        assert one is not None
        names = {one.optimizer} if isinstance(one, Update) and one.steps and one.optimizer else set()
        for each in statements_of(scope):
            is_behind = before(one.statement, each) and (later is None or before(each, later.statement))
            if is_behind and (name := stepped(each)) is not None:
                names.add(name)
        owned = frozenset[str]().union(*(owned_by(name, one.call, file, program) for name in names))
        # A loop that binds the batch is of the lineage, its body is not.
        made = (each for each in lineage(one.loss, one.statement, file, program) if not isinstance(each, _BLOCKS))
        turns.append(_Turn(one, (*made, one.statement), owned))
    return turns


def _makes(turn: _Turn, query: _Query, program: Program) -> bool:
    """Whether a network that is stepped behind a backward made what the pool is given."""
    parts = [query.fresh, *(value for _, value in sources(query.fresh, query.statement, query.file, program))]
    return any(calls_of(turn.owned, one, query.file, program) for one in parts)


def _reads(turn: _Turn, query: _Query, pool: Function, program: Program, *, is_same: bool = False) -> bool:
    """Whether a loss is computed of what the pool hands back, in the same call of it or in another."""
    if query.statement in turn.lines or is_same:
        return query.statement in turn.lines
    if query.name is not None and any(_is_of(query, one) for one in _loads(query.name, turn.lines, query)):
        return True  # under another `detach`, which is no part of the lineage
    calls = {call for where, call in resolver_of(program).calls_of(pool, query.file) if where is query.file}
    return any(node in calls for one in turn.lines for node in walk(one) if isinstance(node, ast.Call))


def _pooled(query: _Query, pool: Function, own: _Turn, turns: list[_Turn]) -> Iterator[Pooled]:
    shared = {line for one in turns if one is not own for line in one.lines}
    if query.name is None:
        if query.statement in shared:
            return  # what both losses read is bound with something else
        if _is_same_at(query.fresh, query.call, query.file):
            edit = edit_of(query.file, query.call, query.file.segment(query.fresh))
            yield Pooled((edit,), query.file, query.call, pool)
        return
    places = _loads(query.name, own.lines, query)
    if not places or any(query.file.statement(one) in shared for one in places):
        return  # the scores themselves are shared: which of them are to be computed anew is not a matter of names
    if not all(_is_of(query, one) for one in places):
        return
    yield Pooled(tuple(_edits(query, places)), query.file, places[0], pool)


def _loads(name: str, statements: Sequence[ast.stmt], query: _Query) -> list[ast.expr]:
    """Where statements behind the query read a name."""
    return [
        node
        for one in dict.fromkeys(statements)
        if before(query.statement, one)
        for node in walk(one)
        if isinstance(node, (ast.Name, ast.Attribute)) and isinstance(node.ctx, ast.Load) and dotted_name(node) == name
    ]


def _is_of(query: _Query, place: ast.expr) -> bool:
    """Whether a name surely stands for what the query handed back."""
    found = reaching(query.name or "", place, query.file)
    return [one.statement for one in found] == [query.statement]


def _edits(query: _Query, places: list[ast.expr]) -> Iterator[Edit]:
    file, fresh = query.file, query.fresh
    name = dotted_name(fresh)
    if name is not None and name != query.name and all(_is_same_at(fresh, one, file) for one in places):
        yield from (edit_of(file, one, name) for one in places)
        return
    others = _other_reads(query, places)
    if name is not None and name == query.name and others is not None:
        assert isinstance(query.statement, ast.Assign)
        own = _unused("pooled", query)
        yield from (edit_of(file, one, own) for one in (query.statement.targets[0], *others))
        return
    own = _unused("fresh", query)
    yield insert_before(file, query.statement, f"{own} = {file.segment(fresh)}")
    yield from (edit_of(file, one, own) for one in (*([fresh] if name is None else []), *places))


def _other_reads(query: _Query, places: list[ast.expr]) -> list[ast.Name] | None:
    """The reads of what the query handed back but for `places`; None where one of them may read another value, or is out of sight."""
    if not isinstance(query.fresh, ast.Name):
        return None
    found = [
        node for node in walk(query.scope) if isinstance(node, ast.Name)
        and node.id == query.name and isinstance(node.ctx, ast.Load) and node not in places
    ]  # fmt: skip
    bound = [(node, reaching(node.id, node, query.file)) for node in found]
    own = [node for node, made in bound if any(one.statement is query.statement for one in made)]
    is_clear = all(made and (node not in own or _is_of(query, node)) for node, made in bound)
    return own if is_clear else None


def _is_same_at(value: ast.expr, place: ast.expr, file: SourceFile) -> bool:
    """Whether the names of an expression stand for the same at another place."""
    names = [node for node in walk(value) if isinstance(node, ast.Name)]
    return all(
        [one.statement for one in reaching(node.id, node, file)]
        == [one.statement for one in reaching(node.id, place, file)]
        for node in names
    )


def _uncut(node: ast.expr) -> ast.expr:
    """A tensor without what is done to its place and graph at the end: `x` of `x.detach().cpu()`."""
    while True:
        func = node.func if isinstance(node, ast.Call) else None
        if isinstance(func, ast.Attribute) and func.attr in _SAME_VALUES:
            node = func.value
        elif isinstance(node, ast.Attribute) and node.attr == "data":
            node = node.value
        else:
            return node


def _unused(lead: str, query: _Query) -> str:
    """A name that the scope does not have, after the name that the pool's values have."""
    wanted = f"{lead}_{(query.name or '').rpartition('.')[2]}"
    used = {node.id for node in walk(query.scope) if isinstance(node, ast.Name)}
    used |= set() if isinstance(query.scope, ast.Module) else all_parameters(query.scope)
    return next(one for one in chain([wanted], (f"{wanted}_{number}" for number in count(2))) if one not in used)
