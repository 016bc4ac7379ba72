"""Chooses among a cause's fixes by what is known of the environment."""

from __future__ import annotations

from collections.abc import Mapping

from explainer.match.surroundings import Surroundings
from explainer.model.finding import Fix
from explainer.model.rule import Cause, FixRule


def choose_fixes(cause: Cause, surroundings: Surroundings) -> tuple[Fix, ...]:
    """The fixes that can be taken here: those that the environment calls for first, those that it rules out not at all.

    A fix whose condition is not known keeps its place and states the condition. One that is `narrow` by its options is an edit of
    one special form: where no codemod has found that, it is read last.
    """
    called, others = [], []
    for rule in sorted(cause.fixes, key=lambda one: bool(one.options.get("narrow"))):
        if rule.when is None:
            others.append(_fix(rule))
            continue
        answer = _is_met(rule.when, surroundings)
        if answer is True:
            called.append(_fix(rule))
        elif answer is None:
            others.append(_fix(rule, f" (where {_condition(rule.when)})"))
    return (*called, *others)


def _condition(when: Mapping[str, object]) -> str:
    """The conditions of a fix in words."""
    words = {"gpu_has": "the GPU has {}", "gpu_lacks": "the GPU has no {}"}
    return " and ".join(words.get(key, f"{key} is {{}}").format(wanted) for key, wanted in when.items())


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


def _fix(rule: FixRule, condition: str = "") -> Fix:
    return Fix(
        id=rule.id,
        title=rule.title + condition,
        # An edit is advice until a codemod has found its place in the program.
        applicability=rule.applicability if rule.codemod is None else "display",
        kind=rule.kind if rule.codemod is None else "advice",
        command=rule.command,
        because=rule.because,
    )
