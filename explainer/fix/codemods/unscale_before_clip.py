"""`scaler.unscale_(optimizer)` before a clip that a run was seen to do on gradients that still carry the scaler's factor."""

from __future__ import annotations

import re
from collections.abc import Iterator

from explainer.fix.codemod import Context, Proposal, culprit_of, insert_before
from explainer.model.patch import Edit
from explainer.model.verification import CLIPS_SCALED
from explainer.source.step import CLIP, SCALER_STEP, UNSCALE, find_acts

_SEEN = re.compile(rf"(\S+):(\d+) {re.escape(CLIPS_SCALED)}")


def propose(context: Context) -> Iterator[Proposal]:
    """An edit for the clip that was seen, where its function steps one optimizer behind it; else its line."""
    seen = {(found[1], int(found[2])) for one in context.incident.log if (found := _SEEN.search(one.text))}
    acts = list(find_acts(context.program)) if seen else []
    for clip in (one for one in acts if one.kind == CLIP):
        file = clip.file
        if (file.path.replace("\\", "/").rpartition("/")[2], clip.call.lineno) not in seen:
            continue
        function = context.program.names(file).function_of(clip.call)
        beside = [
            one for one in acts if one.file is file and context.program.names(file).function_of(one.call) is function
        ]
        steps = [one for one in beside if one.kind == SCALER_STEP and one.call.args]
        edits: tuple[Edit, ...] = ()
        if len(steps) == 1 and not any(one.kind == UNSCALE for one in beside):
            optimizer = file.segment(steps[0].call.args[0])
            edits = (insert_before(file, clip.statement, f"{steps[0].object}.unscale_({optimizer})"),)
        yield Proposal(
            edits=edits,
            culprit=culprit_of(file, clip.call, "clips gradients that still carry the scaler's factor"),
            belief=2.0,
        )
