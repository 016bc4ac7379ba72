"""One loss, one backward: the second call on it goes, as does the caller's where a helper has called backward already."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from explainer.fix.codemod import Context, Proposal, culprit_of, remove_statement
from explainer.fix.crash import is_crash
from explainer.model.patch import Edit
from explainer.source.backward import Backward, find_backwards
from explainer.source.flow import flow_of
from explainer.source.lineage import before, definitions, lineage, scope_of, value_of
from explainer.source.name import Function, dotted_name
from explainer.source.pair import Pair, find_pairs
from explainer.source.program import Program
from explainer.source.tree import walk

_LIBRARY = "the call through the scaler or accelerator is kept: it scales the loss and gathers the gradients"


def propose(context: Context) -> Iterator[Proposal]:
    """An edit for each backward call whose loss has been differentiated before."""
    if not context.has_failed:
        return
    for pair in find_pairs(context.program):
        if _is_same_value(pair):
            yield from _drop(pair, context)
    calls = list(find_backwards(context.program))
    for one in calls:
        inner = _inside_helper(one, calls, context.program)
        if inner is not None and isinstance(one.statement, ast.Expr):
            why = f"differentiates `{one.file.segment(one.loss)}` again: `{inner}` has called backward on it"
            yield Proposal(
                edits=(remove_statement(one.file, one.statement),),
                culprit=culprit_of(one.file, one.call, why),
                belief=2.0 if is_crash(one.file, one.call, context) else 0.5,
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


def _inside_helper(one: Backward, calls: list[Backward], program: Program) -> str | None:
    """The function that made the loss and called backward on what it returns; None where there is none."""
    name, scope = dotted_name(one.loss), scope_of(one.call, one.file, program)
    made = definitions(name, one.statement, scope) if name and scope is not None else []
    for statement in made:
        value = value_of(statement, name or "")
        target = flow_of(program).target_of(value, one.file) if isinstance(value, ast.Call) else None
        if target is None:
            continue
        function = target[1]
        for inner in calls:
            if scope_of(inner.call, inner.file, program) is function and _is_returned(inner, function, program):
                return function.name
    return None


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
