"""`torch.tensor(observation)` for `torch.from_numpy(observation)` where the program writes into the array before the backward."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from explainer.fix.codemod import Context, Proposal, culprit_of, edit_of
from explainer.fix.rewrite import spell
from explainer.fix.trace import traced_statements
from explainer.model.trace import HIDDEN_WRITE, SHARING
from explainer.source.tree import walk

_SHARES = ("torch.from_numpy", "torch.as_tensor", "torch.asarray")


def propose(context: Context) -> Iterator[Proposal]:
    """An edit for the calls of a line of which a trace saw that the memory they share was written."""
    for line, file, statement in traced_statements(HIDDEN_WRITE, context):
        if line.operation != SHARING:
            continue
        names = context.program.names(file)
        calls = [one for one in walk(statement) if isinstance(one, ast.Call) and names.is_call(one, *_SHARES)]
        if calls:
            yield Proposal(
                edits=tuple(edit_of(file, one.func, spell(names, "torch.tensor")) for one in calls),
                culprit=culprit_of(file, statement, line.says),
                belief=3.0,
            )
