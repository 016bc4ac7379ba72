"""What hooks, or modules themselves, collect for the loss of a step is emptied where the next step begins: `penalty.outputs.clear()`.

Not behind the loss: what looks at the last outputs later in the round still finds them. A method of the program that would
empty it, and that nothing calls, is called there.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from explainer.fix.clue.trace import traced_statements
from explainer.fix.codemod import Context, Proposal, culprit_of, insert_before
from explainer.model.patch import Edit
from explainer.model.trace import TAKEN
from explainer.source.hook.collection import Collection
from explainer.source.hook.registration import method_of
from explainer.source.hook.unemptied import Cleared, Collected, Start, find_collected
from explainer.source.tree import walk
from explainer.source.value.binding import bounds_of, scope_of
from explainer.source.value.container import SUM, TABLE

_ELSEWHERE = "what was collected is also read elsewhere, where it is one step's then"
_NAMES = ("outputs", "collected", "entries", "kept")


def propose(context: Context) -> Iterator[Proposal]:
    """An edit for each collection that ties steps together, and the line that reads it as a whole."""
    if not context.has_failed:
        return
    taken = {statement for _, _, statement in traced_statements(TAKEN, context, guesses=True)}
    for one in find_collected(context.program):
        added = one.collection.additions[0]
        what = added.file.segment(added.target)
        edits = _edits(one)
        belief = 3.0 if edits else 1.0
        if taken:
            belief += 1.0 if _is_taken(one, taken) else -1.0
        yield Proposal(
            edits=edits,
            culprit=culprit_of(
                added.file, added.node, f"each forward adds its graph to `{what}`, which nothing empties"
            ),
            belief=belief,
            applicability="unsafe" if one.is_read_elsewhere else None,
            because=_ELSEWHERE if one.is_read_elsewhere else None,
        )
        why = "reads all that was collected since the beginning, graphs of earlier steps included"
        yield Proposal(edits=(), culprit=culprit_of(one.read.file, one.read.statement, why), belief=belief - 0.5)


def _is_taken(one: Collected, taken: set[ast.stmt]) -> bool:
    """Whether a trace saw the statement that reads the collection, or one in its loop, take up an earlier step's graph."""
    return bool(taken & {node for node in walk(one.read.statement) if isinstance(node, ast.stmt)})


def _edits(one: Collected) -> tuple[Edit, ...]:
    start = one.start
    if start is None:
        return ()
    lines = [line for each in start.cleared for line in _lines(each, start)]
    return (insert_before(start.file, start.statement, "\n".join(lines)),)


def _lines(one: Cleared, start: Start) -> list[str]:
    """The statements that empty one collection, if there is one, or those that several objects have."""
    each = one.called.each
    if each is None:
        lines = _emptied(one.called.text, one, start)
    else:
        name = _free((each.name, f"_{each.name}"), start)
        lines = _emptied(f"{name}.{each.rest}", one, start)
        if each.method == "modules":
            lines = [f'if hasattr({name}, "{each.rest.partition(".")[0]}"):', *_indented(lines)]
        over = f"{one.called.text}.{each.method}()" if each.method else one.called.text
        lines = [f"for {name} in {over}:", *_indented(lines)]
    for needed in one.called.needed:
        lines = [f"if {needed} is not None:", *_indented(lines)]
    return lines


def _indented(lines: list[str]) -> list[str]:
    return [f"    {line}" for line in lines]


def _emptied(name: str, one: Cleared, start: Start) -> list[str]:
    """What makes a collection as it was at the beginning: its lists empty, or a dictionary that gets them in each step."""
    owner, _, _ = name.rpartition(".")
    if one.method is not None and owner:
        return [f"{owner}.{one.method}()"]
    containers = one.collection.containers
    if containers[0].form == SUM:
        made = containers[0].made
        is_plain = isinstance(made, ast.Constant)
        return [f"{name} = {containers[0].file.segment(made) if is_plain else f'{name}.new_zeros({name}.shape)'}"]
    if all(not each.is_nested for each in containers) or _makes_lists(one.collection):
        return [f"{name}.clear()"]
    each = _free(_NAMES, start)
    values = ".values()" if any(one.is_dictionary for one in containers) else ""
    return [f"for {each} in {name}{values}:", f"    {each}.clear()"]


def _free(names: Sequence[str], start: Start) -> str:
    """The first of some names that the function of a step does not bind; what a comprehension binds is its own."""
    bounds = bounds_of(scope_of(start.statement, start.file))
    bound = {one.name for one in bounds if not isinstance(one.statement, ast.comprehension)}
    return next((one for one in names if one not in bound), "_outputs")


def _makes_lists(collection: Collection) -> bool:
    """Whether a dictionary gets its lists as the hooks add to them: no closure holds one, and none is looked up that is not there."""
    is_default = all(
        each.form == TABLE and isinstance(each.made, ast.Call) and each.made.args for each in collection.containers
    )
    return all(
        method_of(each.target) == "setdefault" or (is_default and isinstance(each.target, ast.Subscript))
        for each in collection.additions
    )
