"""`pad_packed_sequence(out, batch_first=True)` gets `total_length=`: without it the output is as long as the longest of its batch.

The targets and masks of a data set are padded to one length for all. They agree as long as each batch holds a sequence of that
length; the last small batch may not.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from explainer.fix.codemod import Context, Proposal, culprit_of, insert_before
from explainer.fix.text.rewrite import add_argument, free_name
from explainer.model.patch import Edit
from explainer.source.file import SourceFile
from explainer.source.name import Function, Names, dotted_name
from explainer.source.tree import walk
from explainer.source.value.lineage import binds, statements_of

_PACK, _PAD = "torch.nn.utils.rnn.pack_padded_sequence", "torch.nn.utils.rnn.pad_packed_sequence"
_SIZES = ("must match the size", "shape mismatch", "input and target", "doesn't match", "not match", "broadcast")


def propose(context: Context) -> Iterator[Proposal]:
    """An edit for each function that packs and pads again, where sizes do not match."""
    said = "\n".join(one.message for one in context.incident.exceptions)
    if not any(one in said for one in _SIZES):
        return
    for file, function in context.program.functions():
        names = context.program.names(file)
        packs = _calls(function, names, _PACK)
        pads = [
            one for one in _calls(function, names, _PAD) if all(each.arg != "total_length" for each in one.keywords)
        ]
        if len(packs) == len(pads) == 1 and len(pads[0].args) == 1:
            edits = _measured(packs[0], pads[0], function, file)
            why = "is as long as the longest sequence of its batch, and what it is held against as the longest of all"
            if edits:
                yield Proposal(edits=edits, culprit=culprit_of(file, pads[0], why), belief=2.2)


def _calls(function: Function, names: Names, name: str) -> list[ast.Call]:
    return [one for one in walk(function) if isinstance(one, ast.Call) and names.is_call(one, name)]


def _measured(pack: ast.Call, pad: ast.Call, function: Function, file: SourceFile) -> tuple[Edit, ...]:
    """The length of what was packed, measured there where its name means something else by the time of the padding."""
    packed = dotted_name(pack.args[0]) if pack.args else None
    first = {_is_first(one) for one in (pack, pad)}
    if packed is None or len(first) != 1 or None in first:
        return ()
    length = f"{packed}.size({1 if first == {True} else 0})"
    at, until = file.statement(pack), file.statement(pad)
    between = [one for one in statements_of(function) if at.lineno <= one.lineno < until.lineno]
    if not any(packed in binds(one) for one in between):
        return (add_argument(file, pad, f"total_length={length}"),)
    name = free_name("total", function)
    return insert_before(file, at, f"{name} = {length}"), add_argument(file, pad, f"total_length={name}")


def _is_first(call: ast.Call) -> bool | None:
    """Whether the batch comes first; None where a value of the run decides."""
    given = next((one.value for one in call.keywords if one.arg == "batch_first"), None)
    return False if given is None else bool(given.value) if isinstance(given, ast.Constant) else None
