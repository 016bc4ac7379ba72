"""One loss, one backward: the second call on it goes, as does the caller's where a helper has called backward already.

The helper's own goes where the caller scales the loss first, `(loss / parts).backward()`, or calls it through a library.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from explainer.fix.clue.crash import is_crash, raised_at
from explainer.fix.clue.trace import traced_statements
from explainer.fix.codemod import Context, Proposal, culprit_of, remove_statement
from explainer.model.patch import Edit
from explainer.model.trace import FREED, FREED_WHOLE
from explainer.source.loop.backward import Backward, cleared, find_backwards
from explainer.source.loop.pair import Pair, find_pairs
from explainer.source.name import Function, Names, dotted_name
from explainer.source.program import Program
from explainer.source.tree import walk
from explainer.source.value.flow import flow_of
from explainer.source.value.lineage import before, block_of, definitions, lineage, scope_of, value_of
from explainer.source.value.number import number_of
from explainer.source.value.resolve import resolver_of

_LIBRARY = "the call through the scaler or accelerator is kept: it scales the loss and gathers the gradients"


def propose(context: Context) -> Iterator[Proposal]:
    """An edit for each backward call whose loss has been differentiated before."""
    if not context.has_failed:
        return
    for pair in find_pairs(context.program):
        if _is_same_value(pair):
            yield from _drop(pair, context)
    yield from _of_other_functions(context)
    calls = list(find_backwards(context.program))
    for one in calls:
        found = _inside_helper(one, calls, context.program)
        if found is None or not isinstance(one.statement, ast.Expr):
            continue
        function, inner = found
        near = 2.0 if is_crash(one.file, one.call, context) else 0.5
        is_more = dotted_name(one.loss) is None or (_is_library(one) and not _is_library(inner))
        if not is_more:
            why = f"differentiates `{one.file.segment(one.loss)}` again: `{function.name}` has called backward on it"
            yield Proposal(
                edits=(remove_statement(one.file, one.statement),),
                culprit=culprit_of(one.file, one.call, why),
                belief=near,
            )
        elif (
            isinstance(inner.statement, ast.Expr)
            and len(resolver_of(context.program).calls_of(function, inner.file)) == 1
        ):
            why = f"differentiates what `{function.name}` returns, and its caller does so with a factor or a library"
            yield Proposal(
                edits=(remove_statement(inner.file, inner.statement),),
                culprit=culprit_of(inner.file, inner.call, why),
                belief=near,
                because="the caller's call is kept: it scales the loss as the step is meant to",
            )


def _of_other_functions(context: Context) -> Iterator[Proposal]:
    """Two calls in functions of their own that a trace saw go through one loss: a runner's and its hook's.

    The first one goes where gradients are cleared right before the second: without that nothing would be left to step with.
    """
    program = context.program
    if context.incident.fact(FREED_WHOLE) is None:
        return
    calls = [one for one in find_backwards(program) if isinstance(one.statement, ast.Expr) and one.is_plain]
    freed = [statement for _, _, statement in traced_statements(FREED, context)]
    first = [one for one in calls if one.statement in freed]
    second = [one for one in calls for _, at in raised_at(context) if one.statement is at]
    if len(first) != 1 or len(second) != 1 or first[0].retains is not None:
        return
    (one,), (other,) = first, second
    if scope_of(one.call, one.file, program) is scope_of(other.call, other.file, program):
        return
    block = block_of(other.statement, other.file)
    is_cleared = any(cleared(each) for each in block[: list(block).index(other.statement)])
    extra = one if is_cleared else other
    why = "differentiates a loss that another function goes back through as well, in the same step"
    yield Proposal(
        edits=(remove_statement(extra.file, extra.statement),),
        culprit=culprit_of(extra.file, extra.call, why),
        belief=2.4,
    )


def _is_same_value(pair: Pair) -> bool:
    """Whether both calls are given one name that is not bound anew between them, and neither keeps the graph."""
    name = dotted_name(pair.first.loss)
    if name is None or name != dotted_name(pair.second.loss) or pair.first.retains is not None:
        return False
    if any(before(pair.first.statement, one) for one in pair.second_lines):
        return False
    return isinstance(pair.first.statement, ast.Expr) and isinstance(pair.second.statement, ast.Expr)


def _drop(pair: Pair, context: Context) -> Iterator[Proposal]:
    """The plain call goes where the other one is a library's; else the second."""
    extra = pair.second
    if _is_library(pair.second) and not _is_library(pair.first):
        extra = pair.first
    edits: tuple[Edit, ...] = (remove_statement(pair.file, extra.statement),)
    yield Proposal(
        edits=edits,
        culprit=culprit_of(
            pair.file, extra.call, f"differentiates `{pair.file.segment(extra.loss)}` a second time in one step"
        ),
        belief=2.0 if is_crash(pair.file, pair.second.call, context) else 0.5,
        because=_LIBRARY if _is_library(pair.first) != _is_library(pair.second) else None,
    )


def _is_library(backward: Backward) -> bool:
    return backward.loss is not getattr(backward.call.func, "value", None)


def _inside_helper(one: Backward, calls: list[Backward], program: Program) -> tuple[Function, Backward] | None:
    """The function that made the loss and called backward on what it returns, and that call; None where there is none."""
    name, scope = _loss_name(one.loss, program.names(one.file)), scope_of(one.call, one.file, program)
    made = definitions(name, one.statement, scope) if name and scope is not None else []
    for statement in made:
        value = value_of(statement, name or "")
        target = flow_of(program).target_of(value, one.file) if isinstance(value, ast.Call) else None
        if target is None:
            continue
        function = target[1]
        for inner in calls:
            if scope_of(inner.call, inner.file, program) is function and _is_returned(inner, function, program):
                return function, inner
    return None


def _loss_name(loss: ast.expr, names: Names) -> str | None:
    """The name of a loss, also of one that is scaled: `loss / parts`."""
    if isinstance(loss, ast.BinOp) and isinstance(loss.op, (ast.Mult, ast.Div)):
        left, right = dotted_name(loss.left), dotted_name(loss.right)
        is_number = number_of(loss.left, names) is not None
        return right if is_number and isinstance(loss.op, ast.Mult) else left
    return dotted_name(loss)


def _is_returned(inner: Backward, function: Function, program: Program) -> bool:
    """Whether the function returns what it has called backward on."""
    names = {dotted_name(inner.loss)}
    for one in walk(function):
        if not isinstance(one, ast.Return) or one.value is None or inner.retains is not None:
            continue
        parts = one.value.elts if isinstance(one.value, ast.Tuple) else [one.value]
        if any(dotted_name(part) in names for part in parts):
            return True
        lines = lineage(inner.loss, inner.statement, inner.file, program)
        if any(
            isinstance(part, ast.Name) and line in definitions(part.id, one, function)
            for part in parts
            for line in lines
        ):
            return False
    return False
