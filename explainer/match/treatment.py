"""Chooses among a cause's fixes by what is known of the environment."""

from __future__ import annotations

from collections.abc import Mapping

from explainer.match.surroundings import Surroundings
from explainer.model.finding import Fix
from explainer.model.rule import Cause, FixRule


def choose_fixes(cause: Cause, surroundings: Surroundings) -> tuple[Fix, ...]:
    """The fixes that can be taken here: those that the environment calls for first, those that it rules out not at all."""
    called, open_ = [], []
    for rule in cause.fixes:
        answer = None if rule.when is None else _is_met(rule.when, surroundings)
        if answer is True:
            called.append(_fix(rule))
        elif answer is None:
            open_.append(_fix(rule))
    return (*called, *open_)


def _is_met(when: Mapping[str, object], surroundings: Surroundings) -> bool | None:
    """Whether the conditions of a fix hold here; None where that is not known."""
    answers = []
    for key, wanted in when.items():
        if key in ("gpu_has", "gpu_lacks"):
            ability = surroundings.ability(str(wanted))
            answers.append(None if ability is None else ability[0] == (key == "gpu_has"))
        else:
            satisfied = surroundings.satisfies(key, str(wanted))
            answers.append(None if satisfied is None else satisfied[0])
    if any(answer is False for answer in answers):
        return False
    return None if any(answer is None for answer in answers) else True


def _fix(rule: FixRule) -> Fix:
    return Fix(
        id=rule.id,
        title=rule.title,
        applicability=rule.applicability,
        kind=rule.kind,
        command=rule.command,
        because=rule.because,
    )
