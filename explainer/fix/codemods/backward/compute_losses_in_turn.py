"""Losses that are computed together and then stepped one after another are each computed when their turn comes.

`for name, loss in self.losses(batch).items()` steps the critic before the actor's loss goes back through it: each round asks
`self.losses(batch)[name]` anew. Losses that stand in a display before the loop become functions that the round calls; without a
loop, the later loss is asked for again behind the step.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from explainer.fix.clue.crash import fails_at
from explainer.fix.codemod import Context, Proposal, culprit_of, edit_of, insert_before, remove_statement
from explainer.fix.loss.later import Gone, Turns, asked_again, delayed, kept_in, may_wait, place_of, rebinds, spare
from explainer.fix.text.rewrite import free_name
from explainer.model.patch import Edit
from explainer.source.file import SourceFile
from explainer.source.loop.backward import Backward
from explainer.source.loop.update import Update, does, find_turns, find_updates
from explainer.source.name import Function, dotted_name
from explainer.source.program import Program
from explainer.source.tree import walk
from explainer.source.value.binding import walk_scope
from explainer.source.value.lineage import (
    Scope,
    before,
    binds,
    block_of,
    definitions,
    loops_of,
    scope_of,
    statements_of,
)

_STALE = "modified by an inplace operation"
_LATER = (
    "each loss then goes through the networks that were stepped before its turn, as usual, and costs its own forward"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Turns(Turns):
    """A loop that hands out its losses: `place` is the key or index in `source` of that of a round."""

    loss: str
    source: ast.expr
    kind: str
    place: str | None


def propose(context: Context) -> Iterator[Proposal]:
    """An edit for each loop, or pair of steps, over losses that were computed together."""
    if not any(_STALE in one.message for one in context.incident.exceptions):
        return
    for backward in find_turns(context.program):
        found = next((one for find in _FORMS if (one := find(backward, context.program))), None)
        if found is not None:
            edits, guilty = found
            yield Proposal(
                edits=edits,
                culprit=culprit_of(backward.file, guilty, "computes every loss before the first network is stepped"),
                belief=1.2 + (0.8 if fails_at(backward, context) else 0.0),
                because=_LATER,
            )


Found = tuple[tuple[Edit, ...], ast.AST]


def _of_loop(backward: Backward, program: Program) -> Found | None:
    """The innermost loop around a backward whose round clears, goes back and steps."""
    file = backward.file
    scope = scope_of(backward.statement, file, program)
    loop = next(loops_of(backward.statement, file), None)
    if not isinstance(loop, ast.For) or scope is None or not _steps(loop.body, backward):
        return None
    turns = _turns(backward, loop, scope, program)
    if turns is None:
        return None
    made = _made(turns.source, loop, scope)
    if made is None:
        return None
    value, statement = made
    if isinstance(value, ast.Call):
        return _ask_in_each_round(turns, value)
    return _as_functions(turns, value, statement)


def _steps(body: Sequence[ast.stmt], backward: Backward) -> bool:
    """Whether a block clears gradients before a backward of it and steps an optimizer behind it, or what runs it does so."""
    if backward.statement not in body:
        return False
    where = list(body).index(backward.statement)
    own = backward if isinstance(backward, Update) else None
    clears = (own is not None and own.clears) or any(does(one, "zero_grad") for one in _plain(body[:where]))
    return clears and ((own is not None and own.steps) or any(does(one, "step") for one in body[where:]))


def _plain(block: Sequence[ast.stmt]) -> Iterator[ast.stmt]:
    """The statements of a block and of the loops in it: `for p in ...: p.grad = None` is none of ours."""
    for one in block:
        yield one
        if isinstance(one, (ast.For, ast.With)):
            yield from _plain(one.body)


def _turns(backward: Backward, loop: ast.For, scope: Scope, program: Program) -> _Turns | None:
    """How the loop hands out its losses; None where it does otherwise."""
    name = _loss_name(backward, loop)
    if name is None or any(name in binds(one) for one in loop.body):
        return None

    def turns(source: ast.expr, kind: str, place: str | None) -> _Turns:
        return _Turns(
            file=backward.file, program=program, scope=scope, loop=loop, loss=name, source=source, kind=kind, place=place,
            kept=kept_in(loop.body, program),
        )  # fmt: skip

    target, over = loop.target, loop.iter
    parts = [dotted_name(one) for one in target.elts] if isinstance(target, ast.Tuple) else []
    called = over.func if isinstance(over, ast.Call) else None
    if isinstance(called, ast.Attribute) and called.attr == "items" and parts[1:] == [name] and parts[0]:
        return turns(called.value, "items", parts[0])
    if isinstance(over, ast.Call) and isinstance(called, ast.Name) and name in parts:
        at = parts.index(name)
        if called.id == "zip" and len(over.args) == len(parts):
            return turns(over.args[at], "zip", None)
        if called.id == "enumerate" and at == 1 and len(over.args) == 1 and parts[0]:
            return turns(over.args[0], "enumerate", parts[0])
    if isinstance(over, (ast.Tuple, ast.List)) and name in parts:
        return turns(over, "pairs", str(parts.index(name)))
    return None


def _loss_name(backward: Backward, loop: ast.For) -> str | None:
    """The variable of the loop that is differentiated, as it is or weighted."""
    bound = {one.id for one in walk(loop.target) if isinstance(one, ast.Name)}
    read = [one.id for one in walk(backward.loss) if isinstance(one, ast.Name) and one.id in bound]
    return read[0] if len(read) == 1 else None


def _made(source: ast.expr, at: ast.stmt, scope: Scope) -> tuple[ast.expr, ast.stmt | None] | None:
    """The call or display that gives the losses, and the statement before the loop where it has a name."""
    if not isinstance(source, ast.Name):
        return (source, None) if isinstance(source, (ast.Call, ast.Dict, ast.List, ast.Tuple)) else None
    made = definitions(source.id, at, scope)
    one = made[0] if len(made) == 1 else None
    if not isinstance(one, ast.Assign) or not isinstance(one.targets[0], ast.Name) or len(one.targets) != 1:
        return None
    return (one.value, one) if isinstance(one.value, (ast.Call, ast.Dict, ast.List, ast.Tuple)) else None


def _ask_in_each_round(turns: _Turns, call: ast.Call) -> Found | None:
    """Losses that a function gives: each round asks the function for its own."""
    file, loop = turns.file, turns.loop
    function = asked_again(call, file, turns.program, turns.kept)
    if function is None or rebinds(call, loop.body):
        return None
    text, first = file.segment(call), loop.body[0]
    if turns.kind == "zip":
        index = free_name("index", turns.scope)
        header = [
            edit_of(file, loop.target, f"{index}, ({_bare(file, loop.target)})"),
            edit_of(file, loop.iter, f"enumerate({file.segment(loop.iter)})"),
        ]
        return (*header, insert_before(file, first, f"{turns.loss} = {text}[{index}]")), loop.iter
    keys = _keys(function) if turns.kind == "items" and turns.source is call else None
    header = []
    if keys is not None:
        header = [edit_of(file, loop.target, str(turns.place)), edit_of(file, loop.iter, f"({', '.join(keys)})")]
    return (*header, insert_before(file, first, f"{turns.loss} = {text}[{turns.place}]")), loop.iter


def _bare(file: SourceFile, target: ast.expr) -> str:
    return file.segment(target).removeprefix("(").removesuffix(")")


def _keys(function: Function) -> list[str] | None:
    """The keys of the one dictionary that a function returns, as they are written."""
    returned = [one.value for one in walk_scope(function) if isinstance(one, ast.Return)]
    made = returned[0] if len(returned) == 1 else None
    if not isinstance(made, ast.Dict) or len(made.keys) < 2:
        return None
    keys = [one.value for one in made.keys if isinstance(one, ast.Constant) and isinstance(one.value, str)]
    return [f'"{one}"' for one in keys] if len(keys) == len(made.keys) and not any('"' in one for one in keys) else None


def _as_functions(turns: _Turns, value: ast.expr, statement: ast.stmt | None) -> Found | None:
    """Losses in a display: each becomes a function without arguments, which its round calls."""
    file, loop = turns.file, turns.loop
    entries = _entries(value, turns)
    if len(entries) < 2 or (statement is not None and _is_read_elsewhere(turns, statement)):
        return None
    if not may_wait(entries, statement or loop, turns):
        return None
    edits: list[Edit] = []
    gone: Gone = {}
    for entry in entries:
        text = delayed(entry, turns, gone)
        if text is None or isinstance(entry, ast.Lambda) or rebinds(entry, loop.body):
            return None
        edits.append(edit_of(file, entry, f"lambda: {text}"))
    edits += [remove_statement(file, one) for one in spare(entries, gone, turns)]
    edits.append(insert_before(file, loop.body[0], f"{turns.loss} = {turns.loss}()"))
    return tuple(edits), statement or loop.iter


def _entries(value: ast.expr, turns: _Turns) -> list[ast.expr]:
    """The losses of a display; of one of pairs what stands in each at the place of the loss."""
    entries = value.values if isinstance(value, ast.Dict) else getattr(value, "elts", [])
    if turns.kind != "pairs":
        return list(entries)
    at = int(turns.place or 0)
    pairs = [one for one in entries if isinstance(one, ast.Tuple) and len(one.elts) > at]
    return [one.elts[at] for one in pairs] if len(pairs) == len(entries) else []


def _is_read_elsewhere(turns: _Turns, statement: ast.stmt) -> bool:
    names = binds(statement)
    return any(
        isinstance(node, ast.Name) and node.id in names and isinstance(node.ctx, ast.Load) and node is not turns.source
        for node in walk(turns.scope)
    )


def _of_block(backward: Backward, program: Program) -> Found | None:
    """A later backward of one block: its loss is asked for again behind the step before it."""
    file, at = backward.file, backward.statement
    scope = scope_of(at, file, program)
    block = list(block_of(at, file))
    is_part = isinstance(backward.loss, (ast.Subscript, ast.Attribute))
    root = backward.loss.value if isinstance(backward.loss, (ast.Subscript, ast.Attribute)) else backward.loss
    if scope is None or at not in block or not isinstance(root, ast.Name):
        return None
    made = definitions(root.id, at, scope)
    one = made[0] if len(made) == 1 else None
    if not isinstance(one, ast.Assign) or one not in block or not isinstance(one.value, ast.Call):
        return None
    since = block[block.index(one) + 1 : block.index(at)]
    step = next((each for each in reversed(since) if _is_step(each, program)), None)
    if step is None or not _is_cleared(backward, since[since.index(step) + 1 :]):
        return None
    if rebinds(one.value, [*since, at]) or not _goes_back(step, one, block, program):
        return None
    if asked_again(one.value, file, program, kept_in([*since, at], program)) is None:
        return None
    if is_part:
        return (edit_of(file, root, file.segment(one.value)),), one
    place = place_of(root.id, one)
    reads = [each for each in _between(step, at, scope) if _reads(root.id, each)]
    if not place or not reads or reads[0] not in block:
        return None
    return (insert_before(file, reads[0], f"{root.id} = {file.segment(one.value)}{place}"),), one


def _is_step(statement: ast.stmt, program: Program) -> bool:
    return does(statement, "step") or any(one.steps and one.statement is statement for one in find_updates(program))


def _is_cleared(backward: Backward, since: Sequence[ast.stmt]) -> bool:
    """Whether gradients are cleared between a step and a backward, or by the function that runs it."""
    return any(does(one, "zero_grad") for one in since) or (isinstance(backward, Update) and backward.clears)


def _of_key(backward: Backward, program: Program) -> Found | None:
    """A loop over the optimizers, or their names, whose round takes its loss from a dictionary made before: `losses[name]`."""
    file = backward.file
    scope, loop = scope_of(backward.statement, file, program), next(loops_of(backward.statement, file), None)
    if scope is None or not isinstance(loop, ast.For) or not _steps(loop.body, backward):
        return None
    loss = _taken(backward, loop, scope)
    made = _made(loss.value, loop, scope) if loss is not None else None
    value, statement = made if made is not None else (None, None)
    if loss is None or not isinstance(loss.value, ast.Name) or statement is None or _is_written(loss.value.id, loop):
        return None
    held = f"{loss.value.id}[{file.segment(loss.slice)}]"
    turns = Turns(file=file, program=program, scope=scope, loop=loop, kept=kept_in(loop.body, program))
    if isinstance(value, ast.Call):
        is_open = asked_again(value, file, program, turns.kept) is None or rebinds(value, loop.body)
        asked = f"{file.segment(value)}[{file.segment(loss.slice)}]"
        return None if is_open else ((insert_before(file, loop.body[0], f"{held} = {asked}"),), statement)
    if not isinstance(value, ast.Dict) or not _can_wait(value.values, statement, turns):
        return None
    edits = [edit_of(file, one, _as_function(one, file)) for one in value.values]
    return (*edits, insert_before(file, loop.body[0], f"{held} = {held}()")), statement


def _is_written(name: str, loop: ast.For) -> bool:
    """Whether a round gives a name, or an entry of it, another value."""
    return any(
        isinstance(one, (ast.Name, ast.Subscript)) and isinstance(one.ctx, ast.Store) and _root(one) == name
        for one in walk(loop)
    )


def _can_wait(entries: Sequence[ast.expr], at: ast.stmt, turns: Turns) -> bool:
    """Whether the entries of a display are all computed there, and may be later."""
    is_computed = len(entries) > 1 and all(isinstance(one, (ast.Call, ast.BinOp, ast.UnaryOp)) for one in entries)
    return is_computed and not any(rebinds(one, turns.loop.body) for one in entries) and may_wait(entries, at, turns)


def _taken(backward: Backward, loop: ast.For, scope: Scope) -> ast.Subscript | None:
    """What a round differentiates, `losses[name]` or `losses[f"{name}_loss"]`, as it is or by a name of the round."""
    loss: ast.expr | None = backward.loss
    if isinstance(loss, ast.Name):
        made = definitions(loss.id, backward.statement, scope)
        loss = made[0].value if len(made) == 1 and made[0] in loop.body and isinstance(made[0], ast.Assign) else None
    if not isinstance(loss, ast.Subscript):
        return None
    targets = {one.id for one in walk(loop.target) if isinstance(one, ast.Name)}
    names = {one.id for one in walk(loss.slice) if isinstance(one, ast.Name)}
    is_call = any(isinstance(one, ast.Call) for one in walk(loss.slice))
    return loss if names & targets and not is_call and not rebinds(loss.slice, loop.body) else None


def _as_function(node: ast.expr, file: SourceFile) -> str:
    """What computes a value when it is called: `critic_loss` of `critic_loss()`."""
    is_plain = isinstance(node, ast.Call) and not node.args and not node.keywords and dotted_name(node.func) is not None
    return file.segment(node.func) if is_plain and isinstance(node, ast.Call) else f"lambda: {file.segment(node)}"


def _root(node: ast.expr) -> str | None:
    node = node.value if isinstance(node, ast.Subscript) else node
    return node.id if isinstance(node, ast.Name) else None


_FORMS = (_of_loop, _of_block, _of_key)


def _goes_back(step: ast.stmt, made: ast.stmt, block: Sequence[ast.stmt], program: Program) -> bool:
    """Whether an earlier loss of the same call is sent back before the step, or by it."""
    names = binds(made)
    between = block[block.index(made) + 1 : block.index(step) + 1]
    losses = [one.loss for one in find_turns(program) if one.statement in between]
    return any(_reads(name, loss) for name in names for loss in losses)


def _between(first: ast.stmt, last: ast.stmt, scope: Scope) -> list[ast.stmt]:
    return [one for one in statements_of(scope) if before(first, one) and (before(one, last) or one is last)]


def _reads(name: str, node: ast.AST) -> bool:
    return any(isinstance(one, ast.Name) and one.id == name and isinstance(one.ctx, ast.Load) for one in walk(node))
