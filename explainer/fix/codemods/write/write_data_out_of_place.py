"""`origins = origins + shift` for `origins += shift`, where a trace saw a later step take up what the write gave a graph.

What a function is handed may be a view of the data set: written in place, the data itself has the graph of that step from then on,
and the next batch begins with it. The values are wrong too, as each epoch adds to them. An attribute that is written is a state.
"""

from __future__ import annotations

from collections.abc import Iterator

from explainer.fix.clue.trace import traced_statements
from explainer.fix.codemod import Context, Proposal, culprit_of
from explainer.fix.write.out_of_place import out_of_place
from explainer.model.trace import CARRIED
from explainer.source.graph.alias import is_for_others
from explainer.source.graph.write import AUGMENTED, METHOD, find_writes
from explainer.source.tree import walk

_WHY = "writes a graph into what it was handed, which a later step takes up: data that is kept"


def propose(context: Context) -> Iterator[Proposal]:
    """An edit for each write of a name on a line whose result a later step took up."""
    if not context.has_failed:
        return
    writes = [one for one in find_writes(context.program) if one.kind in (AUGMENTED, METHOD)]
    for line, file, statement in traced_statements(CARRIED, context, guesses=True):
        if not line.operation.endswith("_"):
            continue
        inside = set(walk(statement))
        for write in (one for one in writes if one.file is file and one.node in inside):
            is_state = write.name is None or "." in write.name or is_for_others(write, context.program)
            edits = () if is_state else out_of_place(write)
            if edits:
                yield Proposal(edits=edits, culprit=culprit_of(file, write.node, _WHY), belief=3.2, is_origin=True)
