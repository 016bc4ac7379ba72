"""`nn.ReLU(inplace=True)` becomes `nn.ReLU(inplace=False)`, also in a functional call: the activation's input stays.

Where the argument comes from a configuration file, a dictionary or a default, that is what is edited.
"""

from __future__ import annotations

import ast
import os
from collections.abc import Iterator

from explainer.fix.codemod import Context, Proposal, culprit_at, culprit_of, edit_of
from explainer.fix.result import take_results
from explainer.fix.setting_edit import set_value
from explainer.fix.suspicion import suspect
from explainer.model.finding import Culprit
from explainer.model.patch import Edit
from explainer.source.graph.write import ARGUMENT, Write, find_writes
from explainer.source.program import Program

_WHY = "writes its input in place, also where another backward needs it"


def propose(context: Context) -> Iterator[Proposal]:
    """An edit for each suspicious `inplace=True`."""
    together: list[Edit] = []
    places: list[Culprit] = []
    for write in find_writes(context.program):
        belief = suspect(write, context) if write.kind == ARGUMENT else None
        if belief is None or not context.has_failed:
            continue
        if write.settings:
            yield from _in_settings(write, belief, context.program)
            continue
        assert isinstance(write.node, ast.Call)
        (keyword,) = [one for one in write.node.keywords if one.arg == "inplace"]
        results = take_results(write.node, write.file, context.program)
        if results is None:
            continue
        edits = (*results, edit_of(write.file, keyword.value, "False"))
        together += edits
        places.append(culprit_of(write.file, write.node, _WHY))
        yield Proposal(edits=edits, culprit=places[-1], belief=belief - 0.2)
    if len(places) > 1 and context.options.get("at") == "raise":
        yield Proposal(edits=tuple(dict.fromkeys(together)), culprit=places[0], belief=0.6)


def _in_settings(write: Write, belief: float, program: Program) -> Iterator[Proposal]:
    """One edit for all the settings that switch the same argument on."""
    edits = [set_value(one, False) for one in write.settings]  # noqa: FBT003 - the value that is written
    done = tuple(one for one in edits if isinstance(one, Edit))
    results = take_results(write.node, write.file, program) if isinstance(write.node, ast.Call) else None
    if len(done) == len(edits) and results is not None:
        first = write.settings[0]
        span = (first.key[0] if first.key else first.span[0], first.span[1])
        place = f"{os.path.basename(write.file.path)}:{write.node.lineno}"
        yield Proposal(
            edits=(*results, *done),
            culprit=culprit_at(first.file, span, f"makes the module of {place} write its input in place"),
            belief=belief - 0.2,
        )
