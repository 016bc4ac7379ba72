"""What computes a loss when its turn comes: the call that gave it, asked again, or the expression behind its names."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass

from explainer.source.file import SourceFile
from explainer.source.loop.repeatable import attributes_read, repeatable
from explainer.source.loop.update import find_updates, kept_by
from explainer.source.name import Function, dotted_name
from explainer.source.network.network import returned_losses, share_nothing
from explainer.source.program import Program
from explainer.source.tree import walk
from explainer.source.value.binding import Value
from explainer.source.value.lineage import Scope, binds, block_of, definitions, sources
from explainer.source.value.once import is_random
from explainer.source.value.resolve import resolver_of

_DEPTH = 4
Gone = dict[ast.stmt, set[ast.AST]]  # the statements of which losses took the text, with the names that stood for it


@dataclass(frozen=True, slots=True, kw_only=True)
class Turns:
    """A loop that goes back and steps in each round, the scope that it stands in, and the attributes that its rounds `keep`."""

    file: SourceFile
    program: Program
    scope: Scope
    loop: ast.For
    kept: frozenset[str]


def kept_in(block: Sequence[ast.stmt], program: Program) -> frozenset[str]:
    """The attributes that a block gives a new value, or a function does that goes back and steps for it."""
    inside = [one.keeps for one in find_updates(program) if any(one.call in walk(each) for each in block)]
    return frozenset[str]().union(*inside, *(kept_by(one) for one in block))


def asked_again(call: ast.Call, file: SourceFile, program: Program, kept: frozenset[str]) -> Function | None:
    """The function that a call runs, where a second call gives the losses of the same batch, and these share a network."""
    target = repeatable(call, file, program)
    if target is None or kept & attributes_read(target[1], target[0], program):
        return None
    returned = returned_losses(target[1])
    is_apart = returned is not None and share_nothing(returned[1], returned[0], target[0], program)
    return None if is_apart else target[1]


def rebinds(value: ast.AST, block: Sequence[ast.stmt]) -> bool:
    """Whether a block gives one of the names in a value another one."""
    names = {one.id for one in walk(value) if isinstance(one, ast.Name)}
    return any(names & binds(one) for each in block for one in walk(each) if isinstance(one, ast.stmt))


def may_wait(entries: Sequence[ast.expr], at: ast.stmt, turns: Turns) -> bool:
    """Whether losses can be computed later, by what no round changes but the weights, and any two share a network."""
    file, program = turns.file, turns.program
    parts = [part for one in entries for part in (one, *(each for _, each in sources(one, at, file, program)))]
    is_kept = any(turns.kept & attributes_read(one, file, program) for one in parts)
    return not is_kept and not share_nothing(entries, at, file, program)


def delayed(value: ast.expr, turns: Turns, gone: Gone, depth: int = 0) -> str | None:
    """The text of a loss with its names replaced by what they stand for, and `gone` told of it; None for no computation."""
    file = turns.file
    start, text = file.span(value)[0], file.segment(value)
    names = [node for node in walk(value) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)]
    is_changed = False
    for node in sorted(names, key=lambda one: -file.span(one)[0]):
        found = _stood_for(node, file.statement(value), turns, gone, depth) if depth < _DEPTH else None
        if found is None:
            continue
        made, inner = found
        first, last = file.span(node)
        is_whole = node is value or isinstance(made.value, (ast.Call, ast.Subscript, ast.Attribute))
        text = text[: first - start] + (inner if is_whole else f"({inner})") + text[last - start :]
        gone.setdefault(made, set()).add(node)
        is_changed = True
    return text if is_changed or any(isinstance(node, (ast.Call, ast.BinOp)) for node in walk(value)) else None


def _stood_for(node: ast.Name, at: ast.stmt, turns: Turns, gone: Gone, depth: int) -> tuple[ast.Assign, str] | None:
    """The statement that makes a name of a loss, and the text that computes it when its turn comes."""
    if _is_detached(node, turns.file):
        return None
    made = _written(node, at, turns)
    if made is None:
        return _asked(node, at, turns)
    text = delayed(made.value, turns, gone, depth + 1)
    return None if text is None or rebinds(made.value, turns.loop.body) else (made, text)


def _is_detached(node: ast.Name, file: SourceFile) -> bool:
    above = file.parents.get(node)
    return isinstance(above, ast.Attribute) and above.attr == "detach"


def _asked(node: ast.Name, at: ast.stmt, turns: Turns) -> tuple[ast.Assign, str] | None:
    """A name that a call gave which can be made again: `losses` of `losses = self.losses(batch)`, or one of several."""
    made = definitions(node.id, at, turns.scope)
    one = made[0] if len(made) == 1 else None
    block = list(block_of(at, turns.file))
    if not isinstance(one, ast.Assign) or one not in block or not isinstance(one.value, ast.Call):
        return None
    between = [*block[block.index(one) + 1 : block.index(at)], *turns.loop.body]
    if rebinds(one.value, between) or asked_again(one.value, turns.file, turns.program, turns.kept) is None:
        return None
    text, place = turns.file.segment(one.value), place_of(node.id, one)
    return None if place is None else (one, f"{text}{place}")


def place_of(name: str, made: ast.Assign) -> str | None:
    """How a name is taken out of what a statement unpacks: `[1]` of `critic_loss, actor_loss = ...`, nothing of `losses = ...`."""
    target = made.targets[0]
    if isinstance(target, ast.Tuple):
        parts = [dotted_name(each) for each in target.elts]
        return f"[{parts.index(name)}]" if name in parts and None not in parts else None
    return "" if isinstance(target, ast.Name) and len(made.targets) == 1 else None


def spare(entries: Sequence[ast.expr], gone: Gone, turns: Turns) -> list[ast.stmt]:
    """The statements that nothing reads any more once the losses hold the text of what they made."""
    left = list(gone)
    inside = {node for one in entries for node in walk(one)}
    replaced = {node for one in gone.values() for node in one}
    reads = [one for one in walk(turns.scope) if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Load)]
    while True:
        within = inside.union(*(walk(one) for one in left))
        kept = {one.id for one in reads if one not in replaced or one not in within}
        spared = [one for one in left if not binds(one) & kept]
        if spared == left:
            return left
        left = spared


def _written(node: ast.Name, at: ast.stmt, turns: Turns) -> ast.Assign | None:
    """The statement that makes a name in the block of the display: what nothing else reads, or comes out the same a second time."""
    made = definitions(node.id, at, turns.scope)
    one = made[0] if len(made) == 1 else None
    is_plain = isinstance(one, ast.Assign) and len(one.targets) == 1 and isinstance(one.targets[0], ast.Name)
    if not isinstance(one, ast.Assign) or not is_plain or one not in block_of(at, turns.file):
        return None
    if "\n" in turns.file.segment(one.value):
        return None
    reads = [
        each for each in walk(turns.scope) if isinstance(each, ast.Name) and each.id == node.id and each is not node
    ]
    return one if len(reads) == 1 or _is_same_again(one, node, turns) else None


def _is_same_again(made: ast.Assign, node: ast.Name, turns: Turns) -> bool:
    """Whether what makes a name can be computed a second time, where the loss reads it."""
    file, program, block = turns.file, turns.program, list(block_of(made, turns.file))
    calls = [one for one in walk(made.value) if isinstance(one, ast.Call)]
    targets = [one for one in calls if resolver_of(program).function_of(one, Value(one, file)) is not None]
    if not calls or is_random(made.value, file, program) or node.id in binds(turns.loop):
        return False
    if any(asked_again(one, file, program, turns.kept) is None for one in targets):
        return False
    return not rebinds(made.value, block[block.index(made) + 1 :])
