"""Puts another function of the same module in place of one: the rule's options say `old` (qualified) and `new` (its last part)."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from explainer.fix.codemod import Context, Proposal, culprit_of
from explainer.model.patch import Edit


def propose(context: Context) -> Iterator[Proposal]:
    """An edit for each use of the function through its module."""
    old, new = str(context.options.get("old", "")), str(context.options.get("new", ""))
    if not context.has_failed or not old or not new:
        return
    for file in context.program.parsed():
        for node in file.walk():
            if isinstance(node, ast.Attribute) and context.program.names(file).qualified(node) == old:
                end = file.span(node)[1]
                yield Proposal(
                    edits=(Edit(file=file.path, start=end - len(node.attr), end=end, new=new),),
                    culprit=culprit_of(file, node, str(context.options.get("why", "is what fails here"))),
                    belief=2.0,
                )
