"""A run of the user's command, and what was done about its failure."""

from __future__ import annotations

from dataclasses import dataclass, field

from explainer.model.report import Report
from explainer.model.verification import ProcessReport, Verification

SCHEMA = "gradfix.run/1"
PASSED, SUSPECT, VERIFIED, UNPROVED, FAILED, UNFIXED = "passed", "suspect", "verified", "unproved", "failed", "unfixed"
REFUSED = "refused"


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One run: its exit status, the failure explained (None where it passed), and what its processes reported.

    `is_asked` where a signal for the program came to us, from the keyboard or a scheduler. `is_elsewhere` where the run has
    rank 0 on another node, whose gradfix tells of the whole job.
    """

    status: int
    seconds: float
    report: Report | None
    processes: tuple[ProcessReport, ...] = ()
    is_asked: bool = False
    is_elsewhere: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Applied:
    """A fix that was applied: of which cause, its diff, and the journal's record that takes it back."""

    cause: str
    fix: str
    title: str
    patch: str
    record: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Round:
    """One try: the cause and fix, and how its verification ended; `refused` where the fix could not be applied."""

    cause: str
    fix: str
    verdict: str
    reasons: tuple[str, ...] = ()
    report: Report | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Repair:
    """What `gradfix run` ends with. `status` is one of the words above, `exit_status` the command's own.

    `is_rehearsed` where all happened in a copy: what is `applied` is applied nowhere now.
    """

    schema: str = SCHEMA
    status: str
    exit_status: int
    report: Report | None
    rounds: tuple[Round, ...] = ()
    applied: tuple[Applied, ...] = ()
    verification: Verification | None = None
    is_rehearsed: bool = False
