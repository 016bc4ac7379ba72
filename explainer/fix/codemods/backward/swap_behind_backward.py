"""An evaluation with other weights, which puts them in and the trained ones back, moves behind the backward that reads these.

`with ema.applied(): val = evaluate(net)` between a forward and its backward: copying weights in and back moves their versions,
though their values are what they were. Behind the backward it evaluates the same weights, and the step is the same.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from explainer.fix.clue.failure import is_written_once
from explainer.fix.clue.trace import traced_places
from explainer.fix.codemod import Context, Proposal, culprit_of, insert_after, lines_of, remove_statement
from explainer.model.trace import HIDDEN_WRITE, WRITE
from explainer.source.loop.backward import stepped
from explainer.source.loop.event import Gap, find_gaps
from explainer.source.loop.swap import swap_in
from explainer.source.name import bound_names
from explainer.source.tree import walk
from explainer.source.value.lineage import block_of, reads

_LEAVES = (ast.Return, ast.Break, ast.Continue, ast.Yield)


def propose(context: Context) -> Iterator[Proposal]:
    """An edit for each gap in which weights that a trace saw written are swapped."""
    if not context.has_failed or is_written_once(context):
        return
    seen: set[ast.stmt] = set()
    written = [statement for kind in (WRITE, HIDDEN_WRITE) for _, statement in traced_places(kind, context)]
    for statement in dict.fromkeys(written):
        for gap in find_gaps(context.program):
            moved = swap_in(gap, statement, context.program)
            if not moved or moved[0] in seen or not _may_move(moved, gap):
                continue
            seen.add(moved[0])
            text = "\n".join(lines_of(gap.file, one) for one in moved)
            yield Proposal(
                edits=(
                    *(remove_statement(gap.file, one) for one in moved),
                    insert_after(gap.file, gap.backward.statement, text),
                ),
                culprit=culprit_of(
                    gap.file, moved[0], "puts other weights in before this loss's backward reads the trained ones"
                ),
                belief=2.5,
            )


def _may_move(moved: Sequence[ast.stmt], gap: Gap) -> bool:
    """Whether the statements follow each other, nothing up to the backward reads what they bind, and none steps or leaves."""
    block = list(block_of(gap.backward.statement, gap.file))
    first, last, end = block.index(moved[0]), block.index(moved[-1]), block.index(gap.backward.statement)
    if last - first + 1 != len(moved):
        return False
    bound = {name for one in moved for node in walk(one) for name in bound_names(node)}
    read = {name for one in block[last + 1 : end + 1] for name in reads(one, graph=False)}
    inner = [node for one in moved for node in walk(one)]
    is_step = any(isinstance(node, ast.stmt) and stepped(node) for node in inner)
    return not bound & read and not is_step and not any(isinstance(node, _LEAVES) for node in inner)
