"""Under `vmap`, a branch on a tensor's value becomes `torch.where(condition, a, b)`."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from explainer.fix.clue.crash import crash_places
from explainer.fix.codemod import Context, Proposal, culprit_of, edit_of
from explainer.model.patch import Edit
from explainer.source.file import SourceFile
from explainer.source.tree import walk
from explainer.source.value.lineage import block_of

_BOTH = "both branches are computed; a branch that is not finite where it is not taken still spoils the gradient"


def propose(context: Context) -> Iterator[Proposal]:
    """An edit for the conditional expression on the line that raised, or for the `if` that returns one value or another."""
    if not context.has_failed:
        return
    for file, statement in crash_places(context):
        if isinstance(statement, ast.If):
            yield from _returns(statement, file)
        for node in walk(statement):
            if isinstance(node, ast.IfExp) and isinstance(node.test, ast.Compare):
                parts = ", ".join(file.segment(one) for one in (node.test, node.body, node.orelse))
                yield Proposal(
                    edits=(edit_of(file, node, f"torch.where({parts})"),),
                    culprit=culprit_of(file, node, "branches on the value of a tensor, which `vmap` does not know"),
                    belief=1.5,
                    because=_BOTH,
                )
        return


def _returns(statement: ast.If, file: SourceFile) -> Iterator[Proposal]:
    """`if small: return a` with `return b` behind it, or in its `else`."""
    block = block_of(statement, file)
    behind = block[block.index(statement) + 1 :] if statement in block else []
    other = statement.orelse or behind[:1]
    first = statement.body[0]
    if len(statement.body) != 1 or len(other) != 1 or not isinstance(statement.test, ast.Compare):
        return
    second = other[0]
    if not isinstance(first, ast.Return) or not isinstance(second, ast.Return) or not first.value or not second.value:
        return
    parts = ", ".join(file.segment(one) for one in (statement.test, first.value, second.value))
    start, end = file.span(statement)[0], file.span(second)[1]
    yield Proposal(
        edits=(Edit(file=file.path, start=start, end=end, new=f"return torch.where({parts})"),),
        culprit=culprit_of(file, statement.test, "branches on the value of a tensor, which `vmap` does not know"),
        belief=1.5,
        because=_BOTH,
    )
