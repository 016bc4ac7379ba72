"""The events of a training loop: what it calls by name between a forward and its backward, and what after the step."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from explainer.source.file import SourceFile
from explainer.source.loop.backward import Backward, find_backwards, stepped
from explainer.source.name import dotted_name
from explainer.source.program import Program
from explainer.source.tree import walk
from explainer.source.value.lineage import before, block_of, lineage


@dataclass(frozen=True, slots=True, kw_only=True)
class Gap:
    """What a loop does between a forward and its backward (`between`), and behind the step that follows (`after`)."""

    backward: Backward
    between: tuple[ast.stmt, ...]
    step: ast.stmt
    after: tuple[ast.stmt, ...]

    @property
    def file(self) -> SourceFile:
        """The file of the loop."""
        return self.backward.file


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """A call that names what happens: `self.fire("after_loss")`, `callback.after_loss(self)`. `call` is all but the name."""

    name: str
    call: tuple[str, ...]
    node: ast.Constant | ast.Attribute


def find_gaps(program: Program) -> Iterator[Gap]:
    """The gap of each backward that a step follows in its block."""
    for backward in find_backwards(program):
        if not backward.is_plain:
            continue
        made, statements = between(backward, program)
        block = list(block_of(backward.statement, backward.file))
        at = block.index(backward.statement)
        step = next((one for one in block[at + 1 :] if _steps(one)), None)
        if made and step is not None:
            yield Gap(
                backward=backward,
                between=statements,
                step=step,
                after=tuple(block[block.index(step) + 1 :]),
            )


def between(backward: Backward, program: Program) -> tuple[tuple[ast.stmt, ...], tuple[ast.stmt, ...]]:
    """What a backward's loss is made by in its block, and what else stands between the first of that and the backward."""
    block = list(block_of(backward.statement, backward.file))
    kept = _kept(backward, block)
    loss, at = (kept.value, kept) if kept is not None else (backward.loss, backward.statement)
    made = [one for one in [*lineage(loss, at, backward.file, program), *([kept] if kept else [])] if one in block]
    above = block[: block.index(backward.statement)] if made else ()
    return tuple(made), tuple(one for one in above if before(made[0], one) and one not in made)


def _kept(backward: Backward, block: list[ast.stmt]) -> ast.Assign | None:
    """The statement that keeps the loss on an object before its backward: `state.loss = ...`."""
    name = dotted_name(backward.loss) if isinstance(backward.loss, ast.Attribute) else None
    above = block[: block.index(backward.statement)] if name is not None else []
    found = [
        one for one in above if isinstance(one, ast.Assign) and any(dotted_name(each) == name for each in one.targets)
    ]
    return found[-1] if found else None


def _steps(statement: ast.stmt) -> bool:
    return any(isinstance(one, ast.stmt) and stepped(one) for one in walk(statement))


def event_of(statement: ast.stmt) -> Event | None:
    """The event that a statement calls, also in a loop over those who listen."""
    if isinstance(statement, (ast.For, ast.AsyncFor)) and len(statement.body) == 1 and not statement.orelse:
        inner = event_of(statement.body[0])
        over = ("for", ast.dump(statement.target), ast.dump(statement.iter))
        return Event(name=inner.name, call=(*over, *inner.call), node=inner.node) if inner is not None else None
    call = statement.value if isinstance(statement, ast.Expr) else None
    if not isinstance(call, ast.Call):
        return None
    words = [one for one in call.args if isinstance(one, ast.Constant) and isinstance(one.value, str)]
    rest = tuple(ast.dump(one) for one in (*call.args, *call.keywords) if one not in words)
    if len(words) == 1:
        return Event(name=str(words[0].value), call=("word", ast.dump(call.func), *rest), node=words[0])
    func = call.func
    if words or not isinstance(func, ast.Attribute) or (isinstance(func.value, ast.Name) and func.value.id == "self"):
        return None
    return Event(name=func.attr, call=("method", ast.dump(func.value), *rest), node=func)


def later_event(event: Event, gap: Gap, *, alike: bool = True) -> Event | None:
    """The first event of the same kind that the loop calls behind the step; unless `alike`, its arguments may be others."""
    found = (event_of(one) for one in gap.after)
    return next(
        (one for one in found if one is not None and is_kin(one, event) and (one.call == event.call or not alike)), None
    )


def is_kin(one: Event, other: Event) -> bool:
    """Whether two events of different names are called by the same, their other arguments aside."""
    lead = 5 if other.call[0] == "for" else 2
    return one.name != other.name and one.call[:lead] == other.call[:lead]
