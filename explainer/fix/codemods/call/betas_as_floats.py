"""`betas=(0, 0.9)` becomes `betas=(0.0, 0.9)`: Adam takes both as floats or both as tensors, and no integers (torch 2.13).

WGANs are written so since their paper. What is no pair of numbers in the call, such as a setting, is cast there.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from explainer.fix.clue.crash import crash_places
from explainer.fix.codemod import Context, Proposal, culprit_of, edit_of
from explainer.model.patch import Edit
from explainer.source.file import SourceFile
from explainer.source.program import Program
from explainer.source.tree import walk
from explainer.source.value.binding import Value, find_calls
from explainer.source.value.resolve import resolver_of

_MESSAGE = "betas must be either both floats or both Tensors"
_WHY = "gives Adam a beta that is no float"


def propose(context: Context) -> Iterator[Proposal]:
    """One edit for all betas of the program's optimizers; the line is that of the failing call."""
    if not any(_MESSAGE in one.message for one in context.incident.exceptions):
        return
    found = [
        (file, pair)
        for file, call in find_calls(context.program)
        for word in call.keywords
        if word.arg == "betas" and (context.program.names(file).qualified(call.func) or "").startswith("torch.optim.")
        for file, pair in [_written(Value(word.value, file), context.program)]
    ]
    edits = {(file.path, edit.start): edit for file, pair in found for edit in _floats(pair, file)}
    if not edits:
        return
    failing = {
        file.statement(word): (file, word) for file, statement in crash_places(context) for word in _betas(statement)
    }
    for file, node in [*failing.values(), *found][:1]:
        yield Proposal(edits=tuple(edits.values()), culprit=culprit_of(file, node, _WHY), belief=2.0)


def _betas(statement: ast.stmt) -> list[ast.expr]:
    calls = [one for one in walk(statement) if isinstance(one, ast.Call)]
    return [word.value for call in calls for word in call.keywords if word.arg == "betas"]


def _written(value: Value, program: Program) -> tuple[SourceFile, ast.expr]:
    """Where the pair that a name stands for is written; where it is given, if that is not the one place."""
    is_name = isinstance(value.node, (ast.Name, ast.Attribute))
    behind = list(resolver_of(program).behind(value)) if is_name else []
    pairs = [one for one in behind if isinstance(one.node, (ast.Tuple, ast.List))]
    return (pairs[0].file, pairs[0].node) if len(pairs) == len(behind) == 1 else (value.file, value.node)


def _floats(node: ast.expr, file: SourceFile) -> list[Edit]:
    if not isinstance(node, (ast.Tuple, ast.List)):
        return [edit_of(file, node, f"tuple(float(beta) for beta in {file.segment(node)})")]
    return [edit_of(file, one, _float(one, file)) for one in node.elts if not _is_float(one)]


def _is_float(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, float)


def _float(node: ast.expr, file: SourceFile) -> str:
    is_number = isinstance(node, ast.Constant) and type(node.value) is int
    return f"{node.value}.0" if is_number else f"float({file.segment(node)})"  # type: ignore[attr-defined]
