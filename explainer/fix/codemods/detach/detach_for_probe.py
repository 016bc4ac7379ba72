"""A probe takes what the network makes as data: `self.probe(features.detach())`.

A probe watches a representation while it forms, by labels that must not shape it. Its loss meets the graph that the network's own
loss has used up; kept or summed, the labels would train the network.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from explainer.fix.clue.failure import failing_statements
from explainer.fix.codemod import Context, Proposal, culprit_of
from explainer.fix.text.rewrite import put_method
from explainer.source.name import dotted_name
from explainer.source.tree import walk
from explainer.source.value.binding import Value
from explainer.source.value.lineage import scope_of
from explainer.source.value.provenance import provenance_of

_PROBE = re.compile(
    r"(?:^|_)(?:linear_?|online_?)?probes?(?:_|\d|$)|(?:^|_)online_(?:head|classifier|eval)|linear_eval", re.IGNORECASE
)


def propose(context: Context) -> Iterator[Proposal]:
    """An edit for each run of a probe on a graph, in the function whose backward failed."""
    if not context.has_failed:
        return
    for file, statement in failing_statements(context)[:1]:
        scope = scope_of(statement, file, context.program)
        for call in walk(scope) if scope is not None else ():
            name = (dotted_name(call.func) or "").rpartition(".")[2] if isinstance(call, ast.Call) else ""
            if not isinstance(call, ast.Call) or len(call.args) != 1 or not _PROBE.search(name):
                continue
            (given,) = call.args
            if provenance_of(context.program).trace(Value(given, file)).live:
                yield Proposal(
                    edits=(put_method(file, given, ".detach()"),),
                    culprit=culprit_of(file, call, f"lets the loss of `{name}` go back into what it watches"),
                    belief=2.6,
                )
