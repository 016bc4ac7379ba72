"""`pad_sequence(rows)` becomes `pad_sequence(rows, batch_first=True)` where the loss counted time steps for samples.

Only where the live program shows it: a padded tensor has as many columns as there are labels, and as many rows as the loss
took for samples. Or where a function pads what belongs together in two ways, and the shapes of a failure do not fit.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from explainer.fix.clue.crash import ROWS, message_of
from explainer.fix.clue.seen import seen_tensors
from explainer.fix.codemod import Context, Proposal, culprit_of
from explainer.fix.text.rewrite import add_argument
from explainer.source.file import SourceFile
from explainer.source.value.binding import scope_of

_SIZES = re.compile(
    r"must match the size of tensor|Sizes of tensors must match|shapes? .{0,60}(?:mismatch|incompatible|invalid)|cannot be multiplied"
)
_PAD = "torch.nn.utils.rnn.pad_sequence"


def propose(context: Context) -> Iterator[Proposal]:
    """One edit for all padding of a program that puts time first; one for each function that pads in two ways."""
    message = message_of(context)
    found = ROWS.search(message)
    if found is None:
        if _SIZES.search(message):
            yield from _in_two_ways(context)
        return
    time, batch = int(found[1]), int(found[2])
    is_seen = any(one.shape[:2] == (time, batch) for one in seen_tensors(context).values() if len(one.shape) > 1)
    if not is_seen:
        return
    for file in context.program.parsed():
        calls = [node for node in _padding(file, context) if _is_time_first(node)]
        if calls:
            yield Proposal(
                edits=tuple(add_argument(file, one, "batch_first=True") for one in calls),
                culprit=culprit_of(file, calls[0], "puts time first, where the loss looks for samples"),
                belief=2.0,
            )


def _in_two_ways(context: Context) -> Iterator[Proposal]:
    """The padding of a function that puts time first, beside some that puts the batch first."""
    for file in context.program.parsed():
        by_scope: dict[ast.AST, list[ast.Call]] = {}
        for node in _padding(file, context):
            by_scope.setdefault(scope_of(node, file), []).append(node)
        for calls in by_scope.values():
            late = [one for one in calls if _is_time_first(one)]
            if late and any(_is_batch_first(one) for one in calls):
                yield Proposal(
                    edits=tuple(add_argument(file, one, "batch_first=True") for one in late),
                    culprit=culprit_of(file, late[0], "puts time first, and what is padded beside it the batch"),
                    belief=2.0,
                )


def _padding(file: SourceFile, context: Context) -> Iterator[ast.Call]:
    names = context.program.names(file)
    for node in file.walk():
        if isinstance(node, ast.Call) and names.is_call(node, _PAD):
            yield node


def _is_time_first(call: ast.Call) -> bool:
    """Whether a call leaves `batch_first` at its default, in sight."""
    return len(call.args) == 1 and not any(one.arg in ("batch_first", None) for one in call.keywords)


def _is_batch_first(call: ast.Call) -> bool:
    given = [*call.args[1:2], *(one.value for one in call.keywords if one.arg == "batch_first")]
    return any(isinstance(one, ast.Constant) and one.value is True for one in given)
