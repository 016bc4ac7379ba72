"""What leads to a traced write of weights between a forward and its backward moves behind the step that follows.

`self.constrain()` before `loss.backward()` comes after `self.optimizer.step()`, where a constraint, an average or a copy of
weights belongs. Only a statement of which a trace saw that it, or a function it calls, wrote, and that binds no name which is
read before: `rolled_back = guard.observe(loss.item())` may move where only what comes behind the step asks for it.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from explainer.fix.clue.failure import is_written_once
from explainer.fix.clue.trace import traced_places
from explainer.fix.codemod import Context, Proposal, culprit_of, insert_after, lines_of, remove_statement
from explainer.model.trace import HIDDEN_WRITE, WRITE
from explainer.source.loop.backward import stepped
from explainer.source.loop.event import Gap, event_of, find_gaps, later_event
from explainer.source.loop.swap import swap_in
from explainer.source.tree import walk
from explainer.source.value.binding import scope_of
from explainer.source.value.callee import leads_to
from explainer.source.value.lineage import before

_LATER = "the weights change after the step instead of before the backward: once more after the last step, not before the first"


def propose(context: Context) -> Iterator[Proposal]:
    """An edit for each statement of a gap that leads to a traced write."""
    if not context.has_failed:
        return
    written = [statement for kind in (WRITE, HIDDEN_WRITE) for _, statement in traced_places(kind, context)]
    for statement in dict.fromkeys(written):
        for gap in find_gaps(context.program):
            if any(stepped(one) for one in gap.between if isinstance(one, ast.stmt)):
                continue  # another optimizer's step: two losses, which other edits put in order
            if not is_written_once(context) and swap_in(gap, statement, context.program):
                continue  # it puts the weights back: a value of this step, which another edit keeps
            for one in gap.between:
                event = event_of(one)
                if not (_may_move(one) or _is_asked_later(one, gap)) or (
                    event is not None and later_event(event, gap) is not None
                ):
                    continue
                if statement in set(walk(one)) or leads_to(statement, one, gap.file, context.program):
                    yield Proposal(
                        edits=(
                            remove_statement(gap.file, one),
                            insert_after(gap.file, _last_step(gap), lines_of(gap.file, one)),
                        ),
                        culprit=culprit_of(gap.file, one, "changes weights before this loss's backward reads them"),
                        belief=2.0,
                        applicability="unsafe",
                        because=_LATER,
                    )


def _last_step(gap: Gap) -> ast.stmt:
    """The last of the steps that follow each other: of several optimizers all have to be through."""
    last = gap.step
    for one in gap.after:
        if not any(isinstance(each, ast.stmt) and stepped(each) for each in walk(one)):
            break
        last = one
    return last


def _is_asked_later(statement: ast.stmt, gap: Gap) -> bool:
    """Whether a statement keeps a call's answer under one name that nothing but what follows the steps reads."""
    if (
        not isinstance(statement, ast.Assign)
        or not isinstance(statement.value, ast.Call)
        or len(statement.targets) != 1
    ):
        return False
    target, scope = statement.targets[0], scope_of(statement, gap.file)
    last = _last_step(gap)
    later = {id(each) for one in gap.after if before(last, one) for each in walk(one)}
    return isinstance(target, ast.Name) and scope is not None and all(
        id(each) in later
        for each in walk(scope)
        if isinstance(each, ast.Name) and each.id == target.id and each is not target
    )  # fmt: skip


def _may_move(statement: ast.stmt) -> bool:
    """Whether a statement gives nothing on to the next ones: a call, or a block that binds nothing of its own."""
    if isinstance(statement, ast.Expr):
        return isinstance(statement.value, ast.Call)
    if not isinstance(statement, (ast.With, ast.For, ast.If)):
        return False
    return not any(
        isinstance(one, (ast.Return, ast.Break, ast.Continue, ast.Assign, ast.AnnAssign, ast.NamedExpr))
        for one in walk(statement)
    )
