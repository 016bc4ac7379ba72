"""A callback that steps a schedule listens to the event behind the optimizer's step, instead of one before it.

Only for the step that torch's warning names. A method, or a listener told by a word, that does nothing else moves as a whole; of
another the scheduler's step alone moves, into the method for the later event.
"""

from __future__ import annotations

import ast
import os
import re
from collections.abc import Iterator

from explainer.fix.codemod import Context, Proposal, culprit_of, edit_of, insert_after, remove_statement
from explainer.fix.loop.early_schedule import LATER, warned_steps
from explainer.fix.loop.listener import (
    Listener,
    is_asked_for,
    later_name,
    later_parameters,
    listener_at,
    method_of,
    rename_method,
    replace_parameters,
    told_by_word,
)
from explainer.model.patch import Edit
from explainer.source.loop.round import EarlyEvent, find_early
from explainer.source.loop.step import Act
from explainer.source.name import Function, dotted_name
from explainer.source.program import Program
from explainer.source.tree import walk
from explainer.source.value.lineage import root_of
from explainer.source.value.resolve import resolver_of

_STEP = "    "
_ASKS = re.compile(r"\bhasattr\s*\(|\bgetattr\s*\([^()\n]*,[^()\n]*,")


def propose(context: Context) -> Iterator[Proposal]:
    """An edit for each place that tells the callback of the step its event."""
    program = context.program
    for act in warned_steps(context.incident, program):
        listener = listener_at(act.file, act.statement, program)
        is_plain = isinstance(act.statement, ast.Expr) and not act.call.args and not act.call.keywords
        if listener is None or not is_plain:
            continue
        for early in find_early(program):
            place = f"{os.path.basename(early.file.path)}:{early.statement.lineno}"
            why = f"steps the schedule at `{early.event.name}`, which {place} calls before the optimizer's step"
            found = [*_told(early, listener, act, why, program), *_moved(early, listener, act, program)]
            for edits, belief in found:
                yield Proposal(
                    edits=edits,
                    culprit=culprit_of(act.file, act.call, why),
                    belief=belief,
                    applicability="unsafe",
                    because=LATER,
                    title=f"Step the schedule at `{early.later.name}`, behind the optimizer's step, instead of `{early.event.name}`",
                )


def _told(
    early: EarlyEvent, listener: Listener, act: Act, why: str, program: Program
) -> Iterator[tuple[tuple[Edit, ...], float]]:
    """The word that names the event, for a listener that does nothing but step the schedule."""
    if _does_only(listener.function, act, listener.owner):
        for edit, _, belief in told_by_word(early.event, early.later, listener, why, program):
            yield (edit,), belief


def _moved(
    early: EarlyEvent, listener: Listener, act: Act, program: Program
) -> Iterator[tuple[tuple[Edit, ...], float]]:
    """The method for the event gets the later one's name, or gives the later one the scheduler's step."""
    file, owner, method = listener.file, listener.owner, listener.function
    if owner is None or not isinstance(method, ast.FunctionDef) or method not in owner.body:
        return
    name = later_name(method.name, early.event, early.later, program)
    given = later_parameters(early.event, early.later, method, listener, program) if name else None
    statement = _whole(method, act, owner)
    if name is None or given is None or statement is None or is_asked_for(owner, method.name, program):
        return
    present, resolver = method_of(owner, name), resolver_of(program)
    inherited = [
        resolver.method(one[1], name, one[0]) for base in owner.bases if (one := resolver.find_class(base, file))
    ]
    text, removal = file.segment(statement), remove_statement(file, statement)
    if present is not None:
        last = present.body[-1]
        added = edit_of(file, last, text) if _is_filler(last) else insert_after(file, last, text)
        if not any(isinstance(one, (ast.Return, ast.Raise, ast.Yield)) for one in walk(present)):
            yield (removal, added), 1.8
    elif any(one is not None and not all(_is_filler(part) for part in one[1].body) for one in inherited):
        return
    elif _does_only(method, act, owner) and _may_lack(method.name, listener, program):
        edits = [rename_method(listener, method, name)]
        if given != ast.unparse(method.args):
            edits.append(replace_parameters(method, given, file))
        yield tuple(edits), 2.0
    else:
        yield (removal, insert_after(file, method, f"\ndef {name}({given}):\n{_STEP}{text}")), 1.8


def _does_only(function: Function, act: Act, owner: ast.ClassDef | None) -> bool:
    """Whether a function steps the schedule and does nothing else."""
    own = _whole(function, act, owner)
    return own is not None and all(one is own or _is_filler(one) for one in function.body)


def _whole(function: Function, act: Act, owner: ast.ClassDef | None) -> ast.stmt | None:
    """The statement of a function's body that steps: alone, for each of several, or under a choice made when the object was.

    None where what it depends on may be another behind the step, as a count of batches.
    """
    top: ast.AST = act.statement
    while top not in function.body:
        above = act.file.parents.get(top)
        if isinstance(above, ast.If) and not above.orelse and len(above.body) == 1:
            is_fixed = _is_fixed(above.test, owner)
        elif isinstance(above, ast.For) and not above.orelse and len(above.body) == 1:
            is_fixed = dotted_name(above.target) is not None and dotted_name(above.target) == root_of(act.subject)
        else:
            return None
        if not is_fixed:
            return None
        top = above
    return top if isinstance(top, ast.stmt) else None


def _is_fixed(test: ast.expr, owner: ast.ClassDef | None) -> bool:
    """Whether a test reads nothing but constants and what the constructor alone writes to the object."""
    init = method_of(owner, "__init__")
    written = {
        (dotted_name(one), init is not None and one in set(walk(init)))
        for one in (walk(owner) if owner is not None else ())
        if isinstance(one, ast.Attribute) and isinstance(one.ctx, ast.Store)
    }
    for one in walk(test):
        if isinstance(one, ast.Call) or (isinstance(one, ast.Name) and one.id != "self"):
            return False
        if isinstance(one, ast.Attribute) and (
            (dotted_name(one), False) in written or (dotted_name(one), True) not in written
        ):
            return False
    return True


def _is_filler(statement: ast.stmt) -> bool:
    is_constant = isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)
    return is_constant or isinstance(statement, ast.Pass)


def _may_lack(name: str, listener: Listener, program: Program) -> bool:
    """Whether the loop gets along with a callback without the method: a base has it, or the loop asks before it calls."""
    resolver, owner = resolver_of(program), listener.owner
    above = [resolver.find_class(base, listener.file) for base in (owner.bases if owner is not None else ())]
    if any(one is not None and resolver.method(one[1], name, one[0]) is not None for one in above):
        return True
    return any(_ASKS.search(file.text) for file in program.parsed())
