"""`self.untoggle_optimizer(opt_g)` behind the step of an optimizer that `toggle_optimizer` made the only one.

Toggling switches the parameters of all others off, and the next toggle takes that for how they were: from then on nothing of the
model requires grad. So each toggle is taken back by itself, on every way out, and for the optimizer that it was made for.
Lightning's own context, `toggled_optimizer`, does both.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from explainer.fix.codemod import (
    Context,
    Proposal,
    culprit_of,
    edit_of,
    insert_after,
    insert_before,
    remove_statement,
)
from explainer.model.patch import Edit
from explainer.source.file import SourceFile
from explainer.source.network.lightning import chain_of, find_lightning_modules
from explainer.source.program import Program
from explainer.source.tree import walk
from explainer.source.value.binding import Value
from explainer.source.value.flow import arguments_of
from explainer.source.value.lineage import block_of, loop_of
from explainer.source.value.resolve import resolver_of

_ON, _OFF = "toggle_optimizer", "untoggle_optimizer"
_NEVER = "leaves the parameters of the other optimizers without grad: it is never taken back"
_LEFT = "leaves while `{}` is toggled: the parameters of the other optimizers stay without grad"
_SOMETIMES = (
    "takes `toggle_optimizer` back in this branch only: else the other optimizers' parameters stay without grad"
)
_OTHER = "takes back what was toggled for `{}`: the parameters of `{}` stay without grad"


class _Cure(NamedTuple):
    """The edits that take one toggle back, with the line that left it."""

    edits: tuple[Edit, ...]
    at: ast.AST
    why: str


def propose(context: Context) -> Iterator[Proposal]:
    """An edit for each method of a Lightning module that leaves an optimizer toggled."""
    if not context.has_failed:
        return
    for owner in find_lightning_modules(context.program):
        chain = list(chain_of(owner, context.program))
        methods = [(file, one) for file, each in chain for one in each.body if isinstance(one, ast.FunctionDef)]
        if any(_calls(one, _OFF) and not _calls(one, _ON) for _, one in methods):
            continue  # a method of its own takes back what another one toggles
        for file, method in methods:
            cures = _cures(method, file, context.program)
            if cures:
                yield Proposal(
                    edits=tuple(edit for one in cures for edit in one.edits),
                    culprit=culprit_of(file, cures[0].at, cures[0].why),
                    belief=2.4,
                )


def _cures(method: ast.FunctionDef, file: SourceFile, program: Program) -> list[_Cure]:
    """What each toggle of a method lacks; nothing where one of them cannot be read."""
    found: list[_Cure] = []
    for toggle in _calls(method, _ON):
        optimizer = _optimizer(toggle)
        if optimizer is None:
            return []
        cures = _of_toggle(toggle, optimizer, method, file, program)
        if cures is None:
            return []
        found += cures
    return found


def _of_toggle(
    toggle: ast.Call, optimizer: str, method: ast.FunctionDef, file: SourceFile, program: Program
) -> list[_Cure] | None:
    """What takes one toggle back on the ways that leave it; None where it cannot be said."""
    after = _until_next(toggle, file)
    assert isinstance(toggle.func, ast.Attribute)
    line = f"{file.segment(toggle.func.value)}.{_OFF}({optimizer})"
    end = next((one for one in after if _takes_back(one, optimizer)), None)
    cures: list[_Cure] = []
    if end is None:
        taken = [one for one in _calls(method, _OFF) if _belongs(one, toggle, optimizer, method)]
        steps = [one for one in after if _steps(one, optimizer, file, program)]
        if not steps or len(taken) > 1:
            return None
        if taken:
            end = next((one for one in after if taken[0] in walk(one)), None)
            cure = _moved_out(taken[0], end, line, file)
        else:
            end = _cleared(after, steps[-1], optimizer)
            cure = _renamed(after, optimizer, file) or _Cure((insert_after(file, end, line),), toggle, _NEVER)
        if cure is None or end is None:
            return None
        cures.append(cure)
    ways = [one for each in after[: after.index(end) + 1] for one in _ways_out(each, toggle, file)]
    missed = [one for one in ways if not _is_taken_back_before(one, optimizer, after, file)]
    cures += [_Cure((insert_before(file, one, line),), one, _LEFT.format(optimizer)) for one in missed]
    return cures


def _until_next(toggle: ast.Call, file: SourceFile) -> list[ast.stmt]:
    """The statements behind a toggle in its block, up to one that toggles again."""
    start = file.statement(toggle)
    block = block_of(start, file)
    behind = list(block[block.index(start) + 1 :]) if start in block else []
    end = next((at for at, one in enumerate(behind) if _calls(one, _ON)), len(behind))
    return behind[:end]


def _cleared(after: Sequence[ast.stmt], step: ast.stmt, optimizer: str) -> ast.stmt:
    """The last of the statements that ask the optimizer itself right behind its step: `opt_g.zero_grad()`."""
    last = step
    for one in after[after.index(step) + 1 :]:
        call = one.value if isinstance(one, ast.Expr) else None
        if not isinstance(call, ast.Call) or not ast.unparse(call.func).startswith(f"{optimizer}."):
            break
        last = one
    return last


def _takes_back(statement: ast.stmt, optimizer: str) -> bool:
    """Whether a statement takes a toggle back in each of its branches."""
    if isinstance(statement, ast.If):
        return all(any(_takes_back(one, optimizer) for one in each) for each in (statement.body, statement.orelse))
    if isinstance(statement, ast.Expr):
        return any(_optimizer(one) == optimizer for one in _calls(statement, _OFF))
    under = [*getattr(statement, "body", ()), *getattr(statement, "finalbody", ())]
    return any(_takes_back(one, optimizer) for one in under)


def _belongs(call: ast.Call, toggle: ast.Call, optimizer: str, method: ast.FunctionDef) -> bool:
    """Whether a call takes back this toggle, rather than a later one of the same optimizer."""
    if _optimizer(call) != optimizer or call.lineno < toggle.lineno:
        return False
    same = [one for one in _calls(method, _ON) if _optimizer(one) == optimizer and one.lineno < call.lineno]
    return bool(same) and same[-1] is toggle


def _moved_out(call: ast.Call, branch: ast.stmt | None, line: str, file: SourceFile) -> _Cure | None:
    """Takes back what only one branch of an `if` takes back, behind that `if`."""
    statement = file.statement(call)
    if (
        not isinstance(branch, ast.If)
        or file.parents.get(statement) is not branch
        or len(block_of(statement, file)) < 2
    ):
        return None
    return _Cure((remove_statement(file, statement), insert_after(file, branch, line)), call, _SOMETIMES)


def _renamed(after: Sequence[ast.stmt], optimizer: str, file: SourceFile) -> _Cure | None:
    """Names the optimizer that was toggled where another one is taken back behind it."""
    calls = [one for each in after for one in _calls(each, _OFF)]
    if len(calls) != 1 or not calls[0].args or file.statement(calls[0]) not in after:
        return None
    why = _OTHER.format(optimizer, file.segment(calls[0].args[0]))
    return _Cure((edit_of(file, calls[0].args[0], optimizer),), calls[0], why)


def _ways_out(statement: ast.stmt, toggle: ast.Call, file: SourceFile) -> Iterator[ast.stmt]:
    """The statements under one that leave the method, or the round of a loop, in which the toggle stands."""
    loop = loop_of(file.statement(toggle), file)
    for node in walk(statement):
        is_jump = isinstance(node, (ast.Continue, ast.Break)) and loop is not None and loop_of(node, file) is loop
        if (isinstance(node, ast.Return) and _is_own(node, toggle, file)) or is_jump:
            assert isinstance(node, ast.stmt)
            yield node


def _is_own(node: ast.stmt, toggle: ast.Call, file: SourceFile) -> bool:
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
    return file.enclosing(node, *kinds) is file.enclosing(toggle, *kinds)


def _is_taken_back_before(way: ast.stmt, optimizer: str, after: Sequence[ast.stmt], file: SourceFile) -> bool:
    """Whether what stands before a way out has taken the toggle back, or a `finally` round it does."""
    at: ast.AST | None = way
    while isinstance(at, ast.stmt):
        block = block_of(at, file)
        passed = [*block[: block.index(at)], *(at.finalbody if isinstance(at, ast.Try) else ())]
        if any(_takes_back(one, optimizer) for one in passed):
            return True
        at = None if at in after else file.enclosing(at, ast.stmt)
    return False


def _calls(node: ast.AST, name: str) -> list[ast.Call]:
    """The calls of one of the module's own methods, in the order of the text."""
    found = [
        node
        for node in walk(node)
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr == name
        and isinstance(node.func.value, ast.Name)
    ]
    return sorted(found, key=lambda one: (one.lineno, one.col_offset))


def _optimizer(call: ast.Call) -> str | None:
    """The optimizer that a call toggles or takes back, as it is written."""
    given = [*call.args, *(one.value for one in call.keywords if one.arg == "optimizer")]
    return ast.unparse(given[0]) if given else None


def _steps(node: ast.AST, optimizer: str, file: SourceFile, program: Program, depth: int = 2) -> bool:
    """Whether a node steps an optimizer, or calls a function of the program that steps what it is given."""
    for call in [one for one in walk(node) if isinstance(one, ast.Call)]:
        is_step = isinstance(call.func, ast.Attribute) and call.func.attr == "step"
        if is_step and ast.unparse(call.func.value) == optimizer:  # type: ignore[attr-defined]
            return True
        given = [*call.args, *(one.value for one in call.keywords)]
        if not depth or all(ast.unparse(one) != optimizer for one in given):
            continue
        target = resolver_of(program).function_of(call, Value(node=call, file=file))
        for name, value in arguments_of(call, target[1]) if target is not None else ():
            if target and ast.unparse(value) == optimizer and _steps(target[1], name, target[0], program, depth - 1):
                return True
    return False
