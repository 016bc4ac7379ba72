"""Where a step clips its gradients, and where it could: between the last backward and the step of the same block."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from explainer.source.file import SourceFile
from explainer.source.loop.backward import loss_of, stepped
from explainer.source.loop.ownership import owned_by
from explainer.source.loop.step import CLIP_METHODS, is_scaler, is_scheduler
from explainer.source.name import dotted_name
from explainer.source.program import Program
from explainer.source.tree import walk
from explainer.source.value.callee import callees_of
from explainer.source.value.lineage import binds, block_of, reads
from explainer.source.value.resolve import resolver_of

_DEPTH = 2
BACKWARD, STEP = "backward", "step"


@dataclass(frozen=True, slots=True, kw_only=True)
class Round:
    """What a block does for one step: its last backward, or what holds or calls it, and what steps, the first first.

    `steps` is empty where the block ends with the backward.
    """

    file: SourceFile
    block: Sequence[ast.stmt]
    backward: ast.stmt
    steps: tuple[ast.stmt, ...]


def clips_at(places: Collection[tuple[str, int]], program: Program) -> Iterator[tuple[SourceFile, ast.Call]]:
    """The calls that clip gradients on some lines, of files that are given by their own name."""
    for file in program.parsed():
        lines = {line for name, line in places if name == file.path.replace("\\", "/").rpartition("/")[2]}
        for node in file.walk() if lines else ():
            if isinstance(node, ast.Call) and any(node.lineno <= one <= (node.end_lineno or 0) for one in lines):
                called = program.names(file).qualified(node.func) or str(getattr(node.func, "attr", ""))
                if called.rpartition(".")[2] in CLIP_METHODS:
                    yield file, node


def levels(call: ast.Call, file: SourceFile, program: Program) -> Iterator[tuple[SourceFile, ast.stmt]]:
    """What does nothing but clip, innermost first: the statement, an `if` around it alone, the call of a function of it alone."""
    statement: ast.stmt | None = file.statement(call)
    for _ in range(_DEPTH):
        while statement is not None:
            yield file, statement
            above = file.parents.get(statement)
            is_alone = isinstance(above, ast.If) and not above.orelse and len(above.body) == 1
            statement = above if isinstance(above, ast.If) and is_alone else None
            last = above
        if not isinstance(last, ast.FunctionDef) or len([one for one in last.body if not _is_silent(one)]) != 1:
            return
        calls = resolver_of(program).calls_of(last, file)
        if len(calls) != 1:
            return
        file, statement = calls[0][0], calls[0][0].statement(calls[0][1])


def _is_silent(statement: ast.stmt) -> bool:
    """A docstring, or the return of a name."""
    if isinstance(statement, ast.Return):
        return statement.value is None or isinstance(statement.value, (ast.Name, ast.Constant))
    return isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)


def round_of(statement: ast.stmt, call: ast.Call, file: SourceFile, program: Program) -> Round | None:
    """The round of a statement's block whose gradients it is to clip; None where there is none, or it is not clear which."""
    block = block_of(statement, file)
    rounds = list(_rounds(block, file, program))
    if len(rounds) > 1:
        clipped = {name for node in walk(call) if (name := _listed(node))}
        rounds = [one for one in rounds if _owned(one, program) & clipped]
    return rounds[0] if len(rounds) == 1 else None


def _rounds(block: Sequence[ast.stmt], file: SourceFile, program: Program) -> Iterator[Round]:
    backward: ast.stmt | None = None
    steps: list[ast.stmt] = []
    for one in block:
        done = does(one, file, program)
        if BACKWARD in done and steps and backward is not None:
            yield Round(file=file, block=block, backward=backward, steps=tuple(steps))
            steps = []
        if done == {BACKWARD}:
            backward = one
        elif done == {STEP} and backward is not None:
            steps.append(one)
        elif done:
            backward = None  # both inside of a loop or a function: nothing of this block comes between them
            steps = []
    if backward is not None:
        yield Round(file=file, block=block, backward=backward, steps=tuple(steps))


def _owned(one: Round, program: Program) -> set[str]:
    """The modules that the steps of a round change."""
    inner = [each for step in one.steps for each in walk(step) if isinstance(each, ast.stmt) and stepped(each)]
    return {name for each in inner for name in owned_by(stepped(each) or "", each, one.file, program)}


def _listed(node: ast.AST) -> str | None:
    """`net` of `net.parameters()`."""
    func = node.func if isinstance(node, ast.Call) else None
    return dotted_name(func.value) if isinstance(func, ast.Attribute) and func.attr == "parameters" else None


def does(node: ast.AST, file: SourceFile, program: Program, depth: int = 0) -> set[str]:
    """Whether a statement runs a backward and whether it steps an optimizer, by itself or in a function that it calls."""
    found: set[str] = set()
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)) and not depth:
        return found
    for call in walk(node):
        if not isinstance(call, ast.Call):
            continue
        if loss_of(call, file, program) is not None:
            found.add(BACKWARD)
        elif isinstance(call.func, ast.Attribute) and call.func.attr == "step" and _steps(call, file, program):
            found.add(STEP)
        elif depth < _DEPTH:
            for one in callees_of(call.func, file, program):
                found |= does(one.function, one.file, program, depth + 1)
    return found


def _steps(call: ast.Call, file: SourceFile, program: Program) -> bool:
    assert isinstance(call.func, ast.Attribute)
    owner = call.func.value
    if is_scaler(owner, file, program):
        return True
    return (
        len(call.args) < 2
        and not is_scheduler(owner, file, program)
        and "sched" not in (dotted_name(owner) or "").lower()
    )


def is_free(statement: ast.stmt, passed: Sequence[ast.stmt]) -> bool:
    """Whether a statement may pass others: they bind nothing that it reads, and read and bind nothing that it binds."""
    taken = reads(statement, graph=False)
    given = {name for one in walk(statement) if isinstance(one, ast.stmt) for name in binds(one)}
    for one in (each for other in passed for each in walk(other) if isinstance(each, ast.stmt)):
        if isinstance(one, (ast.Return, ast.Break, ast.Continue, ast.Raise)) or binds(one) & (taken | given):
            return False
    return not any(reads(one, graph=False) & given for one in passed)
