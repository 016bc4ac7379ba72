"""GradScaler's calls in their order: scale the loss, unscale once a step and before clipping, step, update.

`loss.backward()` becomes `scaler.scale(loss).backward()`; an `unscale_` that runs with every batch moves, with the clipping
after it, to where the optimizer is stepped; `optimizer.step()` beside a scaler becomes `scaler.step(optimizer)`; a clip before
the unscaling follows it; a missing `update` is added.
"""

from __future__ import annotations

import ast
import itertools
import os
from collections.abc import Iterator, Sequence

from explainer.fix.clue.crash import message_of, raised_at
from explainer.fix.codemod import Context, Proposal, culprit_of, edit_of, insert_after, insert_before, remove_statement
from explainer.fix.text.rewrite import replace_whole
from explainer.model.patch import Edit
from explainer.source.file import SourceFile
from explainer.source.loop.step import (
    BACKWARD,
    CLIP,
    OPTIMIZER_STEP,
    SCALE,
    SCALER_STEP,
    UNSCALE,
    UPDATE,
    Act,
    block_with,
    find_acts,
)
from explainer.source.program import Program
from explainer.source.tree import walk
from explainer.source.value.callee import leads_to
from explainer.source.value.lineage import block_of
from explainer.source.value.resolve import resolver_of

_AFTER_STEP = "unscale_() is being called after step()"
_TWICE = "unscale_() has already been called on this optimizer"


def propose(context: Context) -> Iterator[Proposal]:
    """Edits of the calls that stand out of order, in each function with a scaler."""
    if not context.has_failed:
        return
    yield from _unscaled_by_helper(context)
    functions: dict[ast.AST | None, list[Act]] = {}
    for act in find_acts(context.program):
        functions.setdefault(context.program.names(act.file).function_of(act.call), []).append(act)
    message = context.incident.exceptions[-1].message if context.incident.exceptions else ""
    if _AFTER_STEP in message:
        every = list(find_acts(context.program))
        yield from _stepped_early(_of(every, SCALER_STEP), every, context.program)
    for acts in functions.values():
        scalers = {one.object for one in acts if one.kind in (SCALER_STEP, UNSCALE, SCALE)}
        if len(scalers) == 1:
            yield from _unscaled(acts, scalers.pop())
            yield from _unscaled_twice(acts)
            yield from _stepped_plainly(acts)
            yield from _without_update(acts, message)


def _unscaled_by_helper(context: Context) -> Iterator[Proposal]:
    """A second `unscale_` of one step, behind a call that unscales in a function of its own: the gradients are unscaled by then."""
    program = context.program
    if _TWICE not in message_of(context):
        return
    acts = list(find_acts(program))
    refused = [one for one in _of(acts, UNSCALE) for _, at in raised_at(context) if one.statement is at]
    for one in refused if len(refused) == 1 else ():
        block = list(block_of(one.statement, one.file))
        at = block.index(one.statement) if one.statement in block else 0
        backwards = [place for place, each in enumerate(block[:at]) if _has(each, acts, BACKWARD)]
        between = block[backwards[-1] + 1 : at] if backwards else []
        others = [each.statement for each in _of(acts, UNSCALE) if each is not one]
        helped = [each for each in between for other in others if leads_to(other, each, one.file, program)]
        if helped and any(_has(each, acts, SCALER_STEP) for each in block[at:]) and isinstance(one.statement, ast.Expr):
            why = f"unscales what line {helped[0].lineno} has unscaled in a function of its own"
            yield Proposal(
                edits=(remove_statement(one.file, one.statement),), culprit=culprit_of(one.file, one.call, why), belief=2.5,
                title="Unscale once a step: the helper has done it",
                because="the gradients are the same from there on, for the clipping and the step",
            )  # fmt: skip
        first = next(
            (each for each in _of(acts, UNSCALE) if each is not one and _runs_behind(one, each, acts, program)), None
        ) or _by_sibling(one, acts, program)
        if first is not None and isinstance(one.statement, ast.Expr):
            why = f"unscales again what {os.path.basename(first.file.path)}:{first.call.lineno} has unscaled in the same step"
            yield Proposal(
                edits=(remove_statement(one.file, one.statement),), culprit=culprit_of(one.file, one.call, why), belief=2.5,
                title="Unscale once a step: it has been done before",
                because="what is read here is unscaled by then, and so are the gradients of the step",
            )  # fmt: skip


