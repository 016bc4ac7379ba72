"""`model(x).squeeze(-1)` for `.squeeze()`, which takes the batch away with the last axis where the last batch is one sample.

Of features that go on into classes it is `.flatten(1)`.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from explainer.fix.clue.crash import crash_places, message_of
from explainer.fix.codemod import Context, Proposal, culprit_of
from explainer.model.patch import Edit
from explainer.source.file import SourceFile
from explainer.source.program import Program
from explainer.source.tree import walk
from explainer.source.value.flow import flow_of
from explainer.source.value.lineage import sources

_SIZES = re.compile(r"\d+")
_DEPTH = 3


def propose(context: Context) -> Iterator[Proposal]:
    """An edit for the calls without an axis on the way to a prediction that lost the batch of one which its target has."""
    predicted, target = (_shape(context, name) for name in ("input_shape", "target_shape"))
    is_classes = target == [1] and predicted is not None and len(predicted) == 1 and predicted[0] > 1
    is_lost = bool(target) and predicted is not None and predicted == [one for one in target or () if one != 1]
    if not target or target[0] != 1 or not (is_classes or is_lost):
        return
    axis = "-1" if len(target) == 1 else "1"
    for file, statement in list(crash_places(context))[:1]:
        found = dict(_squeezes(statement, statement, file, context.program, 0))
        if found:
            where, first = next((file, call) for call, file in found.items())
            yield Proposal(
                edits=tuple(
                    _flattened(call, file) if is_classes else _with_axis(call, file, axis)
                    for call, file in found.items()
                ),
                culprit=culprit_of(where, first, "takes every axis of 1 away, also that of a batch of one sample"),
                belief=2.5,
            )


def _shape(context: Context, name: str) -> list[int] | None:
    text = context.fields.get(name)
    return [int(one) for one in _SIZES.findall(str(text))] if text is not None and message_of(context) else None


def _squeezes(
    node: ast.AST, at: ast.stmt, file: SourceFile, program: Program, depth: int
) -> Iterator[tuple[ast.Call, SourceFile]]:
    """The `squeeze()` calls in an expression, in what its names were bound to, and in what the functions return that it calls."""
    parts = [node, *(part for _, part in sources(node, at, file, program))] if isinstance(node, ast.expr) else [node]
    if isinstance(node, ast.stmt):
        calls = [one for one in walk(node) if isinstance(one, ast.Call)]
        # Some of these sizes are refused by the backward alone.
        given = [*(value for one in calls for value in one.args), *(one.func for one in calls)]
        asked = [one.value if isinstance(one, ast.Attribute) and one.attr == "backward" else one for one in given]
        parts += [part for one in asked for _, part in sources(one, at, file, program)]
    for part in parts:
        for one in walk(part):
            if not isinstance(one, ast.Call):
                continue
            if isinstance(one.func, ast.Attribute) and one.func.attr == "squeeze" and not one.args and not one.keywords:
                yield one, file
            target = flow_of(program).target_of(one, file) if depth < _DEPTH else None
            for inner in walk(target[1]) if target is not None else ():
                if target is not None and isinstance(inner, ast.Return) and inner.value is not None:
                    yield from _squeezes(inner.value, inner, target[0], program, depth + 1)


def _with_axis(call: ast.Call, file: SourceFile, axis: str) -> Edit:
    end = file.span(call)[1] - 1
    return Edit(file=file.path, start=end, end=end, new=axis)


def _flattened(call: ast.Call, file: SourceFile) -> Edit:
    """`features.flatten(1)`, which keeps the batch whatever it is; of axes of 1 it is the same."""
    assert isinstance(call.func, ast.Attribute)
    end = file.span(call)[1]
    return Edit(file=file.path, start=file.span(call.func.value)[1], end=end, new=".flatten(1)")
