"""What a loader's forked worker sends to the GPU is made on the CPU, and the loop moves it: `batch = batch.to(device)`.

A process that was forked cannot use the CUDA of the one that it was forked from. The moves are taken out of the collate function
or of what makes a row, and each loop over the loader moves what they moved. Where that cannot be told apart the loader works in
the process itself: `num_workers=0`.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from explainer.fix.clue.crash import crash_places, message_of
from explainer.fix.codemod import Context, Proposal, culprit_at, culprit_of, edit_of, insert_before
from explainer.fix.data.worker_batch import Shape, moved_by, moves_of, shape_of
from explainer.fix.setting.edit import set_value
from explainer.fix.text.device_word import device_word
from explainer.fix.text.rewrite import remove_argument
from explainer.model.patch import Edit
from explainer.source.data.loader import Loader, Worked, find_loaders, loops_over, worked_by
from explainer.source.file import SourceFile
from explainer.source.name import Function
from explainer.source.program import Program
from explainer.source.setting.flow import settings_behind
from explainer.source.setting.python import read_python
from explainer.source.setting.setting import Setting
from explainer.source.tree import walk

_REFUSED = "Cannot re-initialize CUDA in forked subprocess"
_WORKERS = "num_workers"
_OF_TRAINER = "dataloader_num_workers"
_OF_WORKERS = frozenset({"persistent_workers", "prefetch_factor", "multiprocessing_context", "timeout"})
_WHY = "uses CUDA in a forked worker of the loader"


def propose(context: Context) -> Iterator[Proposal]:
    """The moves in the loops; behind it a loader without workers."""
    if _REFUSED not in message_of(context):
        return
    program = context.program
    loaders = [(one, list(worked_by(one, program))) for one in find_loaders(program)]
    failed = list(_failed(context))
    concerned = [(one, worked) for one, worked in loaders if any(each.function in failed for each in worked)]
    worked = next((each for _, found in concerned for each in found if each.function in failed), None)
    if worked is not None:
        yield from _in_loops(worked, [one for one, found in concerned if worked in found], context)
    yield from _without_workers([one for one, _ in concerned] or [one for one, _ in loaders], context)


def _failed(context: Context) -> Iterator[Function | ast.Lambda]:
    """The functions in which the frames stand, innermost first."""
    for file, statement in crash_places(context):
        yield from (one for one in walk(statement) if isinstance(one, ast.Lambda))
        above = file.enclosing(statement, ast.FunctionDef, ast.AsyncFunctionDef)
        if isinstance(above, (ast.FunctionDef, ast.AsyncFunctionDef)):
            yield above


def _in_loops(worked: Worked, loaders: list[Loader], context: Context) -> Iterator[Proposal]:
    """The moves taken out of the worker, and put into each loop."""
    moves = moves_of(worked, context.program)
    shape = shape_of(worked, moves or [], context.program)
    if not moves or shape is None:
        return
    if not worked.is_batch and any(one.given("collate_fn", 6) is not None for one in loaders):
        return  # what becomes of a row is another function's
    edits: list[Edit] = []
    for loader in loaders:
        loops = loops_over(loader, context.program)
        if loops is None:
            return
        for file, loop, target in loops:
            text = _text(target, shape, file, loop, context)
            if text is None:
                return
            edits.append(insert_before(file, loop.body[0], text))
    own = [edit for one in moves if (edit := one.edit(worked.file)) is not None]
    yield Proposal(
        edits=(*own, *dict.fromkeys(edits)),
        culprit=culprit_of(worked.file, moves[0].node, _WHY),
        belief=2.0,
        title="Make batches on the CPU in the workers, and move them in the loop",
        because="a forked process cannot use the CUDA of its parent; `pin_memory=True` hides the copy",
    )


def _text(target: ast.expr, shape: Shape, file: SourceFile, loop: ast.For, context: Context) -> str | None:
    """The lines that move a batch at the head of a loop."""
    device = device_word(loop.body[0], file, context)
    if device is None or (device.startswith("self.") and not _has(device, loop, file, context.program)):
        return None
    return moved_by(target, shape, device)


def _has(device: str, loop: ast.For, file: SourceFile, program: Program) -> bool:
    """Whether the object of a loop holds the device under that name."""
    names = program.names(file)
    owner = names.class_of(loop)
    return owner is not None and names.attribute_value(owner, device.removeprefix("self.")) is not None


def _without_workers(loaders: list[Loader], context: Context) -> Iterator[Proposal]:
    """`num_workers=0`, where it is written, and without what only workers take."""
    edits: list[Edit] = []
    settings: list[Setting] = []
    for loader in loaders:
        given = loader.given(_WORKERS, 5)
        if given is None or (isinstance(given, ast.Constant) and given.value == 0):
            continue
        written = [one for one in settings_behind(given, loader.file, context.program) if isinstance(one.value, int)]
        settings += [one for one in written if one.value]
        if not written:
            edits.append(edit_of(loader.file, given, "0"))
        edits += [
            remove_argument(loader.file, loader.call, one) for one in loader.call.keywords if one.arg in _OF_WORKERS
        ]
    settings += _of_trainers(context.program)
    set_to_none = [edit for one in settings if isinstance(edit := set_value(one, 0), Edit)]
    every = tuple(dict.fromkeys((*set_to_none, *edits)))
    if not every:
        return
    first = next(iter(settings), None)
    if first is not None:
        culprit = culprit_at(first.file, ((first.key or first.span)[0], first.span[1]), _WHY)
    else:
        culprit = culprit_of(loaders[0].file, loaders[0].call, _WHY)
    yield Proposal(
        edits=every,
        culprit=culprit,
        belief=1.0,
        title="Load in the process itself, which may use CUDA: `num_workers=0`",
        because="the batches are the same; they are no longer made beside the training",
    )


def _of_trainers(program: Program) -> list[Setting]:
    written = [one for document in program.documents(_OF_TRAINER) for one in document.settings]
    written += [one for file in program.parsed() if _OF_TRAINER in file.text for one in read_python(file)]
    return [one for one in written if one.name == _OF_TRAINER and isinstance(one.value, int) and one.value > 0]
