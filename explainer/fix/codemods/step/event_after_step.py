"""A callback that changes weights listens to the event after the step, instead of one between a forward and its backward.

The event is written where the callback gets it: in a configuration file, in the call that makes or registers it, in its
class, or as the name of its method. Only for the callback whose write a trace saw, and where the loop has such an event.
"""

from __future__ import annotations

import ast
import os
from collections.abc import Iterator

from explainer.fix.clue.trace import traced_places
from explainer.fix.codemod import Context, Proposal, culprit_of
from explainer.fix.loop.listener import (
    Listener,
    is_asked_for,
    later_parameters,
    listener_at,
    method_of,
    registered,
    rename_method,
    replace_parameters,
    told_by_word,
)
from explainer.model.finding import Culprit
from explainer.model.patch import Edit
from explainer.model.trace import WRITE
from explainer.source.file import SourceFile
from explainer.source.loop.event import Event, event_of, find_gaps, later_event
from explainer.source.program import Program
from explainer.source.value.callee import leads_to

_LATER = "the weights change after the step instead of before the backward: once more after the last step, not before the first"


def propose(context: Context) -> Iterator[Proposal]:
    """An edit for each place that tells the writing callback its event."""
    if not context.has_failed:
        return
    program = context.program
    for file, statement in traced_places(WRITE, context):
        for gap in find_gaps(program):
            for one in gap.between:
                event = event_of(one)
                later = later_event(event, gap, alike=False) if event is not None else None
                if event is None or later is None:
                    continue
                place = f"{os.path.basename(gap.file.path)}:{one.lineno}"
                for listener in _listeners(file, statement, event, program):
                    for edits, culprit, belief in _subscriptions(event, later, listener, place, program):
                        yield Proposal(
                            edits=edits,
                            culprit=culprit,
                            belief=belief,
                            applicability="unsafe",
                            because=_LATER,
                            title=f"Run the callback at `{later.name}`, behind the step, instead of `{event.name}`",
                        )


def _listeners(file: SourceFile, statement: ast.stmt, event: Event, program: Program) -> Iterator[Listener]:
    """What wrote, and each callback whose method for the event leads to the write: an evaluation that swaps weights."""
    own = listener_at(file, statement, program)
    if own is not None:
        yield own
    for where in program.parsed():
        for owner in program.names(where).classes.values():
            method = method_of(owner, event.name) or method_of(owner, "__call__")
            if method is None or (own is not None and owner is own.owner):
                continue
            if leads_to(statement, method, where, program):
                names = frozenset({owner.name} | set(registered({owner.name}, program)))
                yield Listener(file=where, function=method, owner=owner, names=names)


def _subscriptions(
    event: Event, later: Event, listener: Listener, place: str, program: Program
) -> Iterator[tuple[tuple[Edit, ...], Culprit, float]]:
    """Every edit that moves the listener to the later event: of a word, or of the name of its method."""
    why = f"runs at `{event.name}`, which {place} calls between a forward and its backward"
    if event.call == later.call:
        for edit, culprit, belief in told_by_word(event, later, listener, why, program):
            yield (edit,), culprit, belief
    method = method_of(listener.owner, event.name)
    is_free = method_of(listener.owner, later.name) is None and not is_asked_for(listener.owner, event.name, program)
    given = later_parameters(event, later, method, listener, program) if method is not None else None
    if method is not None and given is not None and is_free:
        edits = [rename_method(listener, method, later.name)]
        if given != ast.unparse(method.args):
            edits.append(replace_parameters(method, given, listener.file))
        yield tuple(edits), culprit_of(listener.file, method, why), 1.8
