"""A collective that only some ranks come to is run by all: `dist.all_reduce(x)` before `if rank == 0:`, a barrier behind it.

What it reads and the branch makes goes with it. Behind `if rank != 0: return` those that return wait at the barrier too.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from explainer.fix.clue.crash import crash_places
from explainer.fix.codemod import Context, Proposal, culprit_of, edit_of, insert_after, insert_before, remove_statement
from explainer.model.patch import Edit
from explainer.source.loop.rank_branch import Alone, collectives_alone
from explainer.source.tree import walk
from explainer.source.value.lineage import binds, changes, reads


def propose(context: Context) -> Iterator[Proposal]:
    """An edit for each collective that stands where some ranks do not come, first for one that a failing rank was in."""
    if not context.has_failed:
        return
    failing = {id(statement) for _, statement in crash_places(context)}
    for one in collectives_alone(context.program):
        is_near = any(id(node) in failing for node in walk(one.anchor)) or id(one.statement) in failing
        edits = tuple(_joined(one) if one.waits else _moved(one))
        yield Proposal(
            edits=edits,
            culprit=culprit_of(
                one.file, one.statement, "is a collective that some ranks never come to, while the others wait in it"
            ),
            belief=2.4 if is_near else 1.6,
            is_origin=True,
        )


def _joined(one: Alone) -> Iterator[Edit]:
    """The barrier behind the branch; before the `return` of those that leave."""
    text = one.file.segment(one.statement)
    if one.rest is not one.anchor.body and not one.anchor.orelse:
        yield insert_before(one.file, one.anchor.body[-1], text)
        return
    yield from _without([one.statement], one)
    yield insert_after(one.file, one.anchor, text)


def _moved(one: Alone) -> Iterator[Edit]:
    """The collective before the branch, with the assignments of the branch that it needs; none where it needs something else."""
    moved = _needed(one.statement, one.rest)
    if moved is None or any(each.lineno != each.end_lineno for each in moved):
        return
    yield insert_before(one.file, one.anchor, "\n".join(one.file.segment(each) for each in moved))
    yield from _without(moved, one)


def _needed(statement: ast.stmt, rest: Sequence[ast.stmt]) -> list[ast.stmt] | None:
    """A statement with the assignments before it in its block that make what it reads, in their order; None where others do."""
    moved, wanted = [statement], reads(statement, graph=False)
    for one in reversed(rest[: rest.index(statement)]):
        made = {name for node in walk(one) if isinstance(node, ast.stmt) for name in binds(node) | changes(node)}
        if not made & wanted:
            continue
        if not isinstance(one, ast.Assign):
            return None
        moved.insert(0, one)
        wanted |= reads(one, graph=False)
    return moved


def _without(moved: Sequence[ast.stmt], one: Alone) -> Iterator[Edit]:
    """The edits that take statements out of their block; the whole branch where nothing is left in it."""
    if one.rest is one.anchor.body and len(moved) == len(one.rest) and not one.anchor.orelse:
        yield remove_statement(one.file, one.anchor)
    elif len(moved) == len(one.rest):
        yield edit_of(one.file, moved[0], "pass")
        yield from (remove_statement(one.file, each) for each in moved[1:])
    else:
        yield from (remove_statement(one.file, each) for each in moved)
