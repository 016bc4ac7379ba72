"""The whole answer to one incident, as it is printed, written as JSON and returned by `explain`."""

from __future__ import annotations

from dataclasses import dataclass

from explainer.model.environment import Environment
from explainer.model.finding import Finding
from explainer.model.incident import Incident
from explainer.model.memory import Changes, Seen

SCHEMA = "gradfix.report/1"


@dataclass(frozen=True, slots=True, kw_only=True)
class Nearest:
    """A known message that resembles the one that was not recognised; `similarity` is from 0 to 1."""

    signature: str
    message: str
    similarity: float
    causes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Unknown:
    """Why there is no finding, what would help, and the one command to run next."""

    why: str
    nearest: tuple[Nearest, ...] = ()
    missing: tuple[str, ...] = ()
    next_command: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """One explained incident. `findings` are ranked; where nothing fits they are empty and `unknown` says what to do.

    `fingerprint` is what sightings of one failure have in common; `seen` what is remembered of earlier ones, `changes` how the
    circumstances differ from the last good run. `faults` name rules that could not be used.
    """

    schema: str = SCHEMA
    incident: Incident
    environment: Environment | None = None
    findings: tuple[Finding, ...] = ()
    unknown: Unknown | None = None
    faults: tuple[str, ...] = ()
    fingerprint: str | None = None
    seen: Seen | None = None
    changes: Changes | None = None
