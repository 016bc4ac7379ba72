"""`zero_grad` between a backward and its step moves before the backward: behind it, it throws away what the step needs."""

from __future__ import annotations

from collections.abc import Iterator

from explainer.fix.codemod import Context, Proposal, culprit_of, insert_before, lines_of, remove_statement
from explainer.source.backward import cleared, find_backwards, stepped
from explainer.source.lineage import block_of


def propose(context: Context) -> Iterator[Proposal]:
    """An edit for each block in which gradients are made, cleared, and stepped with in that order."""
    if not context.has_failed:
        return
    for backward in find_backwards(context.program):
        file = backward.file
        block = list(block_of(backward.statement, file))
        behind = block[block.index(backward.statement) + 1 :] if block else []
        step = next((one for one in behind if stepped(one)), None)
        # Another optimizer's may be cleared of what this backward has left there, as in a GAN.
        clears = [one for one in behind[: behind.index(step)] if cleared(one) == stepped(step)] if step else []
        if clears:
            text = "\n".join(lines_of(file, one) for one in clears)
            yield Proposal(
                edits=(insert_before(file, backward.statement, text), *(remove_statement(file, one) for one in clears)),
                culprit=culprit_of(file, clears[0], "throws the gradients away between their backward and the step"),
                belief=2.5,
            )
