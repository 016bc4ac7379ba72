"""What a training loop or its step is given, made once from weights, is computed in each round of the loop.

`prop = encoder.graph()` before `for batch in loader: step(net, batch, prop)` moves into the loop; where the loop itself is in
the function that is given the value, the function computes it from what else it is given.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from explainer.fix.codemod import Context, Proposal, culprit_of, insert_before, lines_of, remove_statement
from explainer.model.patch import Edit
from explainer.source.file import SourceFile
from explainer.source.loop.backward import Backward, find_backwards
from explainer.source.loop.carried import training_loops
from explainer.source.name import Function
from explainer.source.program import Program
from explainer.source.tree import children, walk
from explainer.source.value.binding import all_parameters, bounds_of
from explainer.source.value.flow import arguments_of, flow_of
from explainer.source.value.lineage import before, definitions, loop_of, reads, scope_of, sources, statements_of
from explainer.source.value.once import is_made_of_weights
from explainer.source.value.resolve import resolver_of

Loop = ast.For | ast.While


def propose(context: Context) -> Iterator[Proposal]:
    """An edit for each argument that a loss goes through and that is made before the loop."""
    if not context.has_failed:
        return
    program = context.program
    for backward in find_backwards(program):
        function = program.names(backward.file).function_of(backward.call)
        if function is None:
            continue
        names = _in_loss(backward, function, program)
        if loop_of(backward.call, backward.file) is None:
            yield from _of_step(function, names, program)
        else:
            yield from _of_loop(backward, function, names, program)


def _in_loss(backward: Backward, function: Function, program: Program) -> set[str]:
    """The parameters of a function that its loss goes through."""
    lines = sources(backward.loss, backward.statement, backward.file, program)
    found = set[str]().union(reads(backward.loss), *(reads(part) for _, part in lines))
    return found & all_parameters(function)


def _of_step(function: Function, names: set[str], program: Program) -> Iterator[Proposal]:
    """A loop that calls a step with a value of before the loop: the statement moves into the loop."""
    flow = flow_of(program)
    for file, loop, statement in training_loops(program):
        for call in (one for one in walk(statement) if isinstance(one, ast.Call)):
            target = flow.target_of(call, file)
            if target is None or target[1] is not function or loop_of(statement, file) is not loop:
                continue
            for name, value in arguments_of(call, function):
                made = _made(value, statement, file, program) if name in names else None
                if made is not None and before(made, loop):
                    yield from _moved(made, loop, file, program)


def _made(value: ast.expr, at: ast.stmt, file: SourceFile, program: Program) -> ast.Assign | None:
    """The one statement that makes a name's value from weights."""
    scope = scope_of(at, file, program)
    if not isinstance(value, ast.Name) or scope is None:
        return None
    if sum(1 for one in bounds_of(scope) if one.name == value.id) != 1:
        return None
    made = definitions(value.id, at, scope)
    one = made[0] if len(made) == 1 else None
    is_plain = isinstance(one, ast.Assign) and len(one.targets) == 1 and isinstance(one.targets[0], ast.Name)
    if not is_plain or not isinstance(one, ast.Assign) or not is_made_of_weights(one, scope, file, program):
        return None
    return one


def _moved(made: ast.Assign, loop: Loop, file: SourceFile, program: Program) -> Iterator[Proposal]:
    assert isinstance(made.targets[0], ast.Name)
    name = made.targets[0].id
    scope = scope_of(made, file, program)
    readers = [one for one in statements_of(scope) if one is not made and _reads(name, one)] if scope else []
    inside = [one for one in loop.body if _reads(name, one, deep=True)]
    if not inside or any(not loop.lineno < one.lineno <= (loop.end_lineno or 0) for one in readers):
        return
    edits = (remove_statement(file, made), insert_before(file, inside[0], lines_of(file, made)))
    why = f"is computed once, and its graph is gone after the first backward of the loop in line {loop.lineno}"
    yield Proposal(edits=edits, culprit=culprit_of(file, made, why), belief=1.6)


def _reads(name: str, statement: ast.stmt, *, deep: bool = False) -> bool:
    """Whether a statement reads a name: itself or, with `deep`, with the statements in it."""
    todo: list[ast.AST] = [statement]
    while todo:
        node = todo.pop()
        if isinstance(node, ast.Name) and node.id == name and isinstance(node.ctx, ast.Load):
            return True
        todo.extend(one for one in children(node) if deep or not isinstance(one, ast.stmt))
    return False


def _of_loop(backward: Backward, function: Function, names: set[str], program: Program) -> Iterator[Proposal]:
    """A function with the loop that is given the value: it computes it from its other arguments."""
    loop = loop_of(backward.call, backward.file)
    calls = resolver_of(program).calls_of(function, backward.file)
    if len(calls) != 1 or loop is None:
        return
    where, call = calls[0]
    given = dict(arguments_of(call, function))
    for name in sorted(names & set(given)):
        if any(one.name == name for one in bounds_of(function)):
            continue
        made = _made(given[name], where.statement(call), where, program)
        text = _in_terms_of(made.value, given, function, (where, backward.file), program) if made is not None else None
        first = next((one for one in loop.body if _reads(name, one, deep=True)), None)
        if made is None or text is None or first is None:
            continue
        edits: tuple[Edit, ...] = (insert_before(backward.file, first, f"{name} = {text}"),)
        why = f"is computed once, and its graph is gone after the first backward of the loop in `{function.name}`"
        yield Proposal(edits=edits, culprit=culprit_of(where, made, why), belief=1.5)


def _in_terms_of(
    value: ast.expr,
    given: dict[str, ast.expr],
    function: Function,
    files: tuple[SourceFile, SourceFile],
    program: Program,
) -> str | None:
    """A value of the caller written with the parameters that stand for its names; None where one has none.

    A name of the file means the same where both functions stand in it.
    """
    here, there = files
    own = {one.id: name for name, one in given.items() if isinstance(one, ast.Name)}
    scope = scope_of(value, here, program)
    inner = {node.id for node in walk(value) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    local = _names_of(scope) if isinstance(scope, (ast.FunctionDef, ast.AsyncFunctionDef)) else set()
    taken = _names_of(function)
    start, text = here.span(value)[0], here.segment(value)
    for node in sorted((one for one in walk(value) if isinstance(one, ast.Name)), key=lambda one: -here.span(one)[0]):
        if node.id in inner:
            continue
        if node.id in own:
            first, last = here.span(node)
            text = text[: first - start] + own[node.id] + text[last - start :]
        elif node.id in local or node.id in taken or here is not there:
            return None
    return text


def _names_of(function: Function) -> set[str]:
    return all_parameters(function) | {one.name for one in bounds_of(function)}
