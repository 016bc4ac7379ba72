"""`torch.cat([a, b], dim=-1)` for `torch.cat([a, b])`, which puts rows under rows: the parts have different features.

Along the axis in which the parts differ, where it was seen or follows from the layers that made them; else along the last.
So also `torch.stack([a, b])` and parts of as many features, where the layer behind is built for those of all of them.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from explainer.fix.clue.crash import message_of, raised_at
from explainer.fix.clue.seen_shape import SPATIAL, Shape, seen_shape
from explainer.fix.codemod import Context, Proposal, culprit_of, edit_of
from explainer.fix.text.rewrite import add_argument
from explainer.source.file import SourceFile
from explainer.source.tree import walk
from explainer.source.value.lineage import definitions, scope_of
from explainer.source.value.number import number_of

_REFUSED = re.compile(r"Sizes of tensors must match except in dimension 0\b(?:.* in dimension (\d+))?")
_NARROW = re.compile(r"shapes cannot be multiplied \((\d+)x(\d+) and (\d+)x\d+\)")
_STACKS = ("torch.stack",)
_JOINS = ("torch.cat", "torch.concat", "torch.concatenate")


def propose(context: Context) -> Iterator[Proposal]:
    """An edit for each concatenation along the first axis on the line that raised."""
    yield from _for_the_layer(context)
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


def _for_the_layer(context: Context) -> Iterator[Proposal]:
    """The parts beside each other, where a linear layer wants the features of all and got the rows of all."""
    narrow = _NARROW.search(message_of(context))
    if narrow is None:
        return
    rows, got, wanted = map(int, narrow.groups())
    for file, statement in list(raised_at(context))[:1]:
        names, scope = context.program.names(file), scope_of(statement, file, context.program)
        read = {one.id for one in walk(statement) if isinstance(one, ast.Name)} if scope is not None else set()
        near = [
            statement,
            *(one for name in sorted(read) if scope is not None for one in definitions(name, statement, scope)),
        ]
        for call in (one for each in near for one in walk(each) if isinstance(one, ast.Call)):
            is_stack = names.is_call(call, *_STACKS)
            parts = call.args[0] if len(call.args) == 1 and not call.keywords else None
            if not isinstance(parts, (ast.List, ast.Tuple)) or not (is_stack or names.is_call(call, *_JOINS)):
                continue
            count = len(parts.elts)
            if count > 1 and got * count == wanted and not rows % count:
                joined = f"{_as_cat(file, call)}({file.segment(parts)}, dim=-1)"
                edit = edit_of(file, call, joined) if is_stack else add_argument(file, call, "dim=-1")
                yield Proposal(
                    edits=(edit,),
                    culprit=culprit_of(
                        file, call, f"puts {count} parts under each other; the layer wants their features side by side"
                    ),
                    belief=2.6,
                )


def _as_cat(file: SourceFile, call: ast.Call) -> str:
    name = file.segment(call.func)
    return f"{name.removesuffix('stack')}cat"


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
