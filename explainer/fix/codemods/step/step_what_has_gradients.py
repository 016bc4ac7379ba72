"""A scaler steps an optimizer only where it has gradients: its part is frozen for a while, or this loss does not use it.

`scaler.step(optimizer)` becomes `if any(p.grad is not None ...): scaler.step(optimizer)`, as the optimizer by itself leaves
what has no gradient as it is. Only where the live optimizer is one that trains at another time: a part that is frozen in each
step was to be thawed, and one that never had a gradient may be cut off.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from explainer.fix.clue.crash import message_of, raised_at
from explainer.fix.codemod import Context, Proposal, culprit_of, edit_of
from explainer.model.incident import IDLE_OPTIMIZER
from explainer.source.file import SourceFile
from explainer.source.loop.phase import PHASE, TURN, find_switches
from explainer.source.name import dotted_name
from explainer.source.program import Program

_SAID = "No inf checks were recorded for this optimizer"
_SEEN = re.compile(r".*: (?P<state>\w+), (?P<steps>\d+) steps before")


def propose(context: Context) -> Iterator[Proposal]:
    """A condition on the step that failed."""
    fact = context.incident.fact(IDLE_OPTIMIZER)
    seen = _SEEN.fullmatch(fact.value) if fact is not None else None
    if _SAID not in message_of(context):
        return
    # A log does not say which optimizer has no gradients: a part that the program freezes later stands to reason.
    state, steps = (seen["state"], int(seen["steps"])) if seen is not None else ("frozen", 0)
    is_frozen = state == "frozen" and _is_frozen_for_a_while(context.program, steps, is_seen=seen is not None)
    if not is_frozen and not (state == "unused" and steps):
        return
    why = "is frozen for a while" if is_frozen else "has no part in this loss"
    for file, statement in raised_at(context):
        call = statement.value if isinstance(statement, ast.Expr) else None
        if isinstance(call, ast.Call) and _is_step(call) and not _shares_line(statement, file):
            yield Proposal(
                edits=(edit_of(file, statement, _guarded(file, statement, file.segment(call.args[0]))),),
                culprit=culprit_of(file, call, f"asks for a step of what {why}, and has no gradients then"),
                belief=2.0 if seen is not None else 1.0,
                applicability=None if seen is not None else "unsafe",
            )
        return


def _is_frozen_for_a_while(program: Program, steps: int, *, is_seen: bool) -> bool:
    """Whether a frozen part trains at another time: it has trained, or is switched on later, and not in each step's turns.

    Where nothing live was seen, any switch between the phases of a training says so.
    """
    switches = find_switches(program)
    off = [one for one in switches if one.is_on is not True]
    if not off or any(one.when == TURN for one in off):
        return False
    return bool(steps) or any(one.when == PHASE and not (is_seen and one.is_on is False) for one in switches)


def _is_step(call: ast.Call) -> bool:
    """Whether a call steps an optimizer that can be named twice: `scaler.step(self.optimizers["head"])`."""
    if not isinstance(call.func, ast.Attribute) or call.func.attr != "step" or not call.args:
        return False
    given = call.args[0]
    while isinstance(given, ast.Subscript) and isinstance(given.slice, (ast.Constant, ast.Name)):
        given = given.value
    return dotted_name(given) is not None


def _shares_line(statement: ast.stmt, file: SourceFile) -> bool:
    before = file.text[file.line_start(statement.lineno) : file.span(statement)[0]]
    behind = file.text[file.span(statement)[1] :].partition(file.newline)[0].strip()
    return bool(before.strip()) or not (behind == "" or behind.startswith("#"))


def _guarded(file: SourceFile, statement: ast.stmt, optimizer: str) -> str:
    """The statement under its condition."""
    indent = file.indent(statement.lineno)
    step = "    ".join(file.segment(statement).splitlines(keepends=True))
    has_gradients = f'any(p.grad is not None for group in {optimizer}.param_groups for p in group["params"])'
    return f"if {has_gradients}:{file.newline}{indent}    {step}"
