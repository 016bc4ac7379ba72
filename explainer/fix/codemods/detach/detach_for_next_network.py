"""What one network computed, and was trained by, is data for the loss of the next: `F.softmax(teacher_logits.detach() / T, -1)`.

The first backward has used its graph up, and no optimizer takes what the second one would give it. Only where the second loss
trains another network, of which nothing lies before what the two share: its gradients are then as they were meant.
"""

from __future__ import annotations

from collections.abc import Iterator

from explainer.fix.clue.crash import is_crash
from explainer.fix.codemod import Context, Proposal, culprit_of
from explainer.fix.text.rewrite import put_method
from explainer.source.loop.backward import calls_of
from explainer.source.loop.pair import find_pairs, read_by_second, runs
from explainer.source.value.lineage import binds


def propose(context: Context) -> Iterator[Proposal]:
    """An edit for each second loss that reads what the network of the first one has made."""
    if not context.has_failed:
        return
    for pair in find_pairs(context.program):
        before, after = pair.stepped, pair.trained_later - pair.stepped
        if not before or not after or not pair.shared or not pair.second.is_plain:
            continue
        if any(calls_of(after, one, pair.file, context.program) for one in pair.first_lines):
            continue
        if not runs(after, pair.second, pair.second_lines, context.program):
            continue
        found = list(read_by_second({name for one in pair.shared for name in binds(one)}, pair, context.program))
        if found:
            network, name = min(before), pair.file.segment(found[0])
            yield Proposal(
                edits=tuple(put_method(pair.file, one, ".detach()") for one in found),
                culprit=culprit_of(
                    pair.file, found[0], f"goes back into `{network}`, whose own loss has used up the graph of `{name}`"
                ),
                belief=1.2 + (1.0 if is_crash(pair.file, pair.second.call, context) else 0.0),
            )
