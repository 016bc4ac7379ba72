"""A copy for a log gets a name of its own, not the entry that a loss reads: `kept = out["h"].detach()` for `out["h"] = out["h"].detach()`.

A hook or a callback that writes a copy without a graph back into the dictionary, list or object that it was given changes it for all
who read it later. Only where a trace saw that what is written keeps parameters from their gradient.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from explainer.fix.clue.trace import traced_statements
from explainer.fix.codemod import Context, Proposal, culprit_of
from explainer.fix.graph.beside_entry import beside_entry, records_at
from explainer.model.patch import Edit
from explainer.model.trace import CUT, DEAD_TERM, STARVING_CUT, TracedLine
from explainer.source.graph.overwritten import Overwrite
from explainer.source.value.binding import Scope, scope_of


def propose(context: Context) -> Iterator[Proposal]:
    """One edit for all traced overwrites: none of them is right without the others."""
    seen = dict(_traced(context))
    groups: dict[tuple[Scope, str], list[Overwrite]] = {}
    for one in seen:
        groups.setdefault((scope_of(one.statement, one.file), ast.unparse(one.container)), []).append(one)
    edits: dict[Edit, None] = {}
    led: Overwrite | None = None
    for group in groups.values():
        own = beside_entry(group, context.program)
        edits.update(dict.fromkeys(own))
        led = led or (group[0] if own else None)
    if led is not None:
        line, statement = seen[led]
        yield Proposal(
            edits=tuple(edits),
            culprit=culprit_of(led.file, led.statement, line.says),
            belief=2.0,
            is_origin=statement is not led.statement or line.is_guess,
        )


def _traced(context: Context) -> Iterator[tuple[Overwrite, tuple[TracedLine, ast.stmt]]]:
    """The overwrites whose copy is made where a trace saw a graph end."""
    for kind in (STARVING_CUT, CUT, DEAD_TERM):
        # Of several lines that starve the same parameters none is right alone: here all are cured together. Nor can a sum take the
        # tensor for the number that was read, once the number stands in its place.
        for line, file, statement in traced_statements(kind, context, guesses=kind != CUT):
            for one in records_at(statement, file, context.program):
                yield one, (line, statement)
