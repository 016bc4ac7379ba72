"""What one network computed, and was trained by, is data for the loss of the next: `F.softmax(teacher_logits.detach() / T, -1)`.

The first backward has used its graph up, and no optimizer takes what the second one would give it. Only where the second loss
trains another network, of which nothing lies before what the two share: its gradients are then as they were meant.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from explainer.fix.codemod import Context, Proposal, culprit_of
from explainer.fix.crash import is_crash
from explainer.fix.rewrite import put_method
from explainer.source.graph.write import is_without_grad
from explainer.source.loop.backward import calls_of
from explainer.source.loop.pair import Pair, find_pairs, runs
from explainer.source.program import Program
from explainer.source.tree import walk
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
        found = list(_read(pair, context.program))
        if found:
            network, name = min(before), pair.file.segment(found[0])
            yield Proposal(
                edits=tuple(put_method(pair.file, one, ".detach()") for one in found),
                culprit=culprit_of(
                    pair.file, found[0], f"goes back into `{network}`, whose own loss has used up the graph of `{name}`"
                ),
                belief=1.2 + (1.0 if is_crash(pair.file, pair.second.call, context) else 0.0),
            )


def _read(pair: Pair, program: Program) -> Iterator[ast.Name]:
    """The names of what is shared, where the second loss alone reads them with their graph."""
    names = {name for one in pair.shared for name in binds(one)}
    own = [one for one in (*pair.second_lines, pair.second.statement) if one not in pair.first_lines]
    for line in dict.fromkeys(own):
        for node in walk(line):
            above = pair.file.parents.get(node)
            is_cut = isinstance(above, ast.Attribute) and above.attr in ("detach", "shape", "size", "device", "dtype")
            is_read = isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) and node.id in names
            if is_read and isinstance(node, ast.Name) and not is_cut and not is_without_grad(node, pair.file, program):
                yield node
