"""`use_reentrant=False` for activation checkpointing, where it is chosen: the call, the mapping, or the setting behind them.

Refused where the segment writes a saved tensor in place: the non-reentrant form does not notice that and can compute wrong
gradients. With `options["part"] = "warned"` a call that leaves the form out counts as well.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from explainer.fix.codemod import Context, Proposal, culprit_of, edit_of
from explainer.fix.failure import failing_statements
from explainer.fix.rewrite import add_argument
from explainer.fix.setting_edit import set_value
from explainer.model.patch import Edit
from explainer.source.graph.segment import FORM, Segment, find_segments, writes_in_place
from explainer.source.setting.flow import settings_behind

_WHY = "asks for the reentrant form, which runs the segment's first forward without a graph"
_LEFT_OUT = "leaves out `use_reentrant`, which then is the reentrant form"


def propose(context: Context) -> Iterator[Proposal]:
    """One edit that makes every checkpointed segment of the program non-reentrant."""
    if not context.has_failed:
        return
    found = [one for one in find_segments(context.program) if not _is_off(one.form)]
    if not found or any(writes_in_place(one, context.program) for one in found):
        return
    edits: list[Edit] = []
    guilty: list[Segment] = []
    for segment in found:
        new = _edits(segment, context)
        edits += [one for one in new if one not in edits]
        guilty += [segment] if new else []
    if not edits:
        return
    first = next((one for one in guilty if _is_near(one, context)), guilty[0])
    yield Proposal(
        edits=tuple(edits),
        culprit=culprit_of(first.file, first.form or first.node, _WHY if first.form is not None else _LEFT_OUT),
        belief=1.5 if any(one.form is not None for one in guilty) else 1.0,
    )


def _is_off(form: ast.expr | None) -> bool:
    return isinstance(form, ast.Constant) and form.value is False


def _edits(segment: Segment, context: Context) -> list[Edit]:
    if segment.form is None:
        assert isinstance(segment.node, ast.Call)
        if any(one.arg is None for one in segment.node.keywords):
            return []  # the mapping may have it, and a call takes it once
        return [add_argument(segment.file, segment.node, f"{FORM}=False")]
    if isinstance(segment.form, ast.Constant):
        return [edit_of(segment.file, segment.form, "False")] if segment.form.value is True else []
    settings = settings_behind(segment.form, segment.file, context.program)
    edits = [set_value(one, False) for one in settings if one.value is True]  # noqa: FBT003 - the value that is written
    return [one for one in edits if isinstance(one, Edit)]


def _is_near(segment: Segment, context: Context) -> bool:
    """Whether a frame of the failure stands in the segment's call."""
    line = segment.node.lineno
    return any(
        file is segment.file and statement.lineno <= line <= (statement.end_lineno or line)
        for file, statement in failing_statements(context)
    )
