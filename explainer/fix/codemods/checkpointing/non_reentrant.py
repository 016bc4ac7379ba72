"""`use_reentrant=False` for activation checkpointing, where it is chosen: the call, the mapping, or the setting behind them.

A form that cannot be read is replaced where the traceback shows that a segment was reentrant, and so is one that hangs on a setting
of another name, which may switch more than the form.

Where a graph was freed, only if that was found in a segment's own backward: the segment reads a tensor that it was not given, as one
that a lambda closes over, and the reentrant form detaches arguments alone.

Refused where the segment writes a saved tensor in place: the non-reentrant form does not notice that and can compute wrong
gradients. With `options["part"] = "warned"` a call that leaves the form out counts as well.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from explainer.fix.clue.failure import failing_statements
from explainer.fix.codemod import Context, Proposal, culprit_of, edit_of
from explainer.fix.setting.choice import has_value
from explainer.fix.setting.edit import set_value
from explainer.fix.text.rewrite import add_argument
from explainer.model.patch import Edit
from explainer.source.graph.segment import FORM, Segment, find_segments, writes_in_place
from explainer.source.program import Program
from explainer.source.setting.flow import members_behind, settings_behind
from explainer.source.setting.setting import Code, Setting
from explainer.source.value.binding import Value, all_parameters, bounds_of, scope_of, walk_scope
from explainer.source.value.callee import callees_of
from explainer.source.value.provenance import provenance_of

_WHY = "asks for the reentrant form, which runs the segment's first forward without a graph"
_LEFT_OUT = "leaves out `use_reentrant`, which then is the reentrant form"
_INNER = "torch/utils/checkpoint.py"


def propose(context: Context) -> Iterator[Proposal]:
    """One edit that makes every checkpointed segment of the program non-reentrant."""
    if not context.has_failed or (_has_freed(context) and not _has_reentered(context)):
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
    why = _LEFT_OUT if _is_left_out(first) else _WHY
    belief = 1.5 if not all(_is_left_out(one) for one in guilty) else 1.0
    for segment in guilty if _has_freed(context) else ():
        if held := _closed_over(segment, context.program):
            first, why, belief = segment, f"runs back into the graph of `{held}`, which the segment closes over", 2.5
            break
    yield Proposal(edits=tuple(edits), culprit=culprit_of(first.file, first.form or first.node, why), belief=belief)


def _has_freed(context: Context) -> bool:
    return any("second time" in one.message for one in context.incident.exceptions)


def _closed_over(segment: Segment, program: Program) -> str | None:
    """A tensor with a graph that a checkpointed function reads from around it; None where there is none."""
    for one in callees_of(segment.body, segment.file, program) if segment.body is not None else ():
        scope = scope_of(one.function, one.file)
        own = all_parameters(one.function) | {bound.name for bound in bounds_of(one.function)}
        outer = {bound.name for bound in bounds_of(scope)} - own if not isinstance(scope, ast.Module) else set()
        trace = provenance_of(program).trace
        read = (node for node in walk_scope(one.function) if isinstance(node, ast.Name) and node.id in outer)
        held = next((node.id for node in read if trace(Value(node, one.file)).live), None)
        if held is not None:
            return held
    return None


def _is_off(form: ast.expr | None) -> bool:
    return isinstance(form, ast.Constant) and form.value is False


def _is_left_out(segment: Segment) -> bool:
    """Whether nothing says which form is meant: no argument, and no mapping that may hold one."""
    return segment.form is None and not _mappings(segment)


def _mappings(segment: Segment) -> list[ast.expr]:
    keywords = segment.node.keywords if isinstance(segment.node, ast.Call) else []
    return [one.value for one in keywords if one.arg is None]


def _edits(segment: Segment, context: Context) -> list[Edit]:
    if _is_left_out(segment):
        assert isinstance(segment.node, ast.Call)
        return [add_argument(segment.file, segment.node, f"{FORM}=False")]
    if isinstance(segment.form, ast.Constant):
        return [edit_of(segment.file, segment.form, "False")] if segment.form.value is True else []
    if segment.form is not None:
        return _behind(segment.form, segment, context)
    written = [each for one in _mappings(segment) for each in members_behind(one, FORM, segment.file, context.program)]
    if not written and _has_reentered(context):
        # A mapping that nobody can follow, `checkpoint(f, x, **self.options)`: what the program's files say of the form.
        written = [one for each in context.program.documents(FORM) for one in each.settings if one.path[-1:] == (FORM,)]
    return [edit for one in written if (edit := _switched_off(one)) is not None]


def _behind(form: ast.expr, segment: Segment, context: Context) -> list[Edit]:
    """The edits where the form is written that an expression stands for, else in its own place if that is known to be reentrant."""
    found = settings_behind(form, segment.file, context.program)
    settings = [one for one in found if not isinstance(one.value, Code)]
    own = [one for one in settings if "reentrant" in one.name.lower()]
    edits = [edit for one in own if (edit := _switched_off(one)) is not None]
    if own:
        return edits
    is_on = any(has_value(one, True) for one in settings)  # noqa: FBT003 - the value that is written
    return [edit_of(segment.file, form, "False")] if is_on or (not settings and _has_reentered(context)) else []


def _switched_off(setting: Setting) -> Edit | None:
    edit = set_value(setting, False) if setting.value is True else None  # noqa: FBT003 - the value that is written
    return edit if isinstance(edit, Edit) else None


def _has_reentered(context: Context) -> bool:
    """Whether the failing backward ran in a segment's own one, which only the reentrant form has."""
    frames = [frame for record in context.incident.exceptions for frame in record.frames]
    return any(one.function == "backward" and one.file.replace("\\", "/").endswith(_INNER) for one in frames)


def _is_near(segment: Segment, context: Context) -> bool:
    """Whether a frame of the failure stands in the segment's call."""
    line = segment.node.lineno
    return any(
        file is segment.file and statement.lineno <= line <= (statement.end_lineno or line)
        for file, statement in failing_statements(context)
    )
