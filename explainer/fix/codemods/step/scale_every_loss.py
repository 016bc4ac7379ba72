"""`scaler.scale(loss).backward()` where a run was seen to send a loss backward without the factor that the others have.

The scaler is the one that the function has, its object or its module; else the callers hand it down.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence

from explainer.fix.codemod import Context, Proposal, culprit_of
from explainer.fix.text.hand_down import HandedDown, hand_down
from explainer.fix.text.rewrite import replace_whole
from explainer.model.patch import Edit
from explainer.model.verification import LACKS_FACTOR
from explainer.source.file import SourceFile
from explainer.source.loop.step import BACKWARD, SCALE, SCALER_STEP, UNSCALE, Act, find_acts
from explainer.source.name import Function
from explainer.source.program import Program
from explainer.source.value.binding import all_parameters, bounds_of

_SEEN = re.compile(rf"(\S+):(\d+) {re.escape(LACKS_FACTOR)}")
_ENGINE = "torch.autograd.backward"


def propose(context: Context) -> Iterator[Proposal]:
    """An edit for each backward that was seen; its line alone where no scaler, or more than one, is in reach."""
    seen = {(found[1], int(found[2])) for one in context.incident.log if (found := _SEEN.search(one.text))}
    acts = list(find_acts(context.program)) if seen else []
    for one in (each for each in acts if each.kind == BACKWARD):
        name = one.file.path.replace("\\", "/").rpartition("/")[2]
        if any(name == file and one.call.lineno <= line <= (one.call.end_lineno or 0) for file, line in seen):
            yield Proposal(
                edits=_scaled(one, acts, context.program),
                culprit=culprit_of(one.file, one.call, "sends a loss back without the factor that the others have"),
                belief=2.0,
            )


def _scaled(backward: Act, acts: Sequence[Act], program: Program) -> tuple[Edit, ...]:
    file = backward.file
    loss: ast.expr | None = backward.subject
    if program.names(file).qualified(backward.call.func) == _ENGINE:
        loss = backward.call.args[0] if backward.call.args else None
    elif backward.call.args:
        return ()  # `engine.backward(loss)`
    if loss is None or isinstance(loss, (ast.List, ast.Tuple)):
        return ()

    def spelled(node: ast.AST, where: SourceFile) -> str | None:
        return _scaler_at(node, where, acts, program)

    scaler = spelled(backward.call, file)
    function = program.names(file).function_of(backward.call)
    found = HandedDown(scaler) if scaler is not None else None
    if found is None and function is not None:
        found = hand_down(function, file, spelled, program)
    if found is None:
        return ()
    return (*found.edits, replace_whole(file, loss, f"{found.name}.scale({file.segment(loss)})"))


def _scaler_at(node: ast.AST, file: SourceFile, acts: Sequence[Act], program: Program) -> str | None:
    """How the scaler is written at a node: as the functions around it do, the object's other methods, or the module."""
    here = [one for one in acts if one.file is file and one.kind in (SCALE, SCALER_STEP, UNSCALE) and one.object]
    names = program.names(file)
    first = names.function_of(node)
    around = first
    while around is not None:
        found = {one.object for one in here if names.function_of(one.call) is around}
        if found:
            return _one(found)
        around = names.function_of(around)
    owner = names.class_of(node)
    if owner is not None and first is not None and first.args.args and first.args.args[0].arg == "self":
        found = {one.object for one in here if names.class_of(one.call) is owner and one.object.startswith("self.")}
        if found:
            return _one(found)
    found = {one.object for one in here if _is_of_module(one.object, file) and not _has(first, one.object)}
    return _one(found)


def _one(found: set[str]) -> str | None:
    return found.pop() if len(found) == 1 else None


def _is_of_module(name: str, file: SourceFile) -> bool:
    return file.tree is not None and any(one.name == name for one in bounds_of(file.tree))


def _has(function: Function | None, name: str) -> bool:
    """Whether a function means something of its own by a name."""
    return function is not None and (
        name in all_parameters(function) or any(one.name == name for one in bounds_of(function))
    )