def _runs_behind(second: Act, first: Act, acts: Sequence[Act], program: Program) -> bool:
    """Whether an `unscale_` in a helper runs behind another one, before the scaler steps, wherever the helper is called."""
    function = program.names(second.file).function_of(second.call)
    if function is None or function is program.names(first.file).function_of(first.call):
        return False
    block = list(block_of(first.statement, first.file))
    at = block.index(first.statement) if first.statement in block else len(block)
    ends = [place for place, each in enumerate(block) if place > at and _has(each, acts, SCALER_STEP)]
    between = block[at + 1 : ends[0]] if ends else []
    runs = [each for each in between if leads_to(second.statement, each, first.file, program)]
    calls = resolver_of(program).calls_of(function, second.file)
    return bool(runs) and all(file is first.file and any(call in walk(each) for each in runs) for file, call in calls)


def _by_sibling(second: Act, acts: Sequence[Act], program: Program) -> Act | None:
    """The one `unscale_` in the method of that name of another class, as callbacks have it, that runs whenever the method does."""
    names = program.names(second.file)
    function, owner = names.function_of(second.call), names.class_of(second.call)
    found = []
    for each in _of(acts, UNSCALE):
        where = program.names(each.file)
        method = where.function_of(each.call)
        is_alike = (
            function is not None and method is not None and method.name == function.name and method is not function
        )
        if not is_alike or method is None or owner is None or where.class_of(each.call) in (None, owner):
            continue
        before = method.body[: method.body.index(each.statement)] if each.statement in method.body else None
        if before is not None and not any(isinstance(node, ast.Return) for one in before for node in walk(one)):
            found.append(each)
    return found[0] if len(found) == 1 else None


def _has(statement: ast.stmt, acts: Sequence[Act], kind: str) -> bool:
    return any(one.statement is statement for one in _of(acts, kind))


def _of(acts: Sequence[Act], kind: str) -> list[Act]:
    return [one for one in acts if one.kind == kind]


def _unscaled(acts: Sequence[Act], scaler: str) -> Iterator[Proposal]:
    """A loss that is sent back as it is, where the scaler steps afterwards."""
    scaled = {one.statement for one in _of(acts, SCALE)}
    plain = [one for one in _of(acts, BACKWARD) if one.statement not in scaled]
    # A loss that was scaled under another name is not plain: `scaled = scaler.scale(loss); scaled.backward()`.
    names = {
        target.id for one in _of(acts, SCALE) if isinstance(one.statement, ast.Assign)
        for target in one.statement.targets if isinstance(target, ast.Name)
    }  # fmt: skip
    plain = [one for one in plain if one.object not in names]
    if not _of(acts, SCALER_STEP) or not plain or not scaler:
        return
    file = plain[0].file
    yield Proposal(
        edits=tuple(
            replace_whole(one.file, one.subject, f"{scaler}.scale({one.file.segment(one.subject)})") for one in plain
        ),
        culprit=culprit_of(file, plain[0].call, "sends the loss back without the scaler's factor"),
        belief=1.5,
    )


def _unscaled_twice(acts: Sequence[Act]) -> Iterator[Proposal]:
    """An `unscale_` in a block that runs more often than the scaler's step: it moves to the step, with what follows it."""
    for unscale in _of(acts, UNSCALE):
        file = unscale.file
        steps = [one for one in _of(acts, SCALER_STEP) if _is_deeper(one.statement, unscale.statement, file)]
        if not steps or ast.dump(unscale.call.args[0]) != ast.dump(steps[0].call.args[0]):
            continue
        moved = _with_clips(unscale, acts)
        text = "\n".join(file.segment(one) for one in moved)
        # What stands in the block before the step has found gradients unscaled so far, and may look at them.
        first = block_with(steps[0].statement, file)[0]
        edits = [insert_before(file, first, text), *(remove_statement(file, one) for one in moved)]
        yield Proposal(
            edits=tuple(edits),
            culprit=culprit_of(file, unscale.call, "unscales after every batch, while the scaler steps less often"),
            belief=1.8,
        )
    yield from _repeated(acts)


def _repeated(acts: Sequence[Act]) -> Iterator[Proposal]:
    """Two `unscale_` of one optimizer in a row: the later one goes."""
    unscales = _of(acts, UNSCALE)
    for first, second in itertools.pairwise(unscales):
        same = ast.dump(first.call) == ast.dump(second.call)
        between = [
            one for one in acts if one.kind == UPDATE and first.call.lineno < one.call.lineno < second.call.lineno
        ]
        if (
            same
            and not between
            and block_with(first.statement, first.file) == block_with(second.statement, second.file)
        ):
            yield Proposal(
                edits=(remove_statement(second.file, second.statement),),
                culprit=culprit_of(second.file, second.call, "unscales gradients that were unscaled already"),
                belief=1.5,
            )


