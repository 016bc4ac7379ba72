"""A loss for a tensor alone takes what a network made as data: `-(log_alpha.exp() * (log_prob + target).detach()).mean()`.

The temperature of soft actor-critic, a multiplier, a threshold: its optimizer owns that tensor, the network's own backward has
used the graph up, and nothing takes what the second one would give the network.
"""

from __future__ import annotations

from collections.abc import Iterator

from explainer.fix.clue.crash import is_crash
from explainer.fix.codemod import Context, Proposal, culprit_of
from explainer.fix.text.rewrite import put_method
from explainer.source.loop.own_tensor import own_tensors
from explainer.source.loop.pair import find_pairs, read_by_second
from explainer.source.name import dotted_name
from explainer.source.tree import walk
from explainer.source.value.lineage import binds


def propose(context: Context) -> Iterator[Proposal]:
    """An edit for each second loss whose optimizer owns tensors that nothing lies before."""
    if not context.has_failed:
        return
    for pair in find_pairs(context.program):
        own = own_tensors(pair, context.program)
        shared = [one for one in pair.shared if not binds(one) & own]
        if not own or not shared or not pair.second.is_plain:
            continue
        if any(dotted_name(node) in own for one in shared for node in walk(one)):
            continue
        found = list(read_by_second({name for one in shared for name in binds(one)}, pair, context.program))
        if found and is_crash(pair.file, pair.second.call, context):
            name = pair.file.segment(found[0])
            yield Proposal(
                edits=tuple(put_method(pair.file, one, ".detach()") for one in found),
                culprit=culprit_of(
                    pair.file, found[0],
                    f"goes back through `{name}`, whose graph is used up, for `{min(own)}` alone, which does not lie behind it",
                ),
                belief=2.4,
            )  # fmt: skip
