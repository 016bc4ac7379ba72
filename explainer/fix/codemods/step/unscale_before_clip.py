"""`scaler.unscale_(optimizer)` before a clip that a run was seen to do on gradients that still carry the scaler's factor.

It stands beside the clip where the scaler can be named there: in the function that steps, in a method of the object that does, in a
callback that is given this object (`trainer.scaler`) or its scaler and optimizer; else before the call of the helper that clips.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from explainer.fix.codemod import Context, Proposal, culprit_of, insert_before
from explainer.model.patch import Edit
from explainer.model.verification import CLIPS_SCALED
from explainer.source.loop.step import BACKWARD, CLIP, SCALER_STEP, UNSCALE, Act, block_with, find_acts
from explainer.source.name import Function, dotted_name
from explainer.source.program import Program
from explainer.source.tree import walk
from explainer.source.value.binding import parameters_of
from explainer.source.value.callee import leads_to

_SEEN = re.compile(rf"(\S+):(\d+) {re.escape(CLIPS_SCALED)}")
_LOOPS = (ast.For, ast.AsyncFor, ast.While)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Step:
    """The one call that steps the optimizer, and what it names the two."""

    act: Act
    scaler: str
    optimizer: str
    owner: ast.ClassDef | None

    @property
    def is_own(self) -> bool:
        """Whether both are attributes of the object whose method steps."""
        return self.owner is not None and all(
            one.startswith("self.") and one.count(".") == 1 for one in (self.scaler, self.optimizer)
        )


def propose(context: Context) -> Iterator[Proposal]:
    """An edit for the clip that was seen, where one optimizer is stepped behind it; else its line."""
    seen = {(found[1], int(found[2])) for one in context.incident.log if (found := _SEEN.search(one.text))}
    acts = list(find_acts(context.program)) if seen else []
    for clip in (one for one in acts if one.kind == CLIP):
        file = clip.file
        if (file.path.replace("\\", "/").rpartition("/")[2], clip.call.lineno) not in seen:
            continue
        edit = _unscaled(clip, acts, context.program)
        yield Proposal(
            edits=(edit,) if edit is not None else (),
            culprit=culprit_of(file, clip.call, "clips gradients that still carry the scaler's factor"),
            belief=2.0,
        )


def _unscaled(clip: Act, acts: Sequence[Act], program: Program) -> Edit | None:
    names = program.names(clip.file)
    function = names.function_of(clip.call)
    beside = [one for one in acts if one.file is clip.file and names.function_of(one.call) is function]
    step = _only_step(beside, program)
    if step is not None and not any(one.kind == UNSCALE for one in beside):
        return insert_before(
            clip.file, _first(clip, beside, step.act.statement), f"{step.scaler}.unscale_({step.optimizer})"
        )
    step = _only_step(acts, program)
    if step is None or function is None or any(one.kind == UNSCALE for one in acts):
        return None
    called = _helper(clip, step, acts, program)
    if called is not None:
        return insert_before(step.act.file, called, f"{step.scaler}.unscale_({step.optimizer})")
    text = _named_here(clip, function, step, program) if step.is_own else None
    return insert_before(clip.file, _first(clip, beside), text) if text is not None else None


def _only_step(acts: Sequence[Act], program: Program) -> _Step | None:
    steps = [one for one in acts if one.kind == SCALER_STEP]
    if len(steps) != 1 or not steps[0].call.args or not steps[0].object:
        return None
    (act,) = steps
    owner = program.names(act.file).class_of(act.call)
    return _Step(act=act, scaler=act.object, optimizer=act.file.segment(act.call.args[0]), owner=owner)


def _first(clip: Act, beside: Sequence[Act], step: ast.stmt | None = None) -> ast.stmt:
    """The statement that begins what a function clips: of several clips or ways to clip what holds them all, before a loop.

    Not further up than what the step stands in too.
    """
    file, above = clip.file, [clip.statement]
    clips = {one.statement for one in beside if one.kind == CLIP}
    while isinstance(parent := file.parents.get(above[-1]), ast.stmt):
        if isinstance(parent, (ast.FunctionDef, ast.AsyncFunctionDef)) or step in set(walk(parent)):
            break
        above.append(parent)
    blocks = [[one for one in block_with(each, file) if clips & set(walk(one))] for each in above]
    counts = [sum(len(clips & set(walk(one))) for one in block) for block in blocks]
    loops = [at for at, one in enumerate(above) if isinstance(one, _LOOPS)]
    return blocks[max([counts.index(max(counts)), *loops])][0]


def _helper(clip: Act, step: _Step, acts: Sequence[Act], program: Program) -> ast.stmt | None:
    """The statement between the backward and the step, beside the step, that calls what clips."""
    file, block = step.act.file, block_with(step.act.statement, step.act.file)
    backwards = [one.statement for one in acts if one.kind == BACKWARD]
    above = block[: block.index(step.act.statement)]
    found = [one for one in above if leads_to(clip.statement, one, file, program)]
    if not found or any(part in set(walk(found[0])) or leads_to(part, found[0], file, program) for part in backwards):
        return None
    behind = above[above.index(found[0]) :]
    return found[0] if not any(part in set(walk(one)) for one in behind for part in backwards) else None


def _named_here(clip: Act, function: Function, step: _Step, program: Program) -> str | None:
    """The call in the words of the function that clips; None where it knows neither the scaler nor the object that has it."""
    scaler, optimizer = step.scaler.partition(".")[2], step.optimizer.partition(".")[2]
    owner = program.names(clip.file).class_of(clip.call)
    if owner is step.owner:
        return f"{step.scaler}.unscale_({step.optimizer})"
    given = parameters_of(function)
    if {scaler, optimizer} <= set(given) and _passes({step.scaler, step.optimizer}, step):
        return f"{scaler}.unscale_({optimizer})"
    for name in _objects(clip, given):
        if _may_be(name, function, step):
            return f"{name}.{scaler}.unscale_({name}.{optimizer})"
    return None


def _objects(clip: Act, given: Sequence[str]) -> Iterator[str]:
    """The objects that the clipped parameters are read from: `trainer` of `trainer.model.parameters()`, `self.trainer`."""
    for node in walk(clip.call.args[0]) if clip.call.args else ():
        name = dotted_name(node) or ""
        root, _, rest = name.partition(".")
        if root in given and root != "self" and rest:
            yield root
        elif root == "self" and rest.count("."):
            yield f"self.{rest.partition('.')[0]}"


def _may_be(name: str, function: Function, step: _Step) -> bool:
    """Whether an object is the one that steps: it hands itself over, and has each attribute that the function reads."""
    if step.owner is None or not _passes({"self"}, step):
        return False
    own = {one.attr for one in walk(step.owner) if isinstance(one, ast.Attribute) and dotted_name(one.value) == "self"}
    own |= {one.name for one in step.owner.body if isinstance(one, (ast.FunctionDef, ast.AsyncFunctionDef))}
    read = {one.attr for one in walk(function) if isinstance(one, ast.Attribute) and dotted_name(one.value) == name}
    return bool(read) and read <= own


def _passes(names: set[str], step: _Step) -> bool:
    """Whether a method of the object that steps gives some values to a call."""
    return any(
        isinstance(one, ast.Call)
        and names <= {dotted_name(part) for part in (*one.args, *(each.value for each in one.keywords))}
        for one in walk(step.owner or step.act.call)
    )
