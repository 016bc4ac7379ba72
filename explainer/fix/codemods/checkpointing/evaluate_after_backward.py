"""An evaluation between a forward and its backward comes after the backward, so that a replayed segment is in the forward's mode.

`acc = self.accuracy(x, y)`, which calls `self.net.eval()`, moves from between `loss = ...` and `loss.backward()` to behind it.
Not where the mode is set back before the backward, nor where the backward reads what would move. Where no step sets the mode
anew, the steps that follow would run in eval mode: then the function that switches sets it back, and nothing moves.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from explainer.fix.codemod import (
    Context,
    Proposal,
    culprit_of,
    edit_of,
    insert_after,
    insert_before,
    lines_of,
    remove_statement,
)
from explainer.fix.text.rewrite import free_name
from explainer.source.file import SourceFile
from explainer.source.loop.backward import Backward, cleared, find_backwards
from explainer.source.loop.event import between
from explainer.source.name import Function, bound_names, dotted_name
from explainer.source.program import Program
from explainer.source.tree import walk
from explainer.source.value.binding import Value, walk_scope
from explainer.source.value.callee import callees_of
from explainer.source.value.lineage import before, loop_of, reads, statements_of
from explainer.source.value.provenance import provenance_of
from explainer.source.value.resolve import resolver_of

_DEPTH = 3
_MAKES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Import, ast.ImportFrom)
_MOVES = (ast.Expr, ast.Assign, ast.AnnAssign, ast.With, ast.If, ast.For)


def propose(context: Context) -> Iterator[Proposal]:
    """An edit for each backward before which something changes the mode and leaves it so."""
    if not context.has_failed:
        return
    for backward in find_backwards(context.program):
        made, others = between(backward, context.program)
        forward = next((one for one in made if _is_forward(one, backward.file, context.program)), None)
        statements = [
            one for one in others if forward is not None and before(forward, one) and not isinstance(one, _MAKES)
        ]
        modes = [_mode(one, backward.file, context.program) for one in statements]
        set_ = [mode for mode in modes if mode is not None]
        if not set_ or set_[-1]:
            continue
        first = modes.index(False)
        inline, tail = _switched(statements[first]), ""
        if not _is_set_each_step(backward, forward, context.program):
            if inline is None:
                yield from _set_back(statements[first], backward.file, context.program)
                continue
            tail = f"\n{inline}.train()"
        moved = [one for one in statements[first:] if cleared(one) is None]
        if _may_move(moved, [*made, *statements, backward.statement]):
            file = backward.file
            yield Proposal(
                edits=(
                    *(remove_statement(file, one) for one in moved),
                    insert_after(file, backward.statement, "\n".join(lines_of(file, one) for one in moved) + tail),
                ),
                culprit=culprit_of(
                    file, statements[first], "switches to eval mode between the forward and its backward"
                ),
                belief=2.0,
            )


def _is_set_each_step(backward: Backward, forward: ast.stmt | None, program: Program) -> bool:
    """Whether a training mode is set before the forward of each step, or there is one step only."""
    file, function = backward.file, program.names(backward.file).function_of(backward.call)
    places = [(forward or backward.statement, file)]
    if loop_of(backward.statement, file) is None and function is not None:
        if _sets_training(function.body, forward or backward.statement, file, program):
            return True
        places = [(where.statement(call), where) for where, call in resolver_of(program).calls_of(function, file)]
    loops = [(loop, at, where) for at, where in places if (loop := loop_of(at, where)) is not None]
    return all(_sets_training(loop.body, at, where, program) for loop, at, where in loops)


def _sets_training(block: Sequence[ast.stmt], at: ast.stmt, file: SourceFile, program: Program) -> bool:
    return any(_mode(one, file, program) for one in block if before(one, at))


def _set_back(statement: ast.stmt, file: SourceFile, program: Program) -> Iterator[Proposal]:
    """The function that a statement calls and that leaves a model in eval mode sets back the mode that was."""
    for where, function in _leaving(statement, file, program, 0):
        switch = next((one for one in statements_of(function) if _switched(one) is not None), None)
        model = _switched(switch) if switch is not None else None
        is_generator = any(isinstance(one, (ast.Yield, ast.YieldFrom)) for one in walk(function))
        if switch is None or model is None or is_generator or not _runs_always(switch, function, where):
            continue
        was, result = free_name("training", function), free_name("result", function)
        back = f"{model}.train({was})"
        edits = [insert_before(where, switch, f"{was} = {model}.training")]
        for one in statements_of(function):
            if isinstance(one, ast.Return) and before(switch, one):
                if one.value is None or isinstance(one.value, (ast.Name, ast.Constant)):
                    edits.append(insert_before(where, one, back))
                else:
                    edits.append(edit_of(where, one, f"{result} = {where.segment(one.value)}"))
                    edits.append(insert_after(where, one, f"{back}\nreturn {result}"))
        if not _leaves(function.body[-1]):
            edits.append(insert_after(where, function.body[-1], back))
        why = "switches to eval mode between a forward and its backward, and leaves the model so"
        yield Proposal(edits=tuple(edits), culprit=culprit_of(where, switch, why), belief=2.2)
        return


def _runs_always(statement: ast.stmt, function: Function, file: SourceFile) -> bool:
    """Whether a statement runs once wherever the function gets past it: what it binds is there behind it."""
    above = file.parents.get(statement)
    while isinstance(above, (ast.With, ast.AsyncWith)):
        above = file.parents.get(above)
    return above is function


def _leaves(statement: ast.stmt) -> bool:
    """Whether nothing runs behind a statement: it returns or raises, whichever way it takes."""
    if isinstance(statement, (ast.With, ast.AsyncWith)):
        return _leaves(statement.body[-1])
    if isinstance(statement, ast.If):
        return bool(statement.orelse) and _leaves(statement.body[-1]) and _leaves(statement.orelse[-1])
    return isinstance(statement, (ast.Return, ast.Raise))


def _leaving(node: ast.AST, file: SourceFile, program: Program, depth: int) -> Iterator[tuple[SourceFile, Function]]:
    """The functions that a call runs and that leave a model in eval mode, the innermost first."""
    for call in (one for one in _nodes(node) if isinstance(one, ast.Call)):
        for one in callees_of(call.func, file, program) if depth < _DEPTH else ():
            if (
                isinstance(one.function, (ast.FunctionDef, ast.AsyncFunctionDef))
                and _mode(one.function, one.file, program) is False
            ):
                yield from _leaving(one.function, one.file, program, depth + 1)
                yield one.file, one.function


def _switched(statement: ast.stmt | None) -> str | None:
    """`self.model` of the statement `self.model.eval()`."""
    call = statement.value if isinstance(statement, ast.Expr) else None
    if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Attribute) or call.args:
        return None
    return dotted_name(call.func.value) if call.func.attr == "eval" else None


def _is_forward(statement: ast.stmt, file: SourceFile, program: Program) -> bool:
    """Whether a statement computes with parameters: what stands before it sets the mode of both passes."""
    value = getattr(statement, "value", None)
    if not isinstance(value, ast.expr) or not provenance_of(program).trace(Value(value, file)).live:
        return False
    func = value.func if isinstance(value, ast.Call) else None
    if func is None:
        return True
    name = program.names(file).qualified(func) or ""  # `net = Net()` only makes what computes
    is_class = name.startswith("torch.nn.") and name.rpartition(".")[2][:1].isupper()
    return not is_class and resolver_of(program).find_class(func, file) is None


def _mode(node: ast.AST, file: SourceFile, program: Program, depth: int = 0) -> bool | None:
    """The mode in which a statement leaves a model, by the last call that says so: training or not; None where none does."""
    found = None
    for call in sorted((one for one in _nodes(node) if isinstance(one, ast.Call)), key=lambda one: one.lineno):
        if isinstance(call.func, ast.Attribute) and call.func.attr in ("eval", "train") and not call.keywords:
            if call.func.attr == "eval" and not call.args:
                found = False
            elif call.func.attr == "train" and len(call.args) < 2:  # an argument may be the mode as it was
                found = not (call.args and isinstance(call.args[0], ast.Constant) and call.args[0].value is False)
        elif depth < _DEPTH:
            inner = [_mode(one.function, one.file, program, depth + 1) for one in callees_of(call.func, file, program)]
            found = next((one for one in inner if one is not None), found)
    return found


def _nodes(node: ast.AST) -> Iterator[ast.AST]:
    return walk_scope(node) if isinstance(node, (ast.FunctionDef, ast.Lambda)) else walk(node)


def _may_move(moved: Sequence[ast.stmt], block: Sequence[ast.stmt]) -> bool:
    """Whether none of what stays, up to the backward, reads what moves binds, and nothing leaves the block on the way."""
    bound = {name for one in moved for node in walk(one) for name in bound_names(node)}
    stays = {name for one in block if one not in moved for name in reads(one, graph=False)}
    leaves = (ast.Return, ast.Break, ast.Continue, ast.Raise)
    return (
        all(isinstance(one, _MOVES) for one in moved)
        and not bound & stays
        and not any(isinstance(node, leaves) for one in moved for node in walk(one))
    )
