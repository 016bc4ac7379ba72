"""`torch.tensor(observation)` for `torch.from_numpy(observation)` where the program writes into the array before the backward.

And `logits.detach().numpy().copy()` where it writes into an array that has the memory of what the model computed.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from explainer.fix.clue.trace import traced_statements
from explainer.fix.codemod import Context, Proposal, culprit_of, edit_of
from explainer.fix.text.rewrite import put_method, spell
from explainer.model.trace import HIDDEN_WRITE, LENDING, SHARING
from explainer.source.file import SourceFile
from explainer.source.tree import walk

_SHARES = ("torch.from_numpy", "torch.as_tensor", "torch.asarray")


def propose(context: Context) -> Iterator[Proposal]:
    """An edit for the calls of a line of which a trace saw that the memory they share was written."""
    for line, file, statement in traced_statements(HIDDEN_WRITE, context):
        names = context.program.names(file)
        if line.operation == LENDING:
            yield from _copied(file, statement, line.says)
        if line.operation != SHARING:
            continue
        calls = [one for one in walk(statement) if isinstance(one, ast.Call) and names.is_call(one, *_SHARES)]
        if calls:
            yield Proposal(
                edits=tuple(edit_of(file, one.func, spell(names, "torch.tensor")) for one in calls),
                culprit=culprit_of(file, statement, line.says),
                belief=3.0,
            )


def _copied(file: SourceFile, statement: ast.stmt, why: str) -> Iterator[Proposal]:
    calls = [
        one
        for one in walk(statement)
        if isinstance(one, ast.Call) and isinstance(one.func, ast.Attribute) and one.func.attr == "numpy"
        and not isinstance(file.parents.get(one), ast.Attribute)
    ]  # fmt: skip
    if calls:
        yield Proposal(
            edits=tuple(put_method(file, one, ".copy()") for one in calls),
            culprit=culprit_of(file, statement, why),
            belief=3.0,
        )
