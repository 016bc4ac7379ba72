"""The events that a round of training calls before its optimizer's step: of a batch or of an epoch, and which event follows that step."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from explainer.source.file import SourceFile
from explainer.source.loop.event import Event, event_of, is_kin
from explainer.source.loop.step import OPTIMIZER_STEP, SCALER_STEP, UPDATE, Act, block_with, find_acts
from explainer.source.name import dotted_name
from explainer.source.program import Program
from explainer.source.tree import walk
from explainer.source.value.callee import callees_of

_LOOPS = (ast.For, ast.AsyncFor, ast.While)
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
_CALLS = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class EarlyEvent:
    """An event that a statement calls before the step of its round, and the first that the same loop calls behind the step."""

    file: SourceFile
    statement: ast.stmt
    event: Event
    later: Event


def find_early(program: Program) -> Iterator[EarlyEvent]:
    """Every such event that is called once in a round: in a loop, with no more than one loop between it and the step."""
    steps = [one for one in find_acts(program) if steps_optimizer(one)]
    for file in program.parsed() if steps else ():
        for statement in (one for one in file.walk() if isinstance(one, ast.stmt)):
            event = event_of(statement)
            if event is None or not _is_repeated(statement, file, program):
                continue
            block = block_with(statement, file)
            for one in block[block.index(statement) + 1 :]:
                reached = [
                    (count, step) for step in steps if (count := _loops_to(step, one, file, program)) is not None
                ]
                if not reached:
                    continue
                count, step = reached[-1]
                later = _behind(event, step, one, file) if not count else _next_of(event, _rest(one, file))
                if later is not None and count <= 1:
                    yield EarlyEvent(file=file, statement=statement, event=event, later=later)
                break


def steps_optimizer(act: Act) -> bool:
    """Whether an act steps an optimizer by all that can be read: not what a program's own class or a profiler steps."""
    if act.kind in (SCALER_STEP, UPDATE):
        return True
    own = act.object.lower()
    return (
        act.kind == OPTIMIZER_STEP and own not in ("self", "cls") and not any(one in own for one in ("sched", "prof"))
    )


def _is_repeated(statement: ast.stmt, file: SourceFile, program: Program) -> bool:
    """Whether a statement stands in a loop, or a loop calls its function."""
    if file.enclosing(statement, *_LOOPS, *_FUNCTIONS) is None:
        return False
    if isinstance(file.enclosing(statement, *_LOOPS, *_FUNCTIONS), _LOOPS):
        return True
    function = program.names(file).function_of(statement)
    return function is not None and any(
        isinstance(where.enclosing(one, *_LOOPS, *_FUNCTIONS), _LOOPS)
        for where in program.parsed()
        for one in where.walk()
        if isinstance(one, ast.Call) and (dotted_name(one.func) or "").rpartition(".")[2] == function.name
    )


def _loops_to(step: Act, node: ast.AST, file: SourceFile, program: Program, depth: int = 0) -> int | None:
    """How many loops lie between a node and a step that it holds or whose function it calls; None where it reaches none."""
    if step.file is file and any(one is step.statement for one in walk(node)):
        return _loops_above(step.statement, node, file)
    for call in (one for one in walk(node) if isinstance(one, ast.Call)) if depth < _CALLS else ():
        for callee in callees_of(call.func, file, program):
            inner = _loops_to(step, callee.function, callee.file, program, depth + 1)
            if inner is not None:
                return inner + _loops_above(call, node, file)
    return None


def _loops_above(node: ast.AST, top: ast.AST, file: SourceFile) -> int:
    if node is top:
        return 0
    count, above = int(isinstance(top, _LOOPS)), file.parents.get(node)
    while above is not None and above is not top:
        count, above = count + isinstance(above, _LOOPS), file.parents.get(above)
    return count


def _behind(event: Event, step: Act, running: ast.stmt, file: SourceFile) -> Event | None:
    """The first event of the same caller behind a step: in the step's own block, in those around it, then behind what runs it.

    None where the step depends on a condition, as with every fourth batch, and no event stands under it.
    """
    node: ast.AST = step.statement
    while not isinstance(node, _FUNCTIONS):
        if isinstance(node, ast.stmt):
            found = _next_of(event, _rest(node, step.file))
            if found is not None or node is running:
                return found
        above = step.file.parents.get(node)
        if above is None or (isinstance(above, ast.If) and not steps_anyway(above, step)):
            return None
        node = above
    return _next_of(event, _rest(running, file))


def _rest(statement: ast.stmt, file: SourceFile) -> Sequence[ast.stmt]:
    block = block_with(statement, file)
    return block[block.index(statement) + 1 :]


def _next_of(event: Event, statements: Sequence[ast.stmt]) -> Event | None:
    """The first event of statements that the same call makes, its other arguments aside."""
    found = (event_of(one) for one in statements)
    return next((one for one in found if one is not None and is_kin(one, event)), None)


def steps_anyway(choice: ast.If, step: Act) -> bool:
    """Whether both branches step: `if scaler: scaler.step(opt) else: opt.step()`."""
    sides = [
        any(isinstance(one, ast.Attribute) and one.attr == "step" for part in side for one in walk(part))
        for side in (choice.body, choice.orelse)
    ]
    return all(sides) and step.statement is not choice