def _stepped_early(steps: Sequence[Act], acts: Sequence[Act], program: Program) -> Iterator[Proposal]:
    """`scaler.step(opt)` before `scaler.unscale_(opt)` and what clips by it, also in a helper: the step follows both."""
    for step in steps:
        file, block = step.file, list(block_of(step.statement, step.file))
        behind = block[block.index(step.statement) + 1 :] if step.statement in block else []
        last = next((end for one in behind if (end := _unscales(one, step, acts, program)) is not None), None)
        if last is None:
            continue
        updates = [one.statement for one in _of(acts, UPDATE) if one.statement in behind]
        text = file.segment(step.statement)
        put = insert_before(file, updates[0], text) if updates else insert_after(file, last, text)
        yield Proposal(
            edits=(remove_statement(file, step.statement), put),
            culprit=culprit_of(file, step.call, "steps before the gradients are unscaled and clipped"),
            belief=2.2,
            title="Step after unscaling and clipping: `unscale_`, clip, `scaler.step`, `scaler.update`",
        )


def _unscales(statement: ast.stmt, step: Act, acts: Sequence[Act], program: Program) -> ast.stmt | None:
    """The last statement of an unscaling of the optimizer that a step is of: itself with its clips, or the call of a helper."""
    for one in _of(acts, UNSCALE):
        if one.statement is statement and ast.dump(one.call.args[0]) == ast.dump(step.call.args[0]):
            return _with_clips(one, acts)[-1]
        if one.statement is not statement and leads_to(one.statement, statement, step.file, program):
            return statement
    return None


def _stepped_plainly(acts: Sequence[Act]) -> Iterator[Proposal]:
    """A scaled backward, and an optimizer that is stepped past the scaler: its gradients are still multiplied."""
    scales, steps = _of(acts, SCALE), _of(acts, OPTIMIZER_STEP)
    if not scales or not steps or _of(acts, SCALER_STEP):
        return
    scaler = scales[0].object
    for one in steps:
        edits = [edit_of(one.file, one.call, f"{scaler}.step({one.file.segment(one.subject)})")]
        if not _of(acts, UPDATE):
            edits.append(insert_after(one.file, one.statement, f"{scaler}.update()"))
        yield Proposal(
            edits=tuple(edits),
            culprit=culprit_of(one.file, one.call, "steps with gradients that still carry the scaler's factor"),
            belief=1.5,
        )


def _is_deeper(step: ast.stmt, unscale: ast.stmt, file: SourceFile) -> bool:
    """Whether the step stands under an `if` that follows the unscaling in its block."""
    block = block_with(unscale, file)
    after = block[block.index(unscale) + 1 :] if unscale in block else []
    return any(isinstance(one, ast.If) and step in one.body for one in after)


def _with_clips(unscale: Act, acts: Sequence[Act]) -> list[ast.stmt]:
    """The unscaling and the clippings right after it."""
    block = block_with(unscale.statement, unscale.file)
    clips = {one.statement for one in _of(acts, CLIP)}
    moved = [unscale.statement]
    for one in block[block.index(unscale.statement) + 1 :]:
        if one not in clips:
            break
        moved.append(one)
    return moved


def _without_update(acts: Sequence[Act], message: str) -> Iterator[Proposal]:
    """A scaler that steps and never updates, or not in each round: the next `unscale_` or `step` finds the last one's state."""
    steps, updates = _of(acts, SCALER_STEP), _of(acts, UPDATE)
    if not steps or "since the last update" not in message:
        return
    last = steps[-1]
    if not updates:
        edit: Edit = insert_after(last.file, last.statement, f"{last.object}.update()")
        yield Proposal(
            edits=(edit,),
            culprit=culprit_of(last.file, last.call, "steps; `update()` never follows, so the scaler's state stays"),
            belief=1.5,
        )
        return
    update, file = updates[-1], updates[-1].file
    branch = file.enclosing(update.statement, ast.If, ast.For, ast.While, ast.FunctionDef, ast.AsyncFunctionDef)
    first = (
        next((one for one in steps if one.statement in block_of(branch, file)), None)
        if isinstance(branch, ast.If)
        else None
    )
    is_last = isinstance(branch, ast.If) and not branch.orelse and update.statement is branch.body[-1]
    if first is None or not isinstance(branch, ast.If) or not is_last or len(updates) > 1:
        return
    yield Proposal(
        edits=(
            remove_statement(file, update.statement),
            insert_after(file, branch, file.segment(update.statement)),
        ),
        culprit=culprit_of(
            file, update.call, f"updates in some rounds only, and line {first.call.lineno} steps in each of them"
        ),
        belief=1.8,
    )
