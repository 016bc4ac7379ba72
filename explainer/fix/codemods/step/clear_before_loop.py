"""A `zero_grad` that a trace saw throw gradients away moves before the loop whose backwards are to add up.

    for part in batch.chunk(4):
        optimizer.zero_grad()          # to before the loop
        (loss(part) / 4).backward()
    optimizer.step()

Where the same loop steps under a condition, as each fourth batch, it moves behind that step.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from explainer.fix.clue.trace import traced_places
from explainer.fix.codemod import Context, Proposal, culprit_of, insert_after, insert_before, lines_of, remove_statement
from explainer.model.patch import Edit
from explainer.model.trace import CLEARED
from explainer.source.file import SourceFile
from explainer.source.loop.backward import cleared, find_backwards, stepped
from explainer.source.program import Program
from explainer.source.tree import walk
from explainer.source.value.lineage import loops_of


def propose(context: Context) -> Iterator[Proposal]:
    """An edit for each such line."""
    for file, statement in traced_places(CLEARED, context):
        optimizer = cleared(statement)
        edit = _placed(statement, optimizer, file, context.program) if optimizer is not None else None
        if edit is not None:
            yield Proposal(
                edits=(remove_statement(file, statement), edit),
                culprit=culprit_of(file, statement, "clears what the earlier parts of the batch have added up"),
                belief=2.5,
            )


def _placed(statement: ast.stmt, optimizer: str, file: SourceFile, program: Program) -> Edit | None:
    """The edit that puts the statement where each of its loops' backwards counts; None where there is no such place."""
    backwards = [one.statement for one in find_backwards(program) if one.file is file]
    found: ast.For | ast.While | None = None
    for loop in loops_of(statement, file):
        inside = set(walk(loop))
        steps = [one for one in inside if isinstance(one, ast.stmt) and stepped(one) is not None]
        if steps and found is None and any(one in inside for one in backwards):
            own = [one for one in steps if stepped(one) == optimizer and isinstance(file.parents.get(one), ast.If)]
            return insert_after(file, own[0], lines_of(file, statement)) if len(own) == len(steps) == 1 else None
        if steps:
            break
        found = loop if any(one in inside for one in backwards) else found
    walked = (
        {node.id for node in walk(found.target) if isinstance(node, ast.Name)} if isinstance(found, ast.For) else set()
    )
    if found is None or optimizer.partition(".")[0] in walked:
        return None
    return insert_before(file, found, lines_of(file, statement))
