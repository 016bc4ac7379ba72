"""`nn.ReLU(inplace=True)` becomes `nn.ReLU(inplace=False)`, also in a functional call: the activation's input stays."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from explainer.fix.codemod import Context, Proposal, culprit_of, edit_of
from explainer.fix.suspicion import suspect
from explainer.source.write import ARGUMENT, find_writes


def propose(context: Context) -> Iterator[Proposal]:
    """An edit for each suspicious `inplace=True`."""
    for write in find_writes(context.program):
        belief = suspect(write, context) if write.kind == ARGUMENT else None
        if belief is None or not context.has_failed:
            continue
        assert isinstance(write.node, ast.Call)
        (keyword,) = [one for one in write.node.keywords if one.arg == "inplace"]
        yield Proposal(
            edits=(edit_of(write.file, keyword.value, "False"),),
            culprit=culprit_of(
                write.file, write.node, "writes its input in place, also where another backward needs it"
            ),
            belief=belief - 0.2,
        )
