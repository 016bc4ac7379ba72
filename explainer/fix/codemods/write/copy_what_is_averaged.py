"""An average of weights holds copies: `{n: p.detach().clone() for n, p in model.named_parameters()}`, and is updated without grad.

What holds the parameters themselves would write the model: under `no_grad` alone each update would shrink it without a word.
"""

from __future__ import annotations

from collections.abc import Iterator

from explainer.fix.clue.crash import raised_at
from explainer.fix.codemod import Context, Proposal, culprit_of
from explainer.fix.text.rewrite import under_no_grad
from explainer.fix.write.aliased_average import aliased_average
from explainer.source.graph.write import is_without_grad


def propose(context: Context) -> Iterator[Proposal]:
    """An edit for the container and for the update that raised."""
    if not context.has_failed:
        return
    for file, statement in list(raised_at(context))[:1]:
        found = aliased_average(statement, file, context.program)
        if found is None or is_without_grad(statement, file, context.program):
            continue
        yield Proposal(
            edits=(found.edit, *under_no_grad(file, [statement], context.program.names(file))),
            culprit=culprit_of(
                found.file, found.node, "holds the parameters themselves, where a copy of them is averaged"
            ),
            belief=3.0,
        )
