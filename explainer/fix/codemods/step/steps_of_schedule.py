"""A schedule gets as many steps as the loops make: `total_steps=len(loader)` becomes `total_steps=epochs * len(loader)`.

The loops round `scheduler.step()` are read, also where they stand in the caller of the function that steps. Nothing is
proposed where the length of one is not written, or where a condition other than that of an accumulation stands between.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass

from explainer.fix.clue.crash import crash_places
from explainer.fix.codemod import Context, Proposal, culprit_of, edit_of
from explainer.source.file import SourceFile
from explainer.source.program import Program
from explainer.source.tree import walk
from explainer.source.value.binding import Value, bounds_of, scope_of
from explainer.source.value.resolve import resolver_of

_WRAPPERS = frozenset(("enumerate", "tqdm", "trange", "track", "iter", "list"))
_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Module, ast.Lambda)


@dataclass(frozen=True, slots=True)
class _Length:
    """How many rounds a loop makes: the expression, and where it is read."""

    text: str
    reads: frozenset[str]
    node: ast.AST
    file: SourceFile


def propose(context: Context) -> Iterator[Proposal]:
    """An edit for the count of each OneCycleLR that is given fewer steps than the loops round its step make."""
    if "asked" not in context.fields:
        return
    lengths = _lengths(context)
    made = list(_schedules(context.program))
    found = [one for node, file in made for one in _counted(node, file, lengths or [], context.program)]
    yield from found
    if not found and len(made) == 1 and (count := _count(made[0][0])) is not None:
        where = _origin(Value(count, made[0][1]), context.program) or Value(count, made[0][1])
        if isinstance(where.node, ast.expr):
            why = "counts fewer steps than the schedule is asked for"
            yield Proposal(edits=(), culprit=culprit_of(where.file, where.node, why), belief=0.5)


def _schedules(program: Program) -> Iterator[tuple[ast.Call, SourceFile]]:
    for file in program.parsed():
        for node in file.walk():
            name = program.names(file).qualified(node.func) if isinstance(node, ast.Call) else None
            if isinstance(node, ast.Call) and (name or "").rpartition(".")[2] == "OneCycleLR":
                yield node, file


def _count(call: ast.Call) -> ast.expr | None:
    """What says how many steps there are."""
    given = {one.arg: one.value for one in call.keywords}
    return given.get("total_steps") or given.get("steps_per_epoch")


def _counted(call: ast.Call, file: SourceFile, lengths: list[_Length], program: Program) -> Iterator[Proposal]:
    given = {one.arg: one.value for one in call.keywords} if lengths else {}
    parts = {"total_steps": lengths} if "total_steps" in given else {}
    if {"epochs", "steps_per_epoch"} <= given.keys() and len(lengths) > 1:
        parts = {"epochs": lengths[:-1], "steps_per_epoch": lengths[-1:]}
    edits, first = [], None
    for name, factors in parts.items():
        text = " * ".join(one.text for one in factors)
        where = _origin(Value(given[name], file), program)
        if where is None or not isinstance(where.node, ast.expr):
            return
        if ast.unparse(where.node) == ast.unparse(ast.parse(text, mode="eval").body):
            continue
        if not all(_is_known(one, where) for one in factors):
            return
        edits.append(edit_of(where.file, where.node, text))
        first = first or where
    if edits and first is not None:
        yield Proposal(
            edits=tuple(edits),
            culprit=culprit_of(first.file, first.node, "counts fewer steps than the loops make"),
            belief=2.0,
            title="Give the schedule as many steps as the loops make",
        )


def _origin(value: Value, program: Program) -> Value | None:
    """Where a count is written: the one expression that an argument, a name or a parameter stands for.

    A constant that has a name is left to what else reads it.
    """
    behind = [one for one in resolver_of(program).behind(value) if not isinstance(one.node, (ast.Name, ast.Attribute))]
    named = [one for one in behind if _is_assigned(one)]
    if not behind or (named and isinstance(named[0].node, ast.Constant)) or any(one.pick is not None for one in behind):
        return value
    return behind[0] if len(behind) == 1 else None


def _is_assigned(value: Value) -> bool:
    """Whether a name stands for it, by itself or in `epochs, size = 4, 16`."""
    above = value.file.parents.get(value.node)
    above = value.file.parents.get(above) if isinstance(above, ast.Tuple) else above
    return isinstance(above, (ast.Assign, ast.AnnAssign))


def _is_known(length: _Length, where: Value) -> bool:
    """Whether what a length reads is bound already where a count is written."""
    scope, at = scope_of(where.node, where.file), where.file.statement(where.node).lineno
    bound = {one.name: getattr(one.statement, "lineno", 0) for one in bounds_of(scope)}
    if scope is scope_of(length.node, length.file):
        return all(bound.get(name, 0) < at for name in length.reads)
    outer = {one.name for one in bounds_of(where.file.tree)} if length.file is where.file else set()
    own = {one.name for one in bounds_of(scope_of(length.node, length.file))}
    return length.reads <= outer and not length.reads & (own | set(bound) - outer)


def _lengths(context: Context) -> list[_Length] | None:
    """The lengths of the loops round the step that failed, outermost first."""
    for file, statement in crash_places(context):
        if any(isinstance(one, ast.Attribute) and one.attr == "step" for one in walk(statement)):
            found = None if _steps_more(statement, file) else _around(statement, file, context.program)
            return found[::-1] if found else None
    return None


def _steps_more(statement: ast.stmt, file: SourceFile) -> bool:
    """Whether it steps beside a condition under which the optimizer does: the schedule then runs ahead, and is not too short."""
    loop = file.enclosing(statement, ast.For, ast.AsyncFor)
    steps = [
        one
        for one in (walk(loop) if loop is not None else ())
        if isinstance(one, ast.Call) and getattr(one.func, "attr", "") == "step"
    ]
    return any(file.enclosing(one, ast.If) is not file.enclosing(statement, ast.If) for one in steps)


def _around(statement: ast.AST, file: SourceFile, program: Program, depth: int = 0) -> list[_Length] | None:
    found: list[_Length] = []
    divisor, node = "", statement
    while (above := file.parents.get(node)) is not None and not isinstance(above, _SCOPES):
        if isinstance(above, (ast.For, ast.AsyncFor)) and node in above.body:
            length = _length(above.iter, file, divisor)
            if length is None:
                return None
            found.append(length)
            divisor = ""
        elif isinstance(above, ast.While):
            return None
        elif isinstance(above, ast.If):
            every = _every(above.test, file) if node in above.body and not above.orelse else None
            if every is None or divisor:
                return None
            divisor = every
        node = above
    if divisor:
        return None
    scope = file.parents.get(node)
    is_run = isinstance(scope, ast.FunctionDef) and depth < 2
    return _in_callers(found, scope, file, program, depth) if is_run else found  # type: ignore[arg-type]


def _in_callers(
    found: list[_Length], scope: ast.FunctionDef, file: SourceFile, program: Program, depth: int
) -> list[_Length] | None:
    """The lengths of a function's loops, and of those around its one call where there are such."""
    calls = resolver_of(program).calls_of(scope, file)
    if len(calls) != 1:
        return found if found and not calls else None
    where, at = calls[0]
    outer = _around(where.statement(at), where, program, depth + 1)
    if not outer:
        return found if outer is not None else None
    inner = [_as_given(one, scope, at, where) for one in found]
    if any(one is None for one in inner):
        return None
    return [*(one for one in inner if one is not None), *outer]


