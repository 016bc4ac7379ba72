"""The gradient of a result is kept where the program reads it: `scaled.retain_grad()` behind `scaled = standardise(window)`.

Only where the name is bound once, to a result: what is bound anew in each round of an update is to be a leaf.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from explainer.fix.codemod import Context, Proposal, culprit_of, insert_after
from explainer.fix.failure import failing_statements
from explainer.source.binding import bounds_of, scope_of
from explainer.source.file import SourceFile
from explainer.source.lineage import block_of
from explainer.source.name import dotted_name
from explainer.source.tree import walk


def propose(context: Context) -> Iterator[Proposal]:
    """An edit for each result whose gradient the failing statement reads, or the function around it."""
    if not context.has_failed:
        return
    for file, statement in failing_statements(context)[:1]:
        for node in walk(statement):
            if isinstance(node, ast.Attribute) and node.attr == "grad" and isinstance(node.ctx, ast.Load):
                yield from _kept(node.value, statement, file)


def _kept(owner: ast.expr, statement: ast.stmt, file: SourceFile) -> Iterator[Proposal]:
    name = dotted_name(owner)
    made = [one for one in bounds_of(scope_of(owner, file)) if one.name == name and not one.fills]
    if name is None or len(made) != 1 or not isinstance(made[0].statement, ast.Assign):
        return
    binding = made[0].statement
    later = [one for one in walk(scope_of(owner, file)) if isinstance(one, ast.Call) and _called(one, name)]
    is_leaf = any(
        (isinstance(one, ast.Attribute) and one.attr == "requires_grad_") or getattr(one, "arg", "") == "requires_grad"
        for one in walk(binding.value)
    )
    is_above = binding.lineno < statement.lineno and set(block_of(binding, file)) & set(_around(statement, file))
    if later or is_leaf or not is_above:
        return
    yield Proposal(
        edits=(insert_after(file, binding, f"{name}.retain_grad()"),),
        culprit=culprit_of(file, statement, f"reads the gradient of `{name}`, which is a result: only leaves keep theirs"),
        belief=1.5,
    )  # fmt: skip


def _called(node: ast.Call, name: str) -> bool:
    """Whether a call makes a leaf of a name, or keeps its gradient."""
    return dotted_name(node.func) in (f"{name}.requires_grad_", f"{name}.retain_grad")


def _around(statement: ast.stmt, file: SourceFile) -> Iterator[ast.stmt]:
    """A statement and those that it stands in."""
    above: ast.AST | None = statement
    while above is not None:
        if isinstance(above, ast.stmt):
            yield above
        above = file.parents.get(above)
