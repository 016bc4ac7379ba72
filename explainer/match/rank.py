"""Weighs the causes of an incident against each other: log-odds summed, shared out, and put into words.

The belief of a cause is its signature's salience plus its prior among the causes of that signature plus the weights of
its evidence. Beliefs are shared out (softmax) among all candidates and "something else". `certain` needs a proof;
`likely` a share that was right often enough on labelled incidents (`benchmarks/calibration.py` prints how often).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from explainer.catalog.catalog import Catalog
from explainer.match.culprit import find_culprits
from explainer.match.evidence import Scene, observe_cause
from explainer.match.interface import Told, propose, tell
from explainer.match.metrics import observe
from explainer.match.nearest import is_raised_by_program
from explainer.match.resemblance import find_resembling
from explainer.match.signature import SignatureMatch, find_signatures
from explainer.match.surroundings import Surroundings
from explainer.match.treatment import choose_fixes
from explainer.match.utterance import Utterance, log_utterances, metric_utterance, utterances_of
from explainer.model.environment import Environment
from explainer.model.finding import CERTAIN, LIKELY, POSSIBLE, Evidence, Finding, Fix
from explainer.model.incident import Incident
from explainer.model.rule import Cause

SOMETHING_ELSE = 1.0
LIKELY_SHARE = 0.62
CERTAIN_SHARE = 0.5
SHOWN_SHARE = 0.01
_MESSENGER = 3.0
_UNRECOGNISED = 0.5
_UNEXPLAINED, _NOTICED, _HARDLY = 1.8, 0.5, -2.0
_NOTICE = 1.0
_OWN_WORDS = 1.6  # what a program raises in its own words may come of anything before it


class _Candidate(NamedTuple):
    """A cause, the match that brought it in, what was observed of it, and the sum of it all in log-odds."""

    cause: Cause
    match: SignatureMatch
    evidence: tuple[Evidence, ...]
    belief: float
    told: Told | None = None


def rank_causes(
    incident: Incident, environment: Environment | None, catalog: Catalog, faults: list[str] | None = None
) -> tuple[Finding, ...]:
    """The findings for an incident, most believed first; empty where nothing of it is recognised.

    A cause whose rules fail is left out, and named in `faults`.
    """
    failed_at = next((record.log_line for record in incident.exceptions if record.type), None)
    observations = observe(incident.metrics, failed_at)
    said = [*utterances_of(incident), *log_utterances(incident), *map(metric_utterance, observations)]
    matches = find_signatures(catalog, said)
    if all(match.utterance.kind == "warning" for match in matches):
        matches.extend(find_resembling(catalog, said))
    surroundings = Surroundings(incident, environment)
    best: dict[str, _Candidate] = {}
    for match in matches:
        is_late = catalog.is_messenger(match.signature) and _is_told_elsewhere(match, matches, said, catalog)
        told = tell(match, incident, catalog, surroundings)
        for name in catalog.causes_of(match.signature):
            try:
                cause = catalog.cause(name)
                evidence = observe_cause(cause, Scene(incident, match, surroundings, observations, told))
            except Exception as error:  # noqa: BLE001 - one broken rule must not cost the others
                if faults is not None:
                    faults.append(f"{name}: {type(error).__name__}: {error}")
                continue
            belief = _belief(cause, match, evidence) - (_MESSENGER if is_late else 0.0)
            if name not in best or belief > best[name].belief:
                best[name] = _Candidate(cause, match, evidence, belief, told)
    candidates = sorted(best.values(), key=lambda one: -one.belief)
    unknown = [one.salience - _UNRECOGNISED for one in _unknown_exceptions(said, matches, -math.inf)]
    hardly = [one.salience - _UNRECOGNISED for one in _unknown_exceptions(said, matches, _HARDLY)]
    is_notice = bool(candidates) and candidates[0].match.utterance.kind == "warning"
    is_warned = is_notice and _may_come_of(candidates[0].match.utterance, incident)
    if is_notice and not is_warned and hardly and candidates[0].belief + _NOTICED < max(hardly):
        return ()  # a library's notice beside an exception that is not known, or hardly
    something_else = _OWN_WORDS if is_warned else max([SOMETHING_ELSE, *unknown])
    return _findings(candidates, something_else, incident, surroundings)


def _belief(cause: Cause, match: SignatureMatch, evidence: Sequence[Evidence]) -> float:
    prior = cause.prior.get(match.signature, 0.0)
    notice = _NOTICE if cause.kind == "notice" else 0.0
    return match.utterance.salience + match.weight + prior + sum(one.weight for one in evidence) - notice


def _is_told_elsewhere(
    match: SignatureMatch, matches: Sequence[SignatureMatch], said: Sequence[Utterance], catalog: Catalog
) -> bool:
    """Whether something else in the log failed, so that a messenger only reports it."""
    if any(not catalog.is_messenger(other.signature) and other.utterance.salience >= 2.0 for other in matches):
        return True
    return any(one.kind == "exception" and one.type and one is not match.utterance for one in said)


def _may_come_of(warning: Utterance, incident: Incident) -> bool:
    """Whether what the program itself raised, in words of its own, may come of what it was warned of at a line of its own.

    Not of what is deprecated, which still does what it did.
    """
    warned = incident.warnings[warning.number]
    is_own = warned.file is not None and warned.library is None and "UserWarning" in warned.category
    return is_own and is_raised_by_program(incident)


def _unknown_exceptions(
    said: Sequence[Utterance], matches: Sequence[SignatureMatch], least: float
) -> Iterator[Utterance]:
    """The exceptions that no signature of more than a weight knows: the belief in "something else" is higher where there is one."""
    known = {
        match.utterance.number for match in matches if match.utterance.kind == "exception" and match.weight > least
    }
    yield from (one for one in said if one.kind == "exception" and one.type and one.number not in known)


def _findings(
    candidates: Sequence[_Candidate], something_else: float, incident: Incident, surroundings: Surroundings
) -> tuple[Finding, ...]:
    if not candidates:
        return ()
    if something_else - candidates[0].belief > _UNEXPLAINED:
        return ()  # an unknown exception ended the run: a mere line of the log does not explain it
    top = max(candidates[0].belief, something_else)
    total = sum(math.exp(one.belief - top) for one in candidates) + math.exp(something_else - top)
    findings: list[Finding] = []
    for index, one in enumerate(candidates):
        share = math.exp(one.belief - top) / total
        if index and share < SHOWN_SHARE:
            break
        findings.append(_finding(one, share, incident, surroundings, is_first=index == 0))
    return tuple(findings)


def _finding(
    one: _Candidate, share: float, incident: Incident, surroundings: Surroundings, *, is_first: bool
) -> Finding:
    is_proved = one.match.proves or any(evidence.proves and evidence.weight > 0 for evidence in one.evidence)
    confidence = POSSIBLE
    if is_first and is_proved and share >= CERTAIN_SHARE:
        confidence = CERTAIN
    elif is_first and share >= LIKELY_SHARE and one.match.resembles is None:
        confidence = LIKELY
    cause = one.cause
    return Finding(
        cause=cause.id,
        title=cause.title,
        summary=cause.summary,
        kind=cause.kind,
        confidence=confidence,
        score=round(share, 4),
        evidence=(_recognised(one.match), *one.evidence),
        culprits=find_culprits(incident, one.match),
        fixes=_fixes(one, surroundings),
        myths=cause.myths,
        look_alikes=cause.look_alikes,
        proves_not=cause.proves_not,
        fields=tuple((name, _shown(value)) for name, value in one.match.fields.items()),
    )


def _fixes(one: _Candidate, surroundings: Surroundings) -> tuple[Fix, ...]:
    """What the table of interfaces says to write, where the cause reads that table, then the cause's own fixes."""
    reads_table = any(evidence.reads == "interface" and evidence.weight > 0 for evidence in one.evidence)
    first = (propose(one.told),) if one.told is not None and reads_table else ()
    return (*first, *choose_fixes(one.cause, surroundings))


def _shown(value: object) -> str:
    return f"[{', '.join(map(str, value))}]" if isinstance(value, tuple) else str(value)


def _recognised(match: SignatureMatch) -> Evidence:
    """The message itself, as the first piece of evidence."""
    where = {"exception": "the exception's message", "warning": "a warning", "log": "a line of the log"}
    quoted = match.utterance.flat if len(match.utterance.flat) <= 160 else match.utterance.flat[:157] + "..."
    if match.resembles is not None:
        near = match.resembles
        quoted = f"{near.message[:157]}... ({near.similarity:.0%} alike)"
        where = dict.fromkeys(where, "no wording fits exactly; the message resembles a known one, which")
    says = (
        f"the metrics show it: {quoted}"
        if match.utterance.kind == "metrics"
        else f"{where[match.utterance.kind]} says: {quoted}"
    )
    return Evidence(
        id="signature", reads="log" if match.utterance.kind in ("log", "metrics") else
        ("warnings" if match.utterance.kind == "warning" else "message"),
        says=says, weight=0.0, proves=match.proves,
    )  # fmt: skip
