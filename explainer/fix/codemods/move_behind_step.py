"""What leads to a traced write of weights between a forward and its backward moves behind the step that follows.

`self.constrain()` before `loss.backward()` comes after `self.optimizer.step()`, where a constraint, an average or a copy of
weights belongs. Only a statement that binds no name, and of which a trace saw that it, or a function it calls, wrote.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from explainer.fix.codemod import Context, Proposal, culprit_of, insert_after, lines_of, remove_statement
from explainer.fix.trace import traced_places
from explainer.model.trace import HIDDEN_WRITE, WRITE
from explainer.source.backward import stepped
from explainer.source.callee import leads_to
from explainer.source.event import event_of, find_gaps, later_event
from explainer.source.swap import swap_in
from explainer.source.tree import walk

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
            if swap_in(gap, statement, context.program):
                continue  # it puts the weights back: a value of this step, which another edit keeps
            for one in gap.between:
                event = event_of(one)
                if not _may_move(one) or (event is not None and later_event(event, gap) is not None):
                    continue
                if statement in set(walk(one)) or leads_to(statement, one, gap.file, context.program):
                    yield Proposal(
                        edits=(
                            remove_statement(gap.file, one),
                            insert_after(gap.file, gap.step, lines_of(gap.file, one)),
                        ),
                        culprit=culprit_of(gap.file, one, "changes weights before this loss's backward reads them"),
                        belief=2.0,
                        applicability="unsafe",
                        because=_LATER,
                    )


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
