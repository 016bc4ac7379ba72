"""Points at what the one data set of a program gives for a sample, where its samples cannot be stacked. No edit: the data decides."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from explainer.fix.codemod import Context, Proposal, culprit_of
from explainer.source.data.loader import NOT_STACKED
from explainer.source.tree import walk


def propose(context: Context) -> Iterator[Proposal]:
    """The `return` of the only `__getitem__` of the program."""
    if not any(refused in one.message for one in context.incident.exceptions for refused in NOT_STACKED):
        return
    found = [(file, function) for file, function in context.program.functions() if function.name == "__getitem__"]
    for file, function in found if len(found) == 1 else ():
        returns = [one for one in walk(function) if isinstance(one, ast.Return) and one.value is not None]
        if returns:
            why = "gives samples of different sizes or kinds, of which no batch can be made as they are"
            yield Proposal(edits=(), culprit=culprit_of(file, returns[-1], why), belief=0.5)
