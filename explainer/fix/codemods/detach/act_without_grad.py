"""A forward that only chooses actions and fills a memory runs without grad: what a replay stores is data.

`q, hidden = net(obs, hidden)` beside `replay.push(obs, hidden, ...)` builds a graph that the replay keeps and the next round
carries on; the loss computes its own forward from what it samples. The statement goes under `torch.no_grad()`.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from explainer.fix.codemod import Context, Proposal, culprit_of
from explainer.fix.text.rewrite import under_no_grad
from explainer.source.file import SourceFile
from explainer.source.graph.write import is_without_grad
from explainer.source.loop.backward import find_backwards
from explainer.source.loop.replay import stored_by
from explainer.source.name import Function
from explainer.source.program import Program
from explainer.source.tree import walk
from explainer.source.value.binding import Value
from explainer.source.value.callee import callees_of
from explainer.source.value.lineage import Scope, binds, definitions, reads, root_of, scope_of, statements_of, value_of
from explainer.source.value.once import is_trained
from explainer.source.value.resolve import resolver_of

_SIGNS = ("modified by an inplace operation", "a second time")
_DEPTH = 4


def propose(context: Context) -> Iterator[Proposal]:
    """An edit for each forward in a training loop whose results only fill a memory."""
    if not any(sign in one.message for one in context.incident.exceptions for sign in _SIGNS):
        return
    program = context.program
    seen: set[ast.stmt] = set()
    for file, loop in _loops(program):
        scope = scope_of(loop, file, program)
        for statement in statements_of(scope) if scope is not None else ():
            is_inside = loop.lineno < statement.lineno <= (loop.end_lineno or 0)
            if scope is None or not is_inside or statement in seen or not isinstance(statement, ast.Assign):
                continue
            seen.add(statement)
            if not _runs_network(statement.value, file, program) or is_without_grad(statement, file, program):
                continue
            if _is_data(statement, scope, file, program):
                why = "builds a graph for each action, which the memory keeps and the next round carries on"
                edits = under_no_grad(file, [statement], program.names(file))
                if edits:
                    yield Proposal(edits=edits, culprit=culprit_of(file, statement, why), belief=2.2)


def _loops(program: Program) -> Iterator[tuple[SourceFile, ast.For | ast.While]]:
    """The loops whose rounds go back, through however many functions."""
    for file in program.parsed():
        for node in file.walk():
            if isinstance(node, (ast.For, ast.While)) and _leads_to_backward(node, file, program):
                yield file, node


def _runs_network(value: ast.expr, file: SourceFile, program: Program, depth: int = 0) -> bool:
    """Whether an expression runs a module that is trained: itself, or in a function or method that it calls."""
    resolver = resolver_of(program)
    for call in (one for one in walk(value) if isinstance(one, ast.Call)):
        made = [one.node for one in resolver.constructors_of(Value(call.func, file)) if one.node is not call]
        if any(is_trained(one, program) for one in made):
            return True
        for callee in callees_of(call.func, file, program) if depth < _DEPTH else ():
            if any(
                _runs_network(one, callee.file, program, depth + 1)
                for one in walk(callee.function)
                if isinstance(one, ast.Call)
            ):
                return True
    return False


def _is_data(statement: ast.Assign, scope: Scope, file: SourceFile, program: Program) -> bool:
    """Whether what a statement binds, and what is made of it, goes into a memory and into no loss but through that."""
    if _leads_to_backward(statement.value, file, program):
        return False
    names = set(binds(statement))
    is_stored = False
    rest = [one for one in statements_of(scope) if one is not statement]
    for _ in range(2):  # the second time for what the round before has made
        for one in rest:
            value = value_of(one) if not isinstance(one, (ast.Return, ast.If, ast.While)) else _read_by(one)
            if value is None or not reads(value) & names:
                continue
            calls = [call for call in walk(value) if isinstance(call, ast.Call)]
            stored = [each for call in calls for each in stored_by(call, file, program)]
            if isinstance(one, ast.Expr) and stored:
                is_stored = is_stored or any(reads(each) & names for each in stored)
                continue
            if isinstance(one, ast.Return) or _leads_to_backward(value, file, program):
                return False
            names |= binds(one) | _receivers(one)
    if any(name.startswith("self.") for name in names):
        return False
    return is_stored and not (names & _in_losses(scope, file, program))


def _receivers(statement: ast.stmt) -> set[str]:
    """What a statement hands values to by a call: `log_probs` of `log_probs.append(x)`."""
    call = statement.value if isinstance(statement, ast.Expr) else None
    name = root_of(call.func) if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) else None
    return {name} if name is not None else set()


def _read_by(statement: ast.stmt) -> ast.expr | None:
    return getattr(statement, "value", None) or getattr(statement, "test", None)


def _in_losses(scope: Scope, file: SourceFile, program: Program) -> set[str]:
    """The names that gradients of the scope's own losses flow through, but for what comes out of a memory."""
    found: set[str] = set()
    todo = [
        (name, one.statement)
        for one in find_backwards(program)
        if one.file is file and scope_of(one.statement, file, program) is scope
        for name in reads(one.loss)
    ]
    seen: set[tuple[str, ast.stmt]] = set()
    while todo:
        name, at = todo.pop()
        if (name, at) in seen:
            continue
        seen.add((name, at))
        found.add(name)
        for made in definitions(name, at, scope):
            value = value_of(made, name)
            if value is not None and not is_without_grad(made, file, program) and not _stores(made, file, program):
                todo += [(each, made) for each in reads(value)]
    return found


def _stores(statement: ast.stmt, file: SourceFile, program: Program) -> bool:
    call = statement.value if isinstance(statement, ast.Expr) else None
    return isinstance(call, ast.Call) and bool(stored_by(call, file, program))


def _leads_to_backward(node: ast.AST, file: SourceFile, program: Program, depth: int = 0) -> bool:
    """Whether a call in a node runs a function that goes back."""
    if any(isinstance(one, ast.Attribute) and one.attr == "backward" for one in walk(node)):
        return True
    return depth < _DEPTH and any(
        _leads_to_backward(callee.function, callee.file, program, depth + 1)
        for call in walk(node)
        if isinstance(call, ast.Call)
        for callee in callees_of(call.func, file, program)
        if isinstance(callee.function, Function)
    )
