"""Where a failure stands in the program: the statements of the user's own frames."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from explainer.fix.clue.blame import is_file
from explainer.fix.codemod import Context
from explainer.model.incident import ExceptionRecord
from explainer.source.file import SourceFile
from explainer.source.loop.backward import Backward
from explainer.source.loop.update import Update

# The rows of predictions and of targets that a loss of classes would not pair.
ROWS = re.compile(r"Expected input batch_size \((\d+)\) to match target batch_size \((\d+)\)")
_STATE = re.compile(r"Expected hidden\S* size [\[(](\d+), (\d+), (\d+)[\])], got [\[(](\d+), (\d+), (\d+)[\])]")
_FUSED = re.compile(r"attention|flash|fmha", re.IGNORECASE)
_CELL_STATE = re.compile(r"Input batch size (\d+) doesn't match hidden\d? ?batch size (\d+)")


def crash_places(context: Context) -> Iterator[tuple[SourceFile, ast.stmt]]:
    """The statements that the traceback names, innermost frame first, those of a worker before those that wait for it."""
    for record in _records(context):
        for frame in reversed(record.frames):
            if frame.library is None and frame.line:
                yield from _at(frame.file, frame.line, context, frame.mark)


def _records(context: Context) -> list[ExceptionRecord]:
    """The exceptions, the last one first, and behind all others those that repeat what a worker raised."""
    last_first = context.incident.exceptions[::-1]
    return sorted(last_first, key=lambda one: one.is_handed_on)


def raised_at(context: Context) -> Iterator[tuple[SourceFile, ast.stmt]]:
    """The statement of the user's innermost frame of each exception, the last one first: a launcher repeats its worker's."""
    for record in _records(context):
        frame = next((one for one in reversed(record.frames) if one.library is None and one.line), None)
        if frame is not None and frame.line:
            yield from _at(frame.file, frame.line, context, frame.mark)


def forward_places(context: Context) -> Iterator[tuple[SourceFile, ast.stmt]]:
    """The statements that anomaly mode's traceback of the forward names, innermost frame first."""
    for frame in reversed(context.incident.forward_frames):
        if frame.library is None and frame.line:
            yield from _at(frame.file, frame.line, context)


def warned_at(words: str, context: Context) -> Iterator[tuple[SourceFile, ast.stmt]]:
    """The statements at which a warning with some words was raised."""
    for warning in context.incident.warnings:
        if words in warning.message and warning.file and warning.line:
            yield from _at(warning.file, warning.line, context)


def _at(
    name: str, line: int, context: Context, mark: tuple[int, int] | None = None
) -> Iterator[tuple[SourceFile, ast.stmt]]:
    for file in context.program.parsed():
        statement = context.program.at(file.path, line, mark) if is_file(name, file) else None
        if statement is not None:
            yield file, statement
            return


def has_stepped(context: Context) -> bool:
    """Whether the live optimizers had made a step before the failure; False where nobody saw them."""
    steps = context.incident.fact("live_steps")
    return steps is not None and steps.value != "0"


def is_crash(file: SourceFile, node: ast.AST, context: Context) -> bool:
    """Whether the innermost frame of the user's own code stands on a node."""
    for where, statement in crash_places(context):
        return where is file and statement is file.statement(node)
    return False


def fails_at(backward: Backward, context: Context) -> bool:
    """Whether the traceback ends at a backward, or passes through the call of a function that runs it."""
    if isinstance(backward, Update):
        return (backward.file, backward.statement) in crash_places(context)
    return is_crash(backward.file, backward.call, context)


def message_of(context: Context) -> str:
    """The messages of all exceptions."""
    return "\n".join(record.message for record in context.incident.exceptions)


def is_of_attention(context: Context) -> bool:
    """Whether the failure speaks of a fused attention kernel."""
    return _FUSED.search(message_of(context)) is not None


def batches_of(message: str) -> tuple[int, int] | None:
    """The batch sizes of a recurrent layer's input and of its state, where these alone do not fit."""
    layer, cell = _STATE.search(message), _CELL_STATE.search(message)
    if layer and layer[1] == layer[4] and layer[3] == layer[6] and layer[2] != layer[5]:
        return int(layer[2]), int(layer[5])
    return (int(cell[1]), int(cell[2])) if cell else None
