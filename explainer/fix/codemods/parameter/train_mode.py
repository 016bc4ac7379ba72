"""`model.train()` before the forward that backward goes through, where the model is in eval mode.

A program puts it there, or a `from_pretrained` does, which hands models out in eval mode.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from explainer.fix.codemod import Context, Proposal, culprit_of, insert_before
from explainer.source.file import SourceFile
from explainer.source.graph.write import find_writes
from explainer.source.loop.backward import find_backwards
from explainer.source.name import dotted_name
from explainer.source.network.eval_only import is_eval_only
from explainer.source.program import Program
from explainer.source.tree import walk
from explainer.source.value.flow import flow_of
from explainer.source.value.lineage import before, lineage, scope_of, statements_of


def propose(context: Context) -> Iterator[Proposal]:
    """An edit for each model that a loss goes through in eval mode."""
    if not context.has_failed:
        return
    program, seen = context.program, set[tuple[str, int]]()
    asleep = 1.0 if any(is_eval_only(one.node, one.file) for one in find_writes(program)) else 0.0
    for backward in find_backwards(program):
        file = backward.file
        scope = scope_of(backward.call, file, program)
        lines = [*lineage(backward.loss, backward.statement, file, program), backward.statement]
        for name, switched, why in (*_switched(file), *_loaded(file, program)):
            forward = next((one for one in lines if before(switched, one) and _runs(name, one)), None)
            if forward is None or scope is None or (name, forward.lineno) in seen:
                continue
            later = [one for one in statements_of(scope) if before(switched, one) and before(one, forward)]
            if any(_calls(one, name, "train") for one in later):
                continue
            seen.add((name, forward.lineno))
            yield Proposal(
                edits=(insert_before(file, forward, f"{name}.train()"),),
                culprit=culprit_of(file, switched, why),
                belief=(1.5 if _calls(switched, None, "eval") else 0.5) + asleep,
            )


def _switched(file: SourceFile) -> Iterator[tuple[str, ast.stmt, str]]:
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
            yield name, statement, f"puts `{name}` into eval mode, and it stays so for the training forward"


def _loaded(file: SourceFile, program: Program) -> Iterator[tuple[str, ast.stmt, str]]:
    """The trained models that `from_pretrained` hands out: `model = Auto.from_pretrained(p).to(d)`, `model, tokenizer = ...`."""
    modules = flow_of(program).modules
    for node in file.walk():
        if not isinstance(node, ast.Assign) or not isinstance(node.targets[0], (ast.Name, ast.Attribute, ast.Tuple)):
            continue
        if not _calls(node, None, "from_pretrained") or _calls(node, None, "train"):
            continue
        target = node.targets[0]
        name = dotted_name(target.elts[0] if isinstance(target, ast.Tuple) and target.elts else target)
        if name in modules:
            yield name, node, f"hands `{name}` out in eval mode, and nobody calls `{name}.train()`"


def _runs(name: str, statement: ast.stmt) -> bool:
    return any(isinstance(node, ast.Call) and dotted_name(node.func) == name for node in walk(statement))


def _calls(statement: ast.stmt, name: str | None, method: str) -> bool:
    """Whether a statement calls a method, of a name or (None) of anything."""
    calls = (node.func for node in walk(statement) if isinstance(node, ast.Call))
    return any(
        dotted_name(one) == f"{name}.{method}" if name else isinstance(one, ast.Attribute) and one.attr == method
        for one in calls
    )
