"""Losses that train a tensor alone: a temperature, a multiplier, a threshold, whose optimizer owns nothing else."""

from __future__ import annotations

from explainer.source.loop.backward import calls_of, cleared, stepped
from explainer.source.loop.ownership import tensors_of
from explainer.source.loop.pair import Pair
from explainer.source.program import Program


def own_tensors(pair: Pair, program: Program) -> frozenset[str]:
    """The tensors that the second loss of a pair trains, and no module: what it shares with the first is data to it.

    Where both optimizers step behind both, the second one runs no module of its own.
    """
    found: set[str] = set()
    for statement, owned in pair.later:
        optimizer = stepped(statement) or cleared(statement)
        if not owned and optimizer:
            found |= tensors_of(optimizer, statement, pair.file, program)
    is_of_modules = bool(pair.trained_later - pair.stepped) or not pair.stepped
    if is_of_modules and not (pair.shared and _runs_nothing(pair, program)):
        return frozenset()
    return frozenset(found)


def _runs_nothing(pair: Pair, program: Program) -> bool:
    """Whether the second loss runs no module that an optimizer owns, beside what it shares with the first."""
    owned = {one for _, names in (*pair.steps, *pair.later) for one in names}
    apart = [one for one in pair.second_lines if one not in pair.shared and one not in pair.first_lines]
    return not any(calls_of(frozenset({name}), one, pair.file, program) for name in owned for one in apart)
