"""`model.train()` before the forward that backward goes through, where a program has put the model into eval mode."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from explainer.fix.codemod import Context, Proposal, culprit_of, insert_before
from explainer.source.backward import find_backwards
from explainer.source.file import SourceFile
from explainer.source.lineage import before, lineage, scope_of, statements_of
from explainer.source.name import dotted_name


def propose(context: Context) -> Iterator[Proposal]:
    """An edit for each model that a loss goes through in eval mode."""
    if not context.has_failed:
        return
    program, seen = context.program, set[tuple[str, int]]()
    for backward in find_backwards(program):
        file = backward.file
        scope = scope_of(backward.call, file, program)
        lines = [*lineage(backward.loss, backward.statement, file, program), backward.statement]
        for name, switched in _switched(file):
            forward = next((one for one in lines if before(switched, one) and _runs(name, one)), None)
            if forward is None or scope is None or (name, forward.lineno) in seen:
                continue
            later = [one for one in statements_of(scope) if before(switched, one) and before(one, forward)]
            if any(_calls(one, name, "train") for one in later):
                continue
            seen.add((name, forward.lineno))
            yield Proposal(
                edits=(insert_before(file, forward, f"{name}.train()"),),
                culprit=culprit_of(
                    file, switched, f"puts `{name}` into eval mode, and it stays so for the training forward"
                ),
                belief=1.5,
            )


def _switched(file: SourceFile) -> Iterator[tuple[str, ast.stmt]]:
    """The names that a statement puts into eval mode: `model.eval()`, `model = Net().eval()`."""
    for node in file.walk():
        func = node.func if isinstance(node, ast.Call) else None
        if not isinstance(func, ast.Attribute) or func.attr != "eval":
            continue
        statement = file.statement(node)
        name = dotted_name(func.value)
        if name is None and isinstance(statement, ast.Assign) and statement.value is node:
            name = dotted_name(statement.targets[0])
        if name:
            yield name, statement


def _runs(name: str, statement: ast.stmt) -> bool:
    return any(isinstance(node, ast.Call) and dotted_name(node.func) == name for node in ast.walk(statement))


def _calls(statement: ast.stmt, name: str, method: str) -> bool:
    return any(
        isinstance(node, ast.Call) and dotted_name(node.func) == f"{name}.{method}" for node in ast.walk(statement)
    )
