"""`pad_packed_sequence(out, total_length=x.size(1))`: what is unpacked is as long as the batch's longest row, and the targets as the batch.

Only where the same function packs, once, what it unpacks, and its input has a name: the layers between keep a batch's length.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from explainer.fix.clue.crash import message_of
from explainer.fix.codemod import Context, Proposal, culprit_of
from explainer.fix.text.rewrite import add_argument
from explainer.source.file import SourceFile
from explainer.source.name import Function, dotted_name
from explainer.source.program import Program
from explainer.source.tree import walk

_PACKS = "torch.nn.utils.rnn.pack_padded_sequence"
_UNPACKS = "torch.nn.utils.rnn.pad_packed_sequence"
_REFUSED = ("to match target batch_size", "must match the size of tensor", "shape of the mask", "mask [")
_COUNTS_PADDING = "nothing tells the loss to leave out padding: it then counts positions that were cut off before"


def propose(context: Context) -> Iterator[Proposal]:
    """An edit for the one place that unpacks a batch and does not say how long it was."""
    if not any(one in message_of(context) for one in _REFUSED):
        return
    places = [
        one for file, function in context.program.functions() for one in _unpacked(file, function, context.program)
    ]
    if len(places) != 1:
        return
    file, call, length = places[0]
    is_left_out = _leaves_padding_out(context.program)
    yield Proposal(
        edits=(add_argument(file, call, f"total_length={length}"),),
        culprit=culprit_of(file, call, "gives a batch back as long as its longest row, not as long as it came"),
        belief=2.2,
        applicability=None if is_left_out else "unsafe",
        because=None if is_left_out else _COUNTS_PADDING,
    )


def _unpacked(file: SourceFile, function: Function, program: Program) -> Iterator[tuple[SourceFile, ast.Call, str]]:
    """A call that unpacks without a length, and the length of what the function packed."""
    names = program.names(file)
    calls = [one for one in walk(function) if isinstance(one, ast.Call)]
    packed = [one for one in calls if names.is_call(one, _PACKS)]
    opened = [one for one in calls if names.is_call(one, _UNPACKS)]
    if len(packed) != 1 or len(opened) != 1 or len(opened[0].args) > 3 or not packed[0].args:
        return
    if any(one.arg == "total_length" for one in opened[0].keywords):
        return
    name = _name_of(packed[0].args[0])
    axis = 1 if _is_batch_first(packed[0], 2) else 0
    if name is not None:
        yield file, opened[0], f"{name}.size({axis})"


def _name_of(node: ast.expr) -> str | None:
    """What layers are run on, one in the other: `ids` of `self.drop(self.embed(ids))`."""
    while isinstance(node, ast.Call) and len(node.args) == 1 and not node.keywords:
        node = node.args[0]
    return dotted_name(node)


def _is_batch_first(call: ast.Call, place: int) -> bool:
    named = next((one.value for one in call.keywords if one.arg == "batch_first"), None)
    given = named if named is not None else call.args[place] if len(call.args) > place else None
    return isinstance(given, ast.Constant) and given.value is True


def _leaves_padding_out(program: Program) -> bool:
    """Whether a loss of the program is told which targets do not count."""
    return any(
        isinstance(node, ast.keyword) and node.arg == "ignore_index"
        for file in program.parsed()
        for node in file.walk()
    )
