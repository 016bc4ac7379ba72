"""Of two updates one after the other, the one whose loss goes back through the other's weights comes first.

`value_opt(value_loss); actor_opt(actor_loss)` with losses that both were computed before: the value's step moves what the actor's loss
has saved. In the other order each loss goes back through the weights that it was computed with. Only of updates that clear the gradients
themselves before their backward: what the other one has left in their weights is none of theirs.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from explainer.fix.clue.crash import crash_places, message_of
from explainer.fix.clue.trace import traced_places
from explainer.fix.codemod import Context, Proposal, culprit_of, insert_before, lines_of, remove_statement
from explainer.model.trace import WRITE
from explainer.source.file import SourceFile
from explainer.source.program import Program
from explainer.source.tree import start_of, walk
from explainer.source.value.binding import walk_scope
from explainer.source.value.callee import leads_to
from explainer.source.value.lineage import binds, block_of, reads

_STALE = "modified by an inplace operation"
_LEAVES = (ast.Return, ast.Break, ast.Continue, ast.Yield)


def propose(context: Context) -> Iterator[Proposal]:
    """An edit for the update that failed, where one before it in its block makes the step that a trace saw write."""
    if _STALE not in message_of(context):
        return
    steps = [one for where, one in traced_places(WRITE, context) if _is_of_whole_update(one, where, context.program)]
    places = list(crash_places(context))
    if not steps or not places or not _is_of_whole_update(places[0][1], places[0][0], context.program):
        return
    for file, failed in places[1:]:
        if not _is_update(failed):
            continue
        block = list(block_of(failed, file))
        before = block[: block.index(failed)] if failed in block else []
        first = next((one for one in before if _is_update(one) and _makes(steps, one, file, context.program)), None)
        if first is None or not _may_swap(before[before.index(first) :], failed):
            continue
        yield Proposal(
            edits=(remove_statement(file, failed), insert_before(file, first, lines_of(file, failed))),
            culprit=culprit_of(file, first, "steps weights that the loss of a later update goes back through"),
            belief=2.6,
            is_origin=True,
        )
        return


def _is_update(statement: ast.stmt) -> bool:
    """Whether a statement does no more than call something, and bind what that gives."""
    return isinstance(statement, (ast.Expr, ast.Assign)) and isinstance(statement.value, ast.Call)


def _is_of_whole_update(statement: ast.stmt, file: SourceFile, program: Program) -> bool:
    """Whether the function around a statement clears gradients, goes back and steps, in this order."""
    function = program.names(file).function_of(statement)
    called = [
        (start_of(one), one.func.attr)
        for one in (walk_scope(function) if function is not None else ())
        if isinstance(one, ast.Call) and isinstance(one.func, ast.Attribute)
    ]
    order = [name for _, name in sorted(called) if name in ("zero_grad", "backward", "step")]
    return order == ["zero_grad", "backward", "step"]


def _makes(steps: Sequence[ast.stmt], statement: ast.stmt, file: SourceFile, program: Program) -> bool:
    return any(one is statement or leads_to(one, statement, file, program) for one in steps)


def _may_swap(passed: Sequence[ast.stmt], moved: ast.stmt) -> bool:
    """Whether a statement reads nothing that those it passes bind, they nothing that it binds, and none of them leaves."""
    bound = {name for one in passed for node in walk(one) if isinstance(node, ast.stmt) for name in binds(node)}
    read = {name for one in passed for name in reads(one, graph=False)}
    leaves = any(isinstance(node, _LEAVES) for one in passed for node in walk(one))
    return not bound & reads(moved, graph=False) and not binds(moved) & (read | bound) and not leaves
