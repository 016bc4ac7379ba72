"""Where a failure stands in the program: the statements of the user's own frames."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from explainer.fix.blame import is_file
from explainer.fix.codemod import Context
from explainer.source.file import SourceFile


def crash_places(context: Context) -> Iterator[tuple[SourceFile, ast.stmt]]:
    """The statements that the traceback names, innermost frame first."""
    for record in reversed(context.incident.exceptions):
        for frame in reversed(record.frames):
            if frame.library is None and frame.line:
                yield from _at(frame.file, frame.line, context)


def raised_at(context: Context) -> Iterator[tuple[SourceFile, ast.stmt]]:
    """The statement of the user's innermost frame of each exception, the last one first: a launcher repeats its worker's."""
    for record in reversed(context.incident.exceptions):
        frame = next((one for one in reversed(record.frames) if one.library is None and one.line), None)
        if frame is not None and frame.line:
            yield from _at(frame.file, frame.line, context)


def forward_places(context: Context) -> Iterator[tuple[SourceFile, ast.stmt]]:
    """The statements that anomaly mode's traceback of the forward names, innermost frame first."""
    for frame in reversed(context.incident.forward_frames):
        if frame.library is None and frame.line:
            yield from _at(frame.file, frame.line, context)


def _at(name: str, line: int, context: Context) -> Iterator[tuple[SourceFile, ast.stmt]]:
    for file in context.program.parsed():
        statement = context.program.at(file.path, line) if is_file(name, file) else None
        if statement is not None:
            yield file, statement
            return


def is_crash(file: SourceFile, node: ast.AST, context: Context) -> bool:
    """Whether the innermost frame of the user's own code stands on a node."""
    for where, statement in crash_places(context):
        return where is file and statement is file.statement(node)
    return False


def message_of(context: Context) -> str:
    """The messages of all exceptions."""
    return "\n".join(record.message for record in context.incident.exceptions)
