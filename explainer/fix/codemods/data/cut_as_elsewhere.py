"""The samples of one split are cut to the length to which those of the other are, where a longer one met the model's table.

`tokenizer(rows["text"])` becomes `tokenizer(rows["text"], truncation=True)` as in the preparation of the other split, `ids` becomes
`ids[:MAX_LEN]`; a cut under `if split == "train":` is made for both; a call that leaves the length out is given it. The model's
table is never changed: its length is the one that was trained for.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator

from explainer.fix.clue.crash import message_of
from explainer.fix.codemod import Context, Proposal, culprit_at, culprit_of
from explainer.fix.data.split_argument import given_for_both, written_for_both
from explainer.fix.data.split_condition import made_for_both
from explainer.fix.data.split_twin import Uneven, twins_of
from explainer.model.finding import Culprit
from explainer.model.patch import Edit
from explainer.source.data.length_cut import LengthCut, find_length_cuts

_SIZES = (
    re.compile(r"size of tensor a \((\d+)\) must match the size of tensor b \((\d+)\) at non-singleton"),
    re.compile(r"expanded size of the tensor \((\d+)\) must match the existing size \((\d+)\)"),
)
_REFUSED = re.compile(r"(\d+) of (\d+), from \d+")
_POSITION = re.compile(r"pos|wpe|arange", re.IGNORECASE)
_FRAMES = 6
_SAME = "the longer samples lose their end, as those of the other split do; the scores of an evaluation are those of cut samples"


def propose(context: Context) -> Iterator[Proposal]:
    """One edit for all that lacks the cut of the other split."""
    sizes = _refused(context)
    if sizes is None or sizes[0] <= sizes[1] or sizes[1] < 2:
        return
    program, table = context.program, sizes[1]
    cuts = list(find_length_cuts(program, table))
    nodes = {one.node for one in cuts}
    for cut in cuts:
        for edit, file, span in written_for_both(cut, program):
            why = f"has no length, to which {_place(cut)} cuts the other split"
            yield _proposal((edit,), culprit_at(file, span, why), sizes)
    found = [
        one
        for cut in cuts
        for one in (
            *twins_of(cut, nodes, program),
            *made_for_both(cut, nodes, program),
            *given_for_both(cut, table, program),
        )
    ]
    edits = _together(found)
    if edits:
        first = found[0]
        why = f"leaves samples of one split as long as they are, which {_place(first.cut)} cuts for the other"
        yield _proposal(edits, culprit_of(first.file, first.node, why), sizes)


def _proposal(edits: tuple[Edit, ...], culprit: Culprit, sizes: tuple[int, int]) -> Proposal:
    return Proposal(
        edits=edits,
        culprit=culprit,
        belief=2.4,
        because=_SAME,
        title=f"Cut the samples of both splits: one of {sizes[0]} met a table of {sizes[1]}",
        is_origin=True,
    )


def _refused(context: Context) -> tuple[int, int] | None:
    """How long the sample was, and how long the table; of an index only where positions are looked up."""
    message = message_of(context)
    for one in _SIZES:
        found = one.search(message)
        if found is not None:
            sizes = sorted((int(found[1]), int(found[2])))
            return sizes[1], sizes[0]
    live = context.incident.fact("live_refused_index")
    found = _REFUSED.fullmatch(str(live.value)) if live is not None else None
    frames = [frame for one in context.incident.exceptions for frame in one.frames[-_FRAMES:]]
    is_position = any(_POSITION.search(one.code or "") for one in frames)
    return (int(found[1]) + 1, int(found[2])) if found is not None and is_position else None


def _place(cut: LengthCut) -> str:
    return f"{os.path.basename(cut.file.path)}:{cut.node.lineno}"


def _together(found: list[Uneven]) -> tuple[Edit, ...]:
    """All edits, each once; none where two would put different things in one place."""
    edits = dict.fromkeys(edit for one in found for edit in one.edits)
    places = {(one.file, one.start, one.end, _what(one)) for one in edits}
    return tuple(edits) if len(places) == len(edits) else ()


def _what(edit: Edit) -> str:
    """What stands once at a place: a slice, an argument of a name."""
    return edit.new.partition("=")[0] if edit.start == edit.end and edit.new.startswith(",") else ""
