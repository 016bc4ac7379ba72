"""Where a schedule of an optimizer that never steps is made, and what the optimizer that steps is called there.

A run has seen it, with the ways to both; of a schedule that Lightning refuses the source tells as much.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from explainer.fix.clue.trace import traced_statements
from explainer.fix.codemod import Context
from explainer.model.trace import IDLE, SCHEDULED, STEPPING, STEPPING_LATER
from explainer.source.file import SourceFile
from explainer.source.loop.step import is_optimizer
from explainer.source.name import Function, dotted_name
from explainer.source.program import Program
from explainer.source.tree import start_of, walk
from explainer.source.value.binding import Value, reaching

_SCHEDULES = "torch.optim.lr_scheduler."
Line = tuple[SourceFile, ast.stmt]


@dataclass(frozen=True, slots=True)
class IdleSchedule:
    """The lines that a run has told: the ways to the schedule and to the optimizer that steps, and the idle one's."""

    schedule: list[Line]
    idle: ast.stmt
    stepping: list[Line]
    kind: str
    program: Program
    is_later: bool = False

    @property
    def file(self) -> SourceFile:
        """The file in which the schedule is made."""
        return self.schedule[-1][0]

    @property
    def made(self) -> ast.stmt:
        """The statement that makes the schedule."""
        return self.schedule[-1][1]

    @property
    def function(self) -> Function | None:
        """The function in which it is made."""
        return self.program.names(self.file).function_of(self.made)


def seen_idle(context: Context) -> IdleSchedule | None:
    """What a run has told; None where it told nothing, or a line of it is not in the program."""
    schedule = _lines(SCHEDULED, context)
    idle, now, later = (_lines(kind, context) for kind in (IDLE, STEPPING, STEPPING_LATER))
    told = sum(one.kind in (SCHEDULED, IDLE, STEPPING, STEPPING_LATER) for one in context.incident.traced)
    if not schedule or len(idle) != 1 or not (now or later) or told != len(schedule) + 1 + len(now) + len(later):
        return None
    kind = next(one.operation for one in context.incident.traced if one.kind in (STEPPING, STEPPING_LATER))
    return IdleSchedule(schedule, idle[0][1], now or later, kind, context.program, is_later=not now)


def _lines(kind: str, context: Context) -> list[Line]:
    return [(file, statement) for _, file, statement in traced_statements(kind, context)]


def not_returned(program: Program) -> Iterator[IdleSchedule]:
    """The first schedule of each `configure_optimizers` whose optimizer that does not return, where it returns one by its name."""
    for file, function in program.functions_named("configure_optimizers"):
        named: dict[str, ast.stmt] = {}
        for one in walk(function):
            if isinstance(one, ast.Assign) and isinstance(one.value, ast.Call):
                name = bound_name(one, file, program) if is_optimizer(Value(one.value, file), program) else None
                named.update({name: one} if name else {})
        names = program.names(file)
        calls = [one for one in walk(function) if isinstance(one, ast.Call)]
        schedules = [one for one in calls if (names.qualified(one.func) or "").startswith(_SCHEDULES)]
        inside = {each for one in schedules for each in walk(one)}
        returns = [one for one in walk(function) if isinstance(one, ast.Return)]
        kept = {dotted_name(each) for one in returns for each in walk(one) if each not in inside} & named.keys()
        given = [(one, _given_first(one)) for one in sorted(schedules, key=start_of)]
        idle = [
            (call, named.get(dotted_name(first) or "", file.statement(call)))
            for call, first in given
            if first is not None and dotted_name(first) not in kept and is_optimizer(Value(first, file), program)
        ]
        if len(kept) == 1 and idle:
            call, made = idle[0]
            (stepping,) = kept
            yield IdleSchedule([(file, file.statement(call))], made, [(file, named[str(stepping)])], "", program)


def _given_first(call: ast.Call) -> ast.expr | None:
    """The optimizer that a schedule is given."""
    named = next((one.value for one in call.keywords if one.arg == "optimizer"), None)
    return named if named is not None or not call.args else call.args[0]


def name_here(seen: IdleSchedule) -> str | None:
    """What the optimizer that steps is called where the schedule is made."""
    names = seen.program.names(seen.file)
    owner = names.class_of(seen.made)
    for at, (file, statement) in enumerate(seen.stepping):
        name = bound_name(statement, file, seen.program) if hands_up(seen, at) else None
        if name is None:
            continue
        around = seen.program.names(file).function_of(statement)
        if around is seen.function and file is seen.file:
            last = [one.statement for one in reaching(name, seen.made, file)]
            return name if last == [statement] or (seen.is_later and statement not in last) else None
        is_own = owner is not None and file is seen.file and names.class_of(statement) is owner
        if name.startswith("self.") and is_own and not seen.is_later:
            return name
    return None


def hands_up(seen: IdleSchedule, at: int) -> bool:
    """Whether a line of the way to the optimizer that steps gets it itself, and no list or object that holds it.

    Each function further in returns what it makes.
    """
    (file, statement), *inner = seen.stepping[at:]
    value = getattr(statement, "value", None)
    if not isinstance(value, (ast.Call, ast.IfExp)) or not all(
        _returns(one, where, seen.program) for where, one in inner
    ):
        return False
    called = dotted_name(value.func) or "" if isinstance(value, ast.Call) else ""
    is_class = bool(called) and called.rpartition(".")[2] == seen.kind
    return bool(inner) or is_class or is_optimizer(Value(value, file), seen.program)


def _returns(statement: ast.stmt, file: SourceFile, program: Program) -> bool:
    """Whether a function returns what a statement of it makes."""
    if isinstance(statement, ast.Return):
        return True
    function, name = program.names(file).function_of(statement), bound_name(statement, file, program)
    ends = [one.value for one in walk(function) if isinstance(one, ast.Return)] if function is not None else []
    parts = [each for one in ends for each in (one.elts if isinstance(one, ast.Tuple) else [one])]
    return name is not None and any(dotted_name(one) == name for one in parts if one is not None)


def bound_name(statement: ast.stmt, file: SourceFile, program: Program) -> str | None:
    """The name, or attribute of `self`, that a statement gives an optimizer; of several that it unpacks, the optimizer's."""
    if isinstance(statement, ast.Assign) and len(statement.targets) == 1:
        target = statement.targets[0]
    elif isinstance(statement, ast.AnnAssign):
        target = statement.target
    else:
        return None
    if isinstance(target, ast.Tuple) and isinstance(statement.value, ast.Call):
        call = statement.value
        mine = [one for at, one in enumerate(target.elts) if is_optimizer(Value(call, file, pick=at), program)]
        target = mine[0] if len(mine) == 1 else target
    name = dotted_name(target) or ""
    return name if name.removeprefix("self.").isidentifier() else None
