"""`torch.where(x > 0, torch.log(x), 0)` becomes `torch.where(x > 0, torch.log(torch.where(x > 0, x, 1)), 0)`.

A value that is thrown away is computed all the same, and 0 times its infinite slope is NaN; with a safe input in its place
both are finite. The same where a mask multiplies, fills or indexes afterwards, also through a name.
"""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import combinations

from explainer.fix.clue.blame import blame
from explainer.fix.codemod import Context, Proposal, culprit_of
from explainer.fix.text.rewrite import replace_whole, spell
from explainer.source.graph.hazard import ARC, EXP, QUOTIENT, Hazard, find_hazards
from explainer.source.graph.selection import Selection, selection_of

_NAMES = {
    "log": "logarithm",
    "root": "root",
    "quotient": "quotient",
    "power": "power",
    "arc": "inverse",
    "exp": "exponential",
}


def propose(context: Context) -> Iterator[Proposal]:
    """An edit for each hazard whose result is selected afterwards."""
    if not context.has_failed:
        return
    groups: dict[ast.AST, list[tuple[Hazard, Proposal]]] = defaultdict(list)
    alike: dict[tuple[str, ast.AST | None, str], list[Proposal]] = defaultdict(list)
    for hazard in find_hazards(context.program, with_negative=True):
        selection = selection_of(hazard.node, hazard.file, context.program) if hazard.kind in _NAMES else None
        if selection is None or _is_safe_already(hazard):
            continue
        names = context.program.names(hazard.file)
        proposal = Proposal(
            edits=(
                replace_whole(hazard.file, hazard.argument, _safe_text(hazard, selection, spell(names, "torch.where"))),
            ),
            culprit=culprit_of(
                hazard.file, hazard.node, f"computes the {_NAMES[hazard.kind]} everywhere; the result {selection.how}"
            ),
            belief=blame(hazard, context) + 0.8,
        )
        groups[selection.node].append((hazard, proposal))
        function = context.program.names(hazard.file).function_of(hazard.node)
        alike[hazard.file.path, function, selection.condition].append(proposal)
        yield proposal
    for found in groups.values():
        yield from _both_branches(found)
    for proposals in alike.values():
        yield from _together(proposals)


def _both_branches(found: Sequence[tuple[Hazard, Proposal]]) -> Iterator[Proposal]:
    """What one selection throws away of each of its branches: with one of them left, the NaN comes from there."""
    yield from _together([one for hazard, one in found if hazard.kind != QUOTIENT])


def _together(found: Sequence[Proposal]) -> Iterator[Proposal]:
    """One edit for several values that are selected by one condition, which is met by all of them or by none."""
    edits = [one.edits[0] for one in found]
    if len(edits) > 1 and not any(
        one.start < other.end and other.start < one.end for one, other in combinations(edits, 2)
    ):
        first = max(found, key=lambda one: one.belief)
        yield replace(first, edits=tuple(edits), belief=first.belief + 0.3)


def _safe_text(hazard: Hazard, selection: Selection, where: str) -> str:
    """The argument where the value is kept, a harmless number elsewhere."""
    text = hazard.file.segment(hazard.argument)
    safe = "0" if hazard.kind in (ARC, EXP) else "1"
    condition = selection.condition
    if condition.startswith("(") and condition.endswith(")") and condition.count("(") == 1:
        condition = condition[1:-1]
    return f"{where}({condition}, {text}, {safe})" if selection.keeps else f"{where}({condition}, {safe}, {text})"


def _is_safe_already(hazard: Hazard) -> bool:
    """Whether the argument is chosen already, or is no expression of this line's own tensors."""
    return isinstance(hazard.argument, ast.Call) and getattr(hazard.argument.func, "attr", "") in (
        "where",
        "masked_fill",
    )
