"""`torch.cat([a, b], dim=-1)` for `torch.cat([a, b])`, which puts rows under rows: the parts have different features.

Along the axis in which the parts differ, where it was seen or follows from the layers that made them; else along the last.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from explainer.fix.codemod import Context, Proposal, culprit_of, edit_of
from explainer.fix.crash import message_of, raised_at
from explainer.fix.rewrite import add_argument
from explainer.fix.seen_shape import SPATIAL, Shape, seen_shape
from explainer.source.file import SourceFile
from explainer.source.tree import walk
from explainer.source.value.number import number_of

_REFUSED = re.compile(r"Sizes of tensors must match except in dimension 0\b(?:.* in dimension (\d+))?")
_JOINS = ("torch.cat", "torch.concat", "torch.concatenate")


def propose(context: Context) -> Iterator[Proposal]:
    """An edit for each concatenation along the first axis on the line that raised."""
    refused = _REFUSED.search(message_of(context))
    for file, statement in list(raised_at(context))[:1] if refused is not None else ():
        names = context.program.names(file)
        for call in (one for one in walk(statement) if isinstance(one, ast.Call) and names.is_call(one, *_JOINS)):
            axis = next((one.value for one in call.keywords if one.arg in ("dim", "axis")), None)
            axis = axis or (call.args[1] if len(call.args) > 1 else None)
            if (axis is not None and number_of(axis, names) != 0) or not call.args:
                continue
            at = int(refused[1]) if refused is not None and refused[1] else _differing(call.args[0], file, context)
            edit = edit_of(file, axis, str(at)) if axis is not None else add_argument(file, call, f"dim={at}")
            yield Proposal(
                edits=(edit,),
                culprit=culprit_of(file, call, "joins along the first axis parts that have different features"),
                belief=2.0,
            )


def _differing(parts: ast.expr, file: SourceFile, context: Context) -> int:
    """The axis in which the parts differ; the last one where that is not known."""
    elements = parts.elts if isinstance(parts, (ast.List, ast.Tuple)) else []
    shapes = [shape for one in elements if (shape := seen_shape(one, file, context)) is not None]
    ranks = {len(one) for one in shapes}
    if len(shapes) < 2 or len(ranks) != 1:
        return _of_images(shapes)
    differ = [at for at in range(1, ranks.pop()) if len({one[at] for one in shapes}) > 1]
    return differ[0] if len(differ) == 1 and differ[0] != len(shapes[0]) - 1 else _of_images(shapes)


def _of_images(shapes: list[Shape]) -> int:
    """The channels of what convolutions gave; else the last axis."""
    return 1 if any(SPATIAL in one for one in shapes) else -1
