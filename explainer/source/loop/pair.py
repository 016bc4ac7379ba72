"""Two backward calls of one training step, what lies between them, and what their losses share."""

from __future__ import annotations

import ast
import itertools
from collections.abc import Iterator
from dataclasses import dataclass

from explainer.source.file import SourceFile
from explainer.source.graph.write import is_without_grad
from explainer.source.loop.backward import Backward, calls_of, cleared, find_backwards, stepped
from explainer.source.loop.ownership import owned_by
from explainer.source.loop.update import Update, find_turns, find_updates
from explainer.source.program import Program
from explainer.source.tree import walk
from explainer.source.value.flow import Reach, flow_of
from explainer.source.value.lineage import Scope, before, lineage, scope_of, sources, statements_of

_NOTHING: frozenset[str] = frozenset()
_COMPUTED = (ast.Call, ast.BinOp)


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """Two backward calls, one after the other. `lines` are the statements that each loss was computed by.

    Those that are `shared` have a graph. `steps` are the optimizer steps between them, with the modules that these own;
    `later` those after the second one, up to the next backward, and the optimizers that are cleared for it.
    """

    first: Backward
    second: Backward
    first_lines: tuple[ast.stmt, ...]
    second_lines: tuple[ast.stmt, ...]
    shared: tuple[ast.stmt, ...]
    steps: tuple[tuple[ast.stmt, frozenset[str]], ...]
    later: tuple[tuple[ast.stmt, frozenset[str]], ...]

    @property
    def file(self) -> SourceFile:
        """The file of both calls."""
        return self.first.file

    @property
    def stepped(self) -> frozenset[str]:
        """The modules that are stepped between the two calls."""
        return _NOTHING.union(*(owned for _, owned in self.steps))

    @property
    def trained_later(self) -> frozenset[str]:
        """The modules that are stepped after the second call."""
        return _NOTHING.union(*(owned for _, owned in self.later))


def find_pairs(program: Program, *, updates: bool = False) -> Iterator[Pair]:
    """Each two backward calls that follow each other in one function; with `updates` also calls of functions that run one."""
    calls = list(find_turns(program) if updates else find_backwards(program))
    for first, second in itertools.pairwise(calls):
        scope = scope_of(first.call, first.file, program)
        if first.file is not second.file or scope is None or scope is not scope_of(second.call, second.file, program):
            continue
        if not before(first.statement, second.statement) or _are_alternatives(first, second):
            continue
        third = next((one for one in calls[calls.index(second) + 1 :] if one.file is second.file), None)
        yield _pair(first, second, third, scope, program)


Owned = tuple[ast.stmt, frozenset[str]]


def _owned(scope: Scope, file: SourceFile, program: Program, *, updates: bool) -> tuple[list[Owned], list[Owned]]:
    """The statements of a scope that step an optimizer, and those that clear one, with the modules that it owns."""
    inside = statements_of(scope)
    steps = [(one, name) for one in inside if (name := stepped(one))]
    wiped = [(one, name) for one in inside if (name := cleared(one))]
    for one in find_updates(program) if updates else ():
        if one.file is file and one.statement in inside and one.optimizer is not None:
            steps += [(one.statement, one.optimizer)] if one.steps else []
            wiped += [(one.statement, one.optimizer)] if one.clears else []
    steps.sort(key=lambda one: (one[0].lineno, one[0].col_offset))
    return (
        [(one, owned_by(name, one, file, program)) for one, name in steps],
        [(one, owned_by(name, one, file, program)) for one, name in wiped],
    )


def _pair(first: Backward, second: Backward, third: Backward | None, scope: Scope, program: Program) -> Pair:
    file = first.file
    own = set(lineage(first.loss, first.statement, file, program))
    common = [one for one in graph_lines(second.loss, second.statement, file, program) if one in own]
    is_update = isinstance(first, Update) or isinstance(second, Update)
    steps, wiped = _owned(scope, file, program, updates=is_update)
    end = third.statement if third is not None else None

    def is_between(one: ast.stmt) -> bool:
        return before(first.statement, one) and before(one, second.statement)

    def is_behind(one: ast.stmt) -> bool:
        is_own = one is second.statement
        return is_own or (before(second.statement, one) and (end is None or not (one is end or before(end, one))))

    return Pair(
        first=first,
        second=second,
        first_lines=tuple(lineage(first.loss, first.statement, file, program)),
        second_lines=tuple(lineage(second.loss, second.statement, file, program)),
        shared=tuple(common),
        steps=tuple(one for one in steps if is_between(one[0]) or (one[0] is first.statement)),
        # An optimizer whose gradients are cleared between the calls is the second loss's, wherever it steps.
        later=tuple(one for one in wiped if is_between(one[0])) + tuple(one for one in steps if is_behind(one[0])),
    )


def _are_alternatives(first: Backward, second: Backward) -> bool:
    """Whether the two stand in different branches of one `if` or `try`."""
    file = first.file
    above: ast.AST | None = first.statement
    while above is not None:
        parent = file.parents.get(above)
        if isinstance(parent, ast.If) and _is_within(second.statement, parent, file):
            branch = parent.body if above in parent.body else parent.orelse
            if not any(_is_within(second.statement, one, file) for one in branch):
                return True
        above = parent
    return False


def _is_within(node: ast.AST, outer: ast.AST, file: SourceFile) -> bool:
    above: ast.AST | None = node
    while above is not None and above is not outer:
        above = file.parents.get(above)
    return above is outer


def graph_lines(node: ast.AST, at: ast.stmt, file: SourceFile, program: Program) -> list[ast.stmt]:
    """The statements of a lineage that compute something a gradient passes through, rather than data or modules."""
    flow = flow_of(program)
    found = [one for one, part in sources(node, at, file, program)
             if flow.reach_of(part, file) != Reach.NONE and any(isinstance(each, _COMPUTED) for each in walk(part))]  # fmt: skip
    return list(dict.fromkeys(found))


def runs(modules: frozenset[str], loss: Backward, lines: tuple[ast.stmt, ...], program: Program) -> bool:
    """Whether a loss goes through one of the modules."""
    return any(calls_of(modules, one, loss.file, program) for one in (*lines, loss.loss))


def read_by_second(names: set[str], pair: Pair, program: Program) -> Iterator[ast.Name]:
    """Where the second loss alone reads one of the names with its graph."""
    own = [one for one in (*pair.second_lines, pair.second.statement) if one not in pair.first_lines]
    for node in (node for one in dict.fromkeys(own) for node in walk(one)):
        above = pair.file.parents.get(node)
        is_cut = isinstance(above, ast.Attribute) and above.attr in ("detach", "shape", "size", "device", "dtype")
        is_read = isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) and node.id in names
        if is_read and isinstance(node, ast.Name) and not is_cut and not is_without_grad(node, pair.file, program):
            yield node


def feeds(upstream: frozenset[str], modules: frozenset[str], pair: Pair, program: Program) -> bool:
    """Whether the second loss gives what `upstream` made to one of `modules`."""
    file = pair.file
    for line in (*pair.second_lines, pair.second.statement):
        for call in calls_of(modules, line, file, program):
            for argument in (*call.args, *(one.value for one in call.keywords)):
                parts = [argument, *(part for _, part in sources(argument, line, file, program))]
                if any(calls_of(upstream, part, file, program) for part in parts):
                    return True
    return False
