"""Losses that are computed together and then stepped one after another are each computed when their turn comes.

`for name, loss in self.losses(batch).items()` steps the critic before the actor's loss goes back through it: each round asks
`self.losses(batch)[name]` anew. Losses that stand in a display before the loop become functions that the round calls; without a
loop, the later loss is asked for again behind the step.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from explainer.fix.codemod import Context, Proposal, culprit_of, edit_of, insert_before, remove_statement
from explainer.fix.crash import is_crash
from explainer.fix.rewrite import free_name
from explainer.model.patch import Edit
from explainer.source.backward import Backward, find_backwards
from explainer.source.binding import Value, bounds_of, walk_scope
from explainer.source.file import SourceFile
from explainer.source.lineage import Scope, before, binds, block_of, definitions, loops_of, scope_of, statements_of
from explainer.source.name import Function, dotted_name
from explainer.source.program import Program
from explainer.source.resolve import resolver_of
from explainer.source.tree import walk

_STALE = "modified by an inplace operation"
_LATER = (
    "each loss then goes through the networks that were stepped before its turn, as usual, and costs its own forward"
)
_TAKES = frozenset(
    {"next", "pop", "popleft", "popitem", "append", "add", "update", "extend", "shuffle", "write", "save", "put"}
)
_DEPTH = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class _Turns:
    """A loop that goes back and steps in each round, and the loss of a round: `place` is its key or index in `source`."""

    file: SourceFile
    program: Program
    scope: Scope
    loop: ast.For
    loss: str
    source: ast.expr
    kind: str
    place: str | None


def propose(context: Context) -> Iterator[Proposal]:
    """An edit for each loop, or pair of steps, over losses that were computed together."""
    if not any(_STALE in one.message for one in context.incident.exceptions):
        return
    for backward in find_backwards(context.program):
        found = next((one for find in _FORMS if (one := find(backward, context.program))), None)
        if found is not None:
            edits, guilty = found
            yield Proposal(
                edits=edits,
                culprit=culprit_of(backward.file, guilty, "computes every loss before the first network is stepped"),
                belief=1.2 + (0.8 if is_crash(backward.file, backward.call, context) else 0.0),
                because=_LATER,
            )


Found = tuple[tuple[Edit, ...], ast.AST]


def _of_loop(backward: Backward, program: Program) -> Found | None:
    """The innermost loop around a backward whose round clears, goes back and steps."""
    file = backward.file
    scope = scope_of(backward.statement, file, program)
    loop = next(loops_of(backward.statement, file), None)
    if not isinstance(loop, ast.For) or scope is None or not _steps(loop.body, backward.statement):
        return None
    turns = _turns(backward, loop, scope, program)
    if turns is None:
        return None
    made = _made(turns.source, loop, scope)
    if made is None:
        return None
    value, statement = made
    if isinstance(value, ast.Call):
        return _asked_again(turns, value)
    return _as_functions(turns, value, statement)


def _steps(body: Sequence[ast.stmt], at: ast.stmt) -> bool:
    """Whether a block clears gradients before a statement of it and steps an optimizer behind it."""
    if at not in body:
        return False
    where = list(body).index(at)
    clears = any(_does(one, "zero_grad") for one in _plain(body[:where]))
    return clears and any(_does(one, "step") for one in body[where:])


def _does(statement: ast.stmt, method: str) -> bool:
    """Whether a statement calls a method of any object: `self.opts[name].step()`, `scaler.step(opt)`."""
    call = statement.value if isinstance(statement, (ast.Expr, ast.Assign)) else None
    return isinstance(call, ast.Call) and getattr(call.func, "attr", "") == method


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
            file=backward.file, program=program, scope=scope, loop=loop, loss=name, source=source, kind=kind, place=place
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


def _asked_again(turns: _Turns, call: ast.Call) -> Found | None:
    """Losses that a function gives: each round asks the function for its own."""
    file, loop = turns.file, turns.loop
    function = _pure(call, file, turns.program)
    if function is None or _rebinds(call, loop.body):
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


def _pure(call: ast.Call, file: SourceFile, program: Program) -> Function | None:
    """The function of the program that a call runs, where a second call gives the losses of the same batch."""
    target = resolver_of(program).function_of(call, Value(call, file))
    if target is None or any(isinstance(one, ast.Call) for each in call.args for one in walk(each)):
        return None
    return target[1] if _is_repeatable(target, program, 0) else None


def _is_repeatable(target: tuple[SourceFile, Function], program: Program, depth: int) -> bool:
    """Whether a function keeps nothing and takes nothing away: no attribute is bound, no batch drawn, no optimizer stepped."""
    file, function = target
    resolver = resolver_of(program)
    for node in walk_scope(function):
        if isinstance(node, (ast.Attribute, ast.Subscript)) and isinstance(node.ctx, ast.Store):
            root = node.value
            if isinstance(node, ast.Attribute) or not isinstance(root, ast.Name):
                return False
        if isinstance(node, (ast.Global, ast.Nonlocal, ast.Yield, ast.YieldFrom)):
            return False
        if not isinstance(node, ast.Call):
            continue
        method = getattr(node.func, "attr", getattr(node.func, "id", ""))
        is_own = isinstance(node.func, ast.Attribute) and isinstance(node.func.value, ast.Name) and any(
            one.name == node.func.value.id for one in bounds_of(function)
        )  # fmt: skip
        if method in ("backward", "step") or (method in _TAKES and not is_own) or (method == "sample" and node.args):
            return False
        inner = resolver.function_of(node, Value(node, file)) if depth < _DEPTH else None
        if inner is not None and not _is_repeatable(inner, program, depth + 1):
            return False
    return True


def _rebinds(value: ast.AST, block: Sequence[ast.stmt]) -> bool:
    """Whether a block gives one of the names in a value another one."""
    names = {one.id for one in walk(value) if isinstance(one, ast.Name)}
    return any(names & binds(one) for each in block for one in walk(each) if isinstance(one, ast.stmt))


def _as_functions(turns: _Turns, value: ast.expr, statement: ast.stmt | None) -> Found | None:
    """Losses in a display: each becomes a function without arguments, which its round calls."""
    file, loop = turns.file, turns.loop
    entries = value.values if isinstance(value, ast.Dict) else getattr(value, "elts", [])
    if statement is not None and _is_read_elsewhere(turns, statement):
        return None
    edits: list[Edit] = []
    gone: dict[ast.stmt, None] = {}
    for entry in entries:
        text = _delayed(entry, entry, turns, gone, 0)
        if text is None or isinstance(entry, ast.Lambda) or _rebinds(entry, loop.body):
            return None
        edits.append(edit_of(file, entry, f"lambda: {text}"))
    if len(entries) < 2:
        return None
    edits += [remove_statement(file, one) for one in gone]
    edits.append(insert_before(file, loop.body[0], f"{turns.loss} = {turns.loss}()"))
    return tuple(edits), statement or loop.iter


def _is_read_elsewhere(turns: _Turns, statement: ast.stmt) -> bool:
    names = binds(statement)
    return any(
        isinstance(node, ast.Name) and node.id in names and isinstance(node.ctx, ast.Load) and node is not turns.source
        for node in walk(turns.scope)
    )


def _delayed(value: ast.expr, entry: ast.expr, turns: _Turns, gone: dict[ast.stmt, None], depth: int) -> str | None:
    """The text of a loss with the names that serve it alone replaced by what they stand for; None for no computation."""
    file = turns.file
    start, text = file.span(value)[0], file.segment(value)
    names = [node for node in walk(value) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)]
    is_changed = False
    for node in sorted(names, key=lambda one: -file.span(one)[0]):
        made = _alone(node, file.statement(value), turns) if depth < _DEPTH else None
        inner = _delayed(made.value, entry, turns, gone, depth + 1) if made is not None else None
        if made is None or inner is None or _rebinds(made.value, turns.loop.body):
            continue
        first, last = file.span(node)
        is_whole = node is value or isinstance(made.value, (ast.Call, ast.Subscript, ast.Attribute))
        text = text[: first - start] + (inner if is_whole else f"({inner})") + text[last - start :]
        gone[made] = None
        is_changed = True
    return text if is_changed or any(isinstance(node, (ast.Call, ast.BinOp)) for node in walk(value)) else None


def _alone(node: ast.Name, at: ast.stmt, turns: _Turns) -> ast.Assign | None:
    """The statement that makes a name which nothing else reads, in the block of the display."""
    made = definitions(node.id, at, turns.scope)
    one = made[0] if len(made) == 1 else None
    is_plain = isinstance(one, ast.Assign) and len(one.targets) == 1 and isinstance(one.targets[0], ast.Name)
    if not isinstance(one, ast.Assign) or not is_plain or one not in block_of(at, turns.file):
        return None
    reads = [
        each for each in walk(turns.scope) if isinstance(each, ast.Name) and each.id == node.id and each is not node
    ]
    return one if len(reads) == 1 and "\n" not in turns.file.segment(one.value) else None


def _of_block(backward: Backward, program: Program) -> Found | None:
    """A later backward of one block: its loss is asked for again behind the step before it."""
    file, at = backward.file, backward.statement
    scope = scope_of(at, file, program)
    block = list(block_of(at, file))
    root = backward.loss.value if isinstance(backward.loss, ast.Subscript) else backward.loss
    if scope is None or at not in block or not isinstance(root, ast.Name):
        return None
    made = definitions(root.id, at, scope)
    one = made[0] if len(made) == 1 else None
    if not isinstance(one, ast.Assign) or one not in block or not isinstance(one.value, ast.Call):
        return None
    steps = [each for each in block[block.index(one) : block.index(at)] if _does(each, "step")]
    after = block[block.index(steps[-1]) + 1 : block.index(at)] if steps else []
    if not any(_does(each, "zero_grad") for each in after) or _pure(one.value, file, program) is None:
        return None
    if _rebinds(one.value, block[block.index(one) + 1 : block.index(at) + 1]) or not _goes_back(steps[-1], one, block):
        return None
    text = file.segment(one.value)
    if isinstance(backward.loss, ast.Subscript):
        return (edit_of(file, root, text),), one
    target = one.targets[0]
    parts = [dotted_name(each) for each in target.elts] if isinstance(target, ast.Tuple) else []
    reads = [each for each in _between(steps[-1], at, scope) if _reads(root.id, each)]
    if root.id not in parts or None in parts or not reads or reads[0] not in block:
        return None
    return (insert_before(file, reads[0], f"{root.id} = {text}[{parts.index(root.id)}]"),), one


def _of_key(backward: Backward, program: Program) -> Found | None:
    """A loop over the optimizers, or their names, whose round takes its loss from a dictionary made before: `losses[name]`."""
    file, loss = backward.file, backward.loss
    scope, loop = scope_of(backward.statement, file, program), next(loops_of(backward.statement, file), None)
    if scope is None or not isinstance(loop, ast.For) or not _steps(loop.body, backward.statement):
        return None
    if (
        not isinstance(loss, ast.Subscript)
        or not isinstance(loss.value, ast.Name)
        or not isinstance(loss.slice, ast.Name)
    ):
        return None
    held, place = loss.value.id, loss.slice.id
    targets = {one.id for one in walk(loop.target) if isinstance(one, ast.Name)}
    made = _made(loss.value, loop, scope)
    value, statement = made if made is not None else (loss, None)
    writes = [
        one for one in walk(loop) if isinstance(one, (ast.Name, ast.Subscript)) and isinstance(one.ctx, ast.Store)
    ]
    if place not in targets or statement is None or any(_root(one) == held for one in writes):
        return None
    if isinstance(value, ast.Call):
        if _pure(value, file, program) is None or _rebinds(value, loop.body):
            return None
        return (insert_before(file, loop.body[0], f"{held}[{place}] = {file.segment(value)}[{place}]"),), statement
    if (
        not isinstance(value, ast.Dict)
        or len(value.values) < 2
        or any(_rebinds(one, loop.body) for one in value.values)
    ):
        return None
    if not all(isinstance(one, (ast.Call, ast.BinOp, ast.UnaryOp)) for one in value.values):
        return None
    edits = [edit_of(file, one, _as_function(one, file)) for one in value.values]
    return (*edits, insert_before(file, loop.body[0], f"{held}[{place}] = {held}[{place}]()")), statement


def _as_function(node: ast.expr, file: SourceFile) -> str:
    """What computes a value when it is called: `critic_loss` of `critic_loss()`."""
    is_plain = isinstance(node, ast.Call) and not node.args and not node.keywords and dotted_name(node.func) is not None
    return file.segment(node.func) if is_plain and isinstance(node, ast.Call) else f"lambda: {file.segment(node)}"


def _root(node: ast.expr) -> str | None:
    node = node.value if isinstance(node, ast.Subscript) else node
    return node.id if isinstance(node, ast.Name) else None


_FORMS = (_of_loop, _of_block, _of_key)


def _goes_back(step: ast.stmt, made: ast.stmt, block: Sequence[ast.stmt]) -> bool:
    """Whether an earlier loss of the same call is sent back before the step."""
    names = binds(made)
    between = block[block.index(made) + 1 : block.index(step)]
    return any(
        isinstance(node, ast.Attribute) and node.attr == "backward" and any(_reads(name, each) for name in names)
        for each in between
        for node in walk(each)
    )


def _between(first: ast.stmt, last: ast.stmt, scope: Scope) -> list[ast.stmt]:
    return [one for one in statements_of(scope) if before(first, one) and (before(one, last) or one is last)]


def _reads(name: str, node: ast.AST) -> bool:
    return any(isinstance(one, ast.Name) and one.id == name and isinstance(one.ctx, ast.Load) for one in walk(node))