def _as_given(length: _Length, function: ast.FunctionDef, call: ast.Call, where: SourceFile) -> _Length | None:
    """A length in the names of the caller: those of its own that a function was given as parameters."""
    names = [one.arg for one in (*function.args.posonlyargs, *function.args.args)]
    if names[:1] in (["self"], ["cls"]):
        names = names[1:]
    given = {**dict(zip(names, call.args, strict=False)), **{one.arg: one.value for one in call.keywords if one.arg}}
    asked = length.reads & {*names, *(one.arg for one in function.args.kwonlyargs)}
    if not asked:
        return length
    if len(length.reads) != 1 or not asked <= given.keys():
        return None
    (name,) = asked
    value = given[name]
    if not isinstance(value, (ast.Name, ast.Attribute, ast.Subscript)):
        return None
    tree = ast.parse(length.text, mode="eval").body
    text = where.segment(value)
    new = "".join(text if one == name else one for one in _words(ast.unparse(tree)))
    return _Length(new, frozenset(one.id for one in walk(value) if isinstance(one, ast.Name)), call, where)


def _words(text: str) -> list[str]:
    return re.split(r"(\W+)", text)


def _length(node: ast.expr, file: SourceFile, divisor: str) -> _Length | None:
    """`epochs` of `range(epochs)`, `len(range(0, n, size))` of the same, `len(loader)` of `enumerate(loader)`; cut by what an accumulation takes together."""
    while isinstance(node, ast.Call) and node.args and _called(node) in _WRAPPERS - {"trange"}:
        node = node.args[0]
    if isinstance(node, ast.Call) and _called(node) in ("range", "trange"):
        low, *rest = node.args[:2] if node.args else (None, None)
        if low is None:
            return None
        text = file.segment(low) if not rest or rest[0] is None else f"({file.segment(rest[0])} - {file.segment(low)})"
        if len(node.args) > 2:
            text = f"len(range({', '.join(map(file.segment, node.args))}))"
        text = f"({text})" if not rest and isinstance(low, ast.BinOp) else text
    elif isinstance(node, (ast.Name, ast.Attribute, ast.Subscript)):
        text = f"len({file.segment(node)})"
    else:
        return None
    text = f"({text} // {divisor})" if divisor else text
    read = {one.id for one in walk(ast.parse(text, mode="eval")) if isinstance(one, ast.Name)}
    return _Length(text, frozenset(read - {"len", "range"}), node, file)


def _called(node: ast.Call) -> str:
    return str(getattr(node.func, "id", getattr(node.func, "attr", "")))


def _every(test: ast.expr, file: SourceFile) -> str | None:
    """`k` of `(i + 1) % k == 0`."""
    if not isinstance(test, ast.Compare) or len(test.ops) != 1 or not isinstance(test.ops[0], ast.Eq):
        return None
    left, right = test.left, test.comparators[0]
    is_every = isinstance(left, ast.BinOp) and isinstance(left.op, ast.Mod) and getattr(right, "value", None) == 0
    return file.segment(left.right) if is_every and isinstance(left, ast.BinOp) else None
