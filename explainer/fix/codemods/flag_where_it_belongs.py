"""Takes `requires_grad = ...` off a computed tensor: gone where it requires grad anyway, on the leaf where it is computed from one.

`hidden.requires_grad = True` goes (`hidden.retain_grad()` where its gradient is read); `layer.weight.requires_grad = False` of a
pruned layer becomes `layer.weight_orig...`; a tensor that should get no gradient is detached.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from explainer.fix.codemod import Context, Proposal, culprit_of, edit_of, remove_statement
from explainer.fix.failure import failing_statements
from explainer.source.binding import Value, scope_of
from explainer.source.file import SourceFile
from explainer.source.name import dotted_name
from explainer.source.provenance import provenance_of
from explainer.source.tree import walk

_COMPUTED = {
    "torch.nn.utils.prune.": "weight_orig",
    "torch.nn.utils.weight_norm": "weight_v",
    "torch.nn.utils.spectral_norm": "weight_orig",
}


def propose(context: Context) -> Iterator[Proposal]:
    """An edit for the failing statement that sets a flag on a tensor which is no leaf."""
    if not context.has_failed:
        return
    for file, statement in failing_statements(context)[:1]:
        owner, state = _flag(statement)
        if owner is None or state is None:
            continue
        computed = _leaf_behind(owner, file, context)
        name = file.segment(owner)
        if computed is not None:
            yield Proposal(
                edits=(edit_of(file, owner, computed),),
                culprit=culprit_of(file, statement, f"sets the flag on `{name}`, which is computed from `{computed}`"),
                belief=2.0,
            )
        elif state and _is_read(owner, file):
            yield Proposal(
                edits=(edit_of(file, statement, f"{name}.retain_grad()"),),
                culprit=culprit_of(
                    file, statement, f"`{name}` is no leaf; its gradient is kept only where that is asked for"
                ),
                belief=1.5,
            )
        elif state and provenance_of(context.program).trace(Value(owner, file)).live:
            yield Proposal(
                edits=(remove_statement(file, statement),),
                culprit=culprit_of(
                    file, statement, f"sets a flag that `{name}` has already, as the result of the layers before"
                ),
                belief=2.0,
            )
        elif (
            not state and provenance_of(context.program).trace(Value(owner, file)).live and isinstance(owner, ast.Name)
        ):
            yield Proposal(
                edits=(edit_of(file, statement, f"{name} = {name}.detach()"),),
                culprit=culprit_of(file, statement, f"`{name}` is no leaf; it ends the graph where it is detached"),
                belief=1.5,
            )


def _flag(statement: ast.stmt) -> tuple[ast.expr | None, bool | None]:
    """The tensor whose flag a statement sets, and the state."""
    if isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Attribute):
        target = statement.targets[0]
        if target.attr == "requires_grad" and isinstance(statement.value, ast.Constant):
            return target.value, bool(statement.value.value)
    if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call):
        func = statement.value.func
        if isinstance(func, ast.Attribute) and func.attr == "requires_grad_":
            first = statement.value.args[0] if statement.value.args else None
            return func.value, not (isinstance(first, ast.Constant) and first.value is False)
    return None, None


def _leaf_behind(owner: ast.expr, file: SourceFile, context: Context) -> str | None:
    """The leaf that a pruned or normalised layer computes its weight from."""
    if not isinstance(owner, ast.Attribute) or owner.attr not in ("weight", "bias"):
        return None
    called = [context.program.names(file).qualified(one.func) or "" for one in file.walk() if isinstance(one, ast.Call)]
    for prefix, leaf in _COMPUTED.items():
        if any(one.startswith(prefix) for one in called):
            return f"{file.segment(owner.value)}.{leaf.replace('weight', owner.attr)}"
    return None


def _is_read(owner: ast.expr, file: SourceFile) -> bool:
    """Whether the gradient of the tensor is read in its scope."""
    name = dotted_name(owner)
    return any(
        isinstance(one, ast.Attribute) and one.attr == "grad" and dotted_name(one.value) == name
        for one in walk(scope_of(owner, file))
    )
