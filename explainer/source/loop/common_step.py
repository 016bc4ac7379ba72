"""Two steps that concern one network: optimizers that share it, and the climb and descent of sharpness-aware minimisation."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from explainer.source.loop.backward import Backward, stepped
from explainer.source.loop.ownership import owned_by
from explainer.source.loop.update import Update, find_updates
from explainer.source.program import Program
from explainer.source.value.lineage import block_of

_CLIMBS = frozenset({"first_step", "ascent_step", "perturb_step", "climb"})


def climbs(statement: ast.stmt) -> bool:
    """Whether a statement takes the first of two steps, up to where the gradient is to be taken: `optimizer.first_step()`."""
    call = statement.value if isinstance(statement, ast.Expr) else None
    return isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and call.func.attr in _CLIMBS


def shared_steps(backward: Backward, program: Program) -> Iterator[tuple[ast.stmt, frozenset[str]]]:
    """The steps before a backward of an optimizer that shares networks with another one which steps behind it, with these."""
    file = backward.file
    block = block_of(backward.statement, file)
    if backward.statement not in block:
        return
    at = block.index(backward.statement)
    behind = [(name, one) for one in block[at + 1 :] if (name := stepped(one)) is not None]
    if isinstance(backward, Update) and backward.steps and backward.optimizer is not None:
        behind.insert(0, (backward.optimizer, backward.statement))
    for one in block[:at]:
        optimizer = _stepped(one, program)
        owned = owned_by(optimizer, one, file, program) if optimizer is not None else frozenset()
        for other, statement in behind:
            shared = owned & owned_by(other, statement, file, program)
            if other != optimizer and shared:
                yield one, shared


def _stepped(statement: ast.stmt, program: Program) -> str | None:
    """The optimizer that a statement steps, itself or by a function that goes back and steps."""
    found = (one.optimizer for one in find_updates(program) if one.steps and one.statement is statement)
    return next(found, None) or stepped(statement)
