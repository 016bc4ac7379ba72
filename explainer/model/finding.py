"""What gradfix concludes: causes ranked for one incident, with evidence, guilty lines and fixes."""

from __future__ import annotations

from dataclasses import dataclass, field

from explainer.model.patch import FilePatch
from explainer.model.rule import LookAlike, Myth

CERTAIN, LIKELY, POSSIBLE = "certain", "likely", "possible"
RANK_EVIDENCE = ("first-rank", "odd-rank")  # what the ranks say, which the card tells in its head
SYMPTOM_LINE = "symptom-line"  # evidence of a line that speaks for a more exact cause, where one of the findings is it


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """One observed fact for (positive weight, in log-odds) or against a cause, with where it was read."""

    id: str
    reads: str
    says: str
    weight: float
    file: str | None = None
    line: int | None = None
    proves: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Culprit:
    """A line that the finding points at. `mark` is the half-open column range of the guilty expression in `code`.

    `before` and `after` are the neighbouring lines, indented relative to `code`, where the source was read.
    """

    file: str
    line: int | None = None
    function: str | None = None
    code: str | None = None
    mark: tuple[int, int] | None = None
    why: str | None = None
    before: tuple[str, ...] = ()
    after: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Fix:
    """A proposed cure of a finding: an edit (with its patch), a configuration change, a command, or advice.

    `patch` is the unified diff that is shown, `changes` the files before and after, which JSON leaves out.
    """

    id: str
    title: str
    applicability: str
    kind: str
    patch: str | None = None
    command: str | None = None
    because: str = ""
    changes: tuple[FilePatch, ...] = field(default=(), repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """A cause ranked for an incident. `score` is its share of the belief, from 0 to 1.

    `fields` are the values that the recognised message names, by name.
    """

    cause: str
    title: str
    summary: str
    kind: str
    confidence: str
    score: float
    evidence: tuple[Evidence, ...] = ()
    culprits: tuple[Culprit, ...] = ()
    fixes: tuple[Fix, ...] = ()
    myths: tuple[Myth, ...] = ()
    look_alikes: tuple[LookAlike, ...] = ()
    proves_not: str | None = None
    fields: tuple[tuple[str, str], ...] = ()
