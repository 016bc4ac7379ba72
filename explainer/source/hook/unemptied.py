"""Collections of hooks that the loss of each step reads as a whole and that nothing empties: it goes back into earlier steps.

`penalty()` sums all that `self.outputs[name].append(output)` has collected. The place where they are to be empty is the
beginning of the round, or where the forward of the round begins: what reads the last outputs later finds them.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from explainer.source.file import SourceFile
from explainer.source.graph.write import is_without_grad
from explainer.source.hook.collection import LAST, READ, Collection, Use, all_held, find_collections
from explainer.source.hook.emptying import Round, idle_method, is_emptied, may_run_in
from explainer.source.hook.forward import runs_filling
from explainer.source.hook.reading import COMPREHENSIONS, Called, Reading, find_ways
from explainer.source.loop.backward import Backward, find_backwards
from explainer.source.name import Function, dotted_name
from explainer.source.program import Program
from explainer.source.tree import start_of, walk
from explainer.source.value.binding import bounds_of, dominates
from explainer.source.value.lineage import loop_of, loops_of
from explainer.source.value.resolve import resolver_of

_DEPTH = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Cleared:
    """A collection, its name where a step begins, and a method that empties it and that nothing calls."""

    collection: Collection
    called: Called
    method: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Start:
    """Where a step begins: before which statement what its forward fills is to be empty."""

    file: SourceFile
    statement: ast.stmt
    cleared: tuple[Cleared, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Collected:
    """A collection, what reads it for the loss, and where each step may begin with none; None where no place is honest."""

    collection: Collection
    read: Use
    start: Start | None
    is_read_elsewhere: bool


_Readings = list[tuple[Use, Reading]]


def find_collected(program: Program) -> tuple[Collected, ...]:
    """Every collection of hooks that ties the steps of a training loop together, once for each round that goes back."""
    return program.once(_collected)


def _collected(program: Program) -> Iterator[Collected]:
    for collection in find_collections(program):
        if not collection.carries_graph or collection.is_to_last:
            continue
        for around, readings in _rounds(collection, program).values():
            if not is_emptied(collection, around, program):
                yield Collected(
                    collection=collection,
                    read=readings[0][0],
                    start=_start(collection, around, readings, program),
                    is_read_elsewhere=any(_is_elsewhere(one, around, program) for one in collection.uses),
                )


def _rounds(collection: Collection, program: Program) -> dict[ast.stmt, tuple[Round, _Readings]]:
    """The rounds that go back through all of a collection, by their first statements, with what reads it there."""
    found: dict[ast.stmt, tuple[Round, _Readings]] = {}
    for use in collection.uses:
        if use.kind != READ or is_without_grad(use.node, use.file, program):
            continue
        for reading, backward in find_ways(use, collection, program):
            around = _round(reading.node, backward, program)
            if around is not None:
                found.setdefault(around.block[0], (around, []))[1].append((use, reading))
    for _, readings in found.values():
        readings.sort(key=lambda one: start_of(one[1].node))
    return found


def _round(node: ast.expr, backward: Backward, program: Program) -> Round | None:
    """The round that ends with a backward and reads a node; None where it goes back once so many have been."""
    file, inside = backward.file, program.names(backward.file).function_of(backward.call)
    loop = next((one for one in loops_of(backward.statement, file) if node in set(walk(one))), None)
    for above in file.around(backward.statement):
        if above in (loop, inside):
            break
        if isinstance(above, ast.If) and any(_counts(one) for one in walk(above.test)):
            return None
    if loop is not None:
        return Round(file=file, block=loop.body, function=inside)
    if inside is None or not _is_repeated(inside, file, program, 0):
        return None
    return Round(file=file, block=inside.body, function=inside)


def _counts(node: ast.AST) -> bool:
    return isinstance(node, ast.Mod) or (isinstance(node, ast.Call) and dotted_name(node.func) == "len")


def _is_repeated(function: Function, file: SourceFile, program: Program, depth: int) -> bool:
    """Whether a loop calls a function, or what calls it, or nothing of the program does."""
    calls = resolver_of(program).calls_of(function, file)
    if not calls or depth > _DEPTH:
        return True
    for where, call in calls:
        around = program.names(where).function_of(call)
        if loop_of(call, where) is not None or (around is not None and _is_repeated(around, where, program, depth + 1)):
            return True
    return False


def _start(collection: Collection, around: Round, readings: _Readings, program: Program) -> Start | None:
    """Where a round begins; None where it has no name for what is to be empty, or no forward of it fills that again."""
    beside = _beside(collection, around, readings, program)
    if beside is None:
        return None
    cleared: dict[Called, Cleared] = {}
    for one, each in [(collection, readings), *beside]:
        if not all(_is_whole(reading, around) for _, reading in each):
            return None
        method = idle_method(one, program)
        for called in (called for _, reading in each for called in reading.names):
            cleared.setdefault(replace(called, ends=frozenset()), Cleared(collection=one, called=called, method=method))
    statement = _first(collection, around, [reading for _, reading in readings], program)
    return (
        Start(file=around.file, statement=statement, cleared=tuple(cleared.values())) if statement is not None else None
    )


def _is_whole(reading: Reading, around: Round) -> bool:
    names = reading.names if reading.is_known else ()
    return bool(names) and all(_is_there(one.text.partition(".")[0], around) for one in names)


def _beside(
    collection: Collection, around: Round, readings: _Readings, program: Program
) -> list[tuple[Collection, _Readings]] | None:
    """What else hooks collect for the same loss, to be emptied too: `zip(self.ours, self.theirs)` pairs them place by place.

    None where another list is read beside it that keeps what it holds, or one without graphs is read by itself: that may be
    a record of all steps.
    """
    seen = {use.statement for use, _ in readings}
    own = {one.made for one in collection.containers}
    near = {
        held.container
        for file, node, each in all_held(program)
        for held in each
        if held.container.made not in own
        and (file.statement(node) in seen or any(one in seen for one in file.around(node)))
    }
    found: list[tuple[Collection, _Readings]] = []
    for other in find_collections(program):
        same = _rounds(other, program).get(around.block[0]) if other is not collection else None
        if same is None or is_emptied(other, around, program):
            continue
        is_near = any(one.made in {each.made for each in near} for one in other.containers)
        if other.is_to_last or not (is_near or other.carries_graph):
            return None
        found.append((other, same[1]))
    known = {one.made for other, _ in found for one in other.containers}
    emptied = {
        one.made
        for other in find_collections(program)
        if is_emptied(other, around, program)
        for one in other.containers
    }
    left = [one for one in near if one.made not in known | emptied]
    return None if any(not may_run_in(around, one.file, one.statement, program) for one in left) else found


def _first(collection: Collection, around: Round, readings: Sequence[Reading], program: Program) -> ast.stmt | None:
    """The first statement of a round, or that of its forward where what stands before reads the outputs of the last round."""
    block, file = around.block, around.file
    own = min(at for reading in readings for at, one in enumerate(block) if reading.node in set(walk(one)))
    fills = [at for at, one in enumerate(block[: own + 1]) if runs_filling(one, file, collection.additions, program)]
    inside = [one for reading in readings for one in file.around(reading.node) if one in around.nodes]
    loops = [one for one in inside if isinstance(one, (ast.For, ast.While, *COMPREHENSIONS))]
    if not fills or any(runs_filling(one, file, collection.additions, program) for one in loops):
        return None  # each round of an inner loop reads what the rounds before it have collected
    backwards = {one.statement for one in find_backwards(program)}
    seldom = [one for one in inside if isinstance(one, ast.If) and backwards & set(walk(one))]
    if any(not runs_filling(one, file, collection.additions, program) for one in seldom):
        return None  # `if done: (loss + penalty()).backward()` is of all rounds since the last
    before = replace(around, block=block[: fills[0]])
    if any(before.runs(use.statement, program) for use in collection.uses if use.kind in (READ, LAST)):
        return block[fills[0]]
    is_documented = isinstance(block[0], ast.Expr) and isinstance(block[0].value, ast.Constant)
    return block[min(int(is_documented), fills[0])]


def _is_there(root: str, around: Round) -> bool:
    """Whether a name has its value where a round begins, and keeps it in the round."""
    function, file, first = around.function, around.file, around.block[0]
    scope = function or file.tree
    bound = (
        [one.statement for one in bounds_of(scope) if one.name == root and not one.fills] if scope is not None else []
    )
    if any(one in around.nodes for one in bound):
        return False
    if not bound:
        return True  # a parameter, `self`, or a name of what lies around the function
    return any(start_of(one) < start_of(first) and dominates(one, first, file) for one in bound)


def _is_elsewhere(use: Use, around: Round, program: Program) -> bool:
    """Whether what was collected over several steps is read outside of a round, where it is less then."""
    function = program.names(use.file).function_of(use.node)
    if use.kind != READ or may_run_in(around, use.file, use.statement, program):
        return False
    return function is None or function is around.function or bool(resolver_of(program).calls_of(function, use.file))
