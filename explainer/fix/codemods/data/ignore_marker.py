"""`F.cross_entropy(logits, mask, ignore_index=VOID)` where the program itself leaves that label out elsewhere.

A marker of pixels or tokens that nobody labelled (255, -1, 0) reaches the loss, which takes every number for a class. That it
is a marker is read off the program: a comparison in a metric, the name of the constant, or labels that are padded with it.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from explainer.fix.clue.crash import message_of, raised_at
from explainer.fix.codemod import Context, Proposal, culprit_of
from explainer.fix.text.rewrite import add_argument
from explainer.source.data.label_marker import IGNORES, is_name_of_labels, leaves_labels_out, marks_of
from explainer.source.file import SourceFile
from explainer.source.loss.loss import Loss, find_losses
from explainer.source.name import Names, dotted_name
from explainer.source.value.number import number_of

_SPAN = re.compile(r"(-?\d+) to (-?\d+), (\d+) of them")
_FEWEST = 3
_REFUSED = re.compile(r"Target (-?\d+) is out of bounds")


def propose(context: Context) -> Iterator[Proposal]:
    """An edit for the loss that refused a label which the program marks as none."""
    refused = _REFUSED.search(message_of(context))
    if refused is None:
        return
    value, program = int(refused[1]), context.program
    raised = {statement for _, statement in raised_at(context)}
    losses = [one for one in program.once(find_losses) if one.name in IGNORES and not leaves_labels_out(one)]
    losses = [one for one in losses if one.file.statement(one.call) in raised] or losses
    if len({id(one.made) for one in losses}) != 1:
        return
    loss = losses[0]
    marker = _marker(value, loss, context)
    if marker is not None:
        yield Proposal(
            edits=(add_argument(loss.file, loss.made, f"ignore_index={marker}"),),
            culprit=culprit_of(loss.file, loss.made, f"takes {marker}, which marks what has no label, for a class"),
            belief=2.4,
        )


def _marker(value: int, loss: Loss, context: Context) -> str | None:
    """How the file of the loss may write the marker: by its name, else as the number; None where nothing shows that it is one."""
    program, spelled = context.program, None
    for mark in marks_of(value, program):
        if mark.name is None:
            spelled = spelled or _spelled(mark.node, mark.file, loss, program.names(mark.file)) or str(value)
        elif mark.file is loss.file or mark.name in program.names(loss.file).imports:
            spelled = mark.name
        else:
            spelled = spelled or str(value)
    return spelled or (str(value) if is_unlabelled(value, context) else None)


def is_unlabelled(value: int, context: Context) -> bool:
    """Whether the program takes their label from some of its samples, `labels[hidden] = -1`, and the others have theirs from 0.

    Labels of -1 and 1 alone are two classes.
    """
    live = context.incident.fact("live_refused_labels")
    span = _SPAN.match(str(live.value)) if live is not None else None
    if span is None or value >= 0 or int(span[1]) != value or int(span[2]) < 1 or int(span[3]) < _FEWEST:
        return False
    written: dict[str, list[float | None]] = {}
    for file in context.program.parsed():
        for one in file.walk():
            place = one.targets[0] if isinstance(one, ast.Assign) else None
            name = dotted_name(place.value) if isinstance(place, ast.Subscript) else None
            if isinstance(one, ast.Assign) and name is not None and is_name_of_labels(name):
                written.setdefault(name, []).append(number_of(one.value, context.program.names(file)))
    return [value] in written.values()


def _spelled(node: ast.AST, file: SourceFile, loss: Loss, names: Names) -> str | None:
    if file is not loss.file or not isinstance(node, ast.Compare):
        return None
    sides = [one for one in (node.left, node.comparators[0]) if number_of(one, names) is not None]
    return file.segment(sides[0]) if sides else None
