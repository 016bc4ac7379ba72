"""A clip that a run has seen come before the backward whose gradients it is to bound moves between that and the step.

`clip_grad_norm_(...)`, `loss.backward()`, `optimizer.step()`, or a clip behind the step: what is clipped is nothing yet, or spent.
With what holds only the clip: `if limit:`, a method of its own. Nothing moves where it is not clear which step it is meant for,
or past what it needs or makes.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from explainer.fix.clue.crash import raised_at
from explainer.fix.codemod import (
    Context,
    Proposal,
    culprit_of,
    insert_after,
    insert_before,
    lines_of,
    remove_statement,
)
from explainer.model.incident import EARLY_CLIP
from explainer.model.patch import Edit
from explainer.model.verification import CLIPS_EARLY
from explainer.source.file import SourceFile
from explainer.source.loop.clip import Round, clips_at, is_free, levels, round_of
from explainer.source.loop.step import is_scaler
from explainer.source.program import Program
from explainer.source.tree import walk

_SEEN = re.compile(rf"(\S+):(\d+) {re.escape(CLIPS_EARLY)}")
_FACT = re.compile(r"(.+):(\d+)")
_WITHOUT_GRADIENTS = "nested_tensorlist[0].empty()"  # torch 2.13: `clip_grad_value_` where no parameter has a gradient


def propose(context: Context) -> Iterator[Proposal]:
    """The edit for each clip that was seen, else its line."""
    for file, call in clips_at(_seen(context), context.program):
        edits = _moved(file, call, context.program)
        yield Proposal(
            edits=edits,
            culprit=culprit_of(file, call, "clips gradients before the backward that makes them"),
            belief=3.0,
            is_origin=True,
        )


def _seen(context: Context) -> set[tuple[str, int]]:
    """The places of clips that a run has seen come too early, and of one that found no gradients at all and failed."""
    incident = context.incident
    found = [one for line in incident.log if (one := _SEEN.search(line.text))]
    found += [one for fact in incident.facts if fact.name == EARLY_CLIP and (one := _FACT.fullmatch(fact.value))]
    places = {(one[1], int(one[2])) for one in found}
    if any(_WITHOUT_GRADIENTS in one.message for one in incident.exceptions):
        for file, statement in raised_at(context):
            places.add((file.path.replace("\\", "/").rpartition("/")[2], statement.lineno))
    return places


def _moved(file: SourceFile, call: ast.Call, program: Program) -> tuple[Edit, ...]:
    for where, statement in levels(call, file, program):
        meant = round_of(statement, call, where, program)
        if meant is not None:
            return _behind(statement, meant, program)
    return ()


def _behind(statement: ast.stmt, meant: Round, program: Program) -> tuple[Edit, ...]:
    """The edits that put a statement behind the backward of a round, or behind what takes the scaler's factor off."""
    file, block = meant.file, list(meant.block)
    step = meant.steps[0] if meant.steps else None
    inner = list(_inner(step)) if step is not None else []
    behind = block[block.index(meant.backward) + 1 : block.index(step) if step is not None else None]
    unscaled = [one for one in (*behind, *inner[:-1]) if _calls(one, "unscale_")]
    scaled = inner[-1] if inner and _is_scaled(inner[-1], file, program) and not unscaled else None
    text = lines_of(file, statement)
    if scaled is not None:
        target, put = scaled, insert_before(file, scaled, f"{_unscale(scaled, file)}\n{text}")
    elif unscaled or len(inner) < 2:
        target = unscaled[-1] if unscaled else meant.backward
        put = insert_after(file, target, text)
    else:
        target, put = inner[-1], insert_before(file, inner[-1], text)
    low, high = sorted((statement, target), key=lambda one: one.lineno)
    passed = [one for one in block if low.lineno <= one.lineno <= high.lineno and one is not statement]
    if not is_free(statement, passed) or any(_calls(one, "clip_grad_norm_", "clip_grad_value_") for one in behind):
        return ()
    return remove_statement(file, statement), put


def _inner(step: ast.stmt) -> Iterator[ast.stmt]:
    """What stands in the block of a step up to it: the step alone, or what its `if` runs before it."""
    if isinstance(step, ast.If) and not step.orelse:
        for one in step.body:
            yield one
            if _calls(one, "step"):
                return
    else:
        yield step


def _calls(node: ast.AST, *methods: str) -> bool:
    return any(
        isinstance(one, ast.Call) and (getattr(one.func, "attr", "") or getattr(one.func, "id", "")) in methods
        for one in walk(node)
    )


def _is_scaled(step: ast.stmt, file: SourceFile, program: Program) -> bool:
    """Whether a statement is a GradScaler's `step(optimizer)`."""
    call = step.value if isinstance(step, ast.Expr) else None
    if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Attribute) or not call.args:
        return False
    return is_scaler(call.func.value, file, program)


def _unscale(step: ast.stmt, file: SourceFile) -> str:
    assert isinstance(step, ast.Expr)
    assert isinstance(step.value, ast.Call)
    assert isinstance(step.value.func, ast.Attribute)
    return f"{file.segment(step.value.func.value)}.unscale_({file.segment(step.value.args[0])})"
