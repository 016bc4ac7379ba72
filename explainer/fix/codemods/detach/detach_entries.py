"""A state that a step takes out of a store, or is handed, and writes back entry by entry, is detached in place behind the step.

    slot = self.slots[name]
    slot["h"] = self.cell(x, slot["h"])

No name carries it: the next step finds the same object, with the graph of this one.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from explainer.fix.clue.crash import fails_at
from explainer.fix.codemod import Context, Proposal, culprit_of, insert_after
from explainer.fix.graph.detachment import detached
from explainer.source.file import SourceFile
from explainer.source.loop.backward import Backward
from explainer.source.loop.update import end_of_step, find_turns
from explainer.source.name import dotted_name
from explainer.source.program import Program
from explainer.source.tree import walk
from explainer.source.value.entry import Entry, entries_in, has_graph, is_filled_first
from explainer.source.value.lineage import (
    Scope,
    before,
    binds,
    definitions,
    loops_of,
    reads,
    scope_of,
    sources,
    statements_of,
    value_of,
)
from explainer.source.value.nesting import nesting_of, nesting_of_entry

_LOOKS_UP = frozenset({"get", "setdefault"})
_HANDS_OUT = frozenset({"values", "items"})
_WHOLE = {"list": "{0}[:] = {1}", "dict": "{0}.update({1})"}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Round:
    """A backward with what its round does before it: in the innermost loop around, or in the whole function."""

    turn: Backward
    scope: Scope
    loop: ast.For | ast.While | None
    inside: tuple[ast.stmt, ...]
    program: Program


def propose(context: Context) -> Iterator[Proposal]:
    """An edit for each backward whose round has filled the entries of what it has not made, and reads them first."""
    if not context.has_failed:
        return
    for turn in find_turns(context.program):
        one = _round_of(turn, context.program)
        kept = list(_kept(one)) if one is not None else []
        lines = dict.fromkeys(_line(entry, statement, turn.file, context.program) for entry, statement in kept)
        if kept and None not in lines:
            entry, statement = kept[0]
            why = f"leaves `{entry.name}` to the next step with the graph of this one"
            yield Proposal(
                edits=(insert_after(turn.file, end_of_step(turn), "\n".join(filter(None, lines))),),
                culprit=culprit_of(turn.file, statement, why),
                belief=1.5 + (0.2 if fails_at(turn, context) else 0.0),
            )


def _round_of(turn: Backward, program: Program) -> _Round | None:
    scope, loop = scope_of(turn.statement, turn.file, program), next(loops_of(turn.statement, turn.file), None)
    if scope is None or (loop is None and isinstance(scope, ast.Module)):
        return None
    inside = tuple(
        one
        for one in statements_of(scope)
        if before(one, turn.statement) and (loop is None or loop in loops_of(one, turn.file))
    )
    return _Round(turn=turn, scope=scope, loop=loop, inside=inside, program=program)


def _kept(one: _Round) -> Iterator[tuple[Entry, ast.stmt]]:
    """The entries of what the round was handed that get a value with a graph, of which the loss and the next round are made."""
    file, turn, program = one.turn.file, one.turn, one.program
    parts = [turn.loss, *(part for _, part in sources(turn.loss, turn.statement, file, program))]
    read = set[str]().union(*(reads(part) for part in parts))
    for statement in one.inside:
        for entry in entries_in(statement):
            if entry.name not in read or not _is_handed(entry.name, statement, one):
                continue
            if is_filled_first(entry.name, one.inside, file) or _is_detached(entry.name, one.scope):
                continue
            if has_graph(entry.value, statement, file, program):
                yield entry, statement


def _is_handed(name: str, statement: ast.stmt, one: _Round) -> bool:
    """Whether a name stands for something that was there before the round: an argument, an attribute, what a store holds."""
    bound = [made for made in definitions(name, statement, one.scope) if name in binds(made)]
    if bound:
        return all((made in one.inside or made is one.loop) and _is_looked_up(made, name) for made in bound)
    arguments = getattr(one.scope, "args", None)
    given = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs] if arguments is not None else []
    return name.startswith("self.") or name in {each.arg for each in given}


def _is_looked_up(statement: ast.stmt, name: str) -> bool:
    """Whether a statement binds a name to what is held elsewhere: `slot = slots[key]`, `for slot in slots.values()`."""
    value = value_of(statement, name)
    method = value.func.attr if isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute) else ""
    if isinstance(statement, (ast.For, ast.AsyncFor)):
        return method in _HANDS_OUT  # a loop over anything else may hand out batches
    return method in _LOOKS_UP or isinstance(value, (ast.Subscript, ast.Attribute, ast.Name))


def _is_detached(name: str, scope: Scope) -> bool:
    """Whether the function detaches an entry of a name, or a part of it that a loop or comprehension hands out, already."""
    return any(
        isinstance(node, ast.Attribute) and node.attr in ("detach", "detach_")
        for one in statements_of(scope)
        if name in reads(one, graph=False)
        for node in walk(one)
    )


def _line(entry: Entry, statement: ast.stmt, file: SourceFile, program: Program) -> str | None:
    """The statement that detaches an entry in place; None where its name or nesting is not known."""
    place: ast.expr = entry.place
    while isinstance(place, (ast.Subscript, ast.Attribute)) and dotted_name(place.value) != entry.name:
        place = place.value
    if not isinstance(place, (ast.Subscript, ast.Attribute)):
        return None
    text = file.segment(place)
    if isinstance(place, ast.Attribute) or isinstance(place.slice, ast.Constant):
        own = place is entry.place
        nesting = nesting_of_entry(entry.place, statement, file, program) if own else nesting_of(place, file, program)
        return f"{text} = {detached(nesting, text)}" if own or nesting.is_container else None
    whole = nesting_of(place.value, file, program)
    form = _WHOLE.get(whole.kind)
    return form.format(entry.name, detached(whole, entry.name)) if form is not None else None
