"""`scheduler.step()` moves behind `optimizer.step()`: the first learning rate of the schedule is used.

A scheduler that is stepped with every batch, where the optimizer is stepped under an `if`, moves into that `if`. One that an epoch
begins with moves to its end, where the loop or the function that steps the optimizer is called in between.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from explainer.fix.codemod import Context, Proposal, culprit_of, insert_after, remove_statement
from explainer.source.file import SourceFile
from explainer.source.loop.step import OPTIMIZER_STEP, SCALER_STEP, SCHEDULER_STEP, UPDATE, Act, block_with, find_acts
from explainer.source.program import Program
from explainer.source.tree import walk
from explainer.source.value.callee import leads_to


def propose(context: Context) -> Iterator[Proposal]:
    """An edit for each scheduler's step that stands before the optimizer's, or runs more often."""
    if not context.has_failed:
        return
    acts = list(find_acts(context.program))
    for scheduler in acts:
        if scheduler.kind != SCHEDULER_STEP or not isinstance(scheduler.statement, ast.Expr):
            continue
        target = _late(scheduler, acts) or _often(scheduler, acts) or _early_in_epoch(scheduler, acts, context.program)
        if target is None:
            continue
        statement, why = target
        text = scheduler.file.segment(scheduler.statement)
        yield Proposal(
            edits=(
                remove_statement(scheduler.file, scheduler.statement),
                insert_after(scheduler.file, statement, text),
            ),
            culprit=culprit_of(scheduler.file, scheduler.call, why),
            belief=1.5,
        )


def _steps(acts: Sequence[Act], file: SourceFile) -> list[Act]:
    return [one for one in acts if one.kind in (OPTIMIZER_STEP, SCALER_STEP, UPDATE) and one.file is file]


def _late(scheduler: Act, acts: Sequence[Act]) -> tuple[ast.stmt, str] | None:
    """The optimizer's step that follows the scheduler's in the same block, with the scaler's update after it."""
    block = block_with(scheduler.statement, scheduler.file)
    place = block.index(scheduler.statement)
    steps = _steps(acts, scheduler.file)
    earlier = [one for one in steps if one.statement in block[:place]]
    later = [one for one in steps if one.statement in block[place:]]
    if earlier or not later:
        return None
    return later[-1].statement, "moves the learning rate before the optimizer has used it"


def _often(scheduler: Act, acts: Sequence[Act]) -> tuple[ast.stmt, str] | None:
    """The optimizer's step under an `if` of the scheduler's block."""
    block = block_with(scheduler.statement, scheduler.file)
    for one in _steps(acts, scheduler.file):
        above = scheduler.file.parents.get(one.statement)
        if isinstance(above, ast.If) and above in block and one.statement in above.body and not above.orelse:
            last = [step for step in _steps(acts, scheduler.file) if step.statement in above.body][-1]
            return last.statement, "is called with every batch, while the optimizer steps less often"
    return None


def _early_in_epoch(scheduler: Act, acts: Sequence[Act], program: Program) -> tuple[ast.stmt, str] | None:
    """The last statement of an epoch that begins with the scheduler's step and then runs what steps the optimizer."""
    file = scheduler.file
    block = block_with(scheduler.statement, file)
    at = block.index(scheduler.statement)
    steps = [one for one in acts if one.kind in (OPTIMIZER_STEP, SCALER_STEP, UPDATE)]
    running = [one for one in block if any(_runs(one, step, file, program) for step in steps)]
    is_loop = isinstance(file.parents.get(scheduler.statement), (ast.For, ast.While))
    is_first = bool(running) and block.index(running[0]) > at
    leaves = any(
        isinstance(node, (ast.Continue, ast.Return)) for one in block for node in walk(one) if one not in running
    )
    if not is_loop or not is_first or leaves:
        return None
    return block[-1], "moves the learning rate before the epoch has used it: the first value is never used"


def _runs(statement: ast.stmt, step: Act, file: SourceFile, program: Program) -> bool:
    """Whether a statement holds a step, or calls what does."""
    is_inside = step.file is file and any(one is step.statement for one in walk(statement))
    return is_inside or leads_to(step.statement, statement, file, program)
