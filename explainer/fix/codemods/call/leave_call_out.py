"""A call that stands alone goes: `model.gradient_checkpointing_enable()` of a model that cannot do it.

The rule's options say which (`calls`: qualified names, or `.method`); `why` ends the sentence about the line.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from explainer.fix.clue.blame import nearness
from explainer.fix.codemod import Context, Proposal, culprit_of, remove_statement


def propose(context: Context) -> Iterator[Proposal]:
    """An edit for each such call of which nothing reads the result."""
    calls = context.options.get("calls")
    if not context.has_failed or not isinstance(calls, Sequence):
        return
    for file in context.program.parsed():
        names = context.program.names(file)
        for node in file.walk():
            if not isinstance(node, ast.Expr) or not isinstance(node.value, ast.Call):
                continue
            if names.is_call(node.value, *map(str, calls)):
                yield Proposal(
                    edits=(remove_statement(file, node),),
                    culprit=culprit_of(file, node, str(context.options.get("why", "asks for what cannot be done"))),
                    belief=1.0 + nearness(file, node, context),
                )
