"""What a rule base says: signatures (what is printed), causes (why), their evidence, fixes and myths."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class Form:
    """One wording of a message.

    `contains` are literals that must all occur (the prefilter), `pattern` is a regular expression searched in the
    message from its start, `stands` says where such a message is printed, `proves` that it has one cause only.
    """

    contains: tuple[str, ...]
    pattern: str | None = None
    stands: str = "exception"
    exceptions: tuple[str, ...] = ()
    proves: bool = False
    weight: float = 0.0
    samples: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Signature:
    """What is printed: message shapes that several causes share. A `messenger` only reports a failure elsewhere."""

    name: str
    title: str
    forms: tuple[Form, ...]
    messenger: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class EvidenceRule:
    """A condition on one of the things that an incident holds, and what it says for (or against) the cause.

    `conditions` are the keys of the rule that the reader of that kind understands; `weight` is in log-odds.
    """

    id: str
    reads: str
    says: str
    weight: float
    proves: bool = False
    conditions: Mapping[str, object]


@dataclass(frozen=True, slots=True, kw_only=True)
class FixRule:
    """A cure. `when` are conditions on the environment under which it is the one to take."""

    id: str
    title: str
    kind: str
    applicability: str
    because: str
    command: str | None = None
    codemod: str | None = None
    options: Mapping[str, object] = field(default_factory=dict)
    when: Mapping[str, object] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Myth:
    """A popular remedy that is wrong or half right here, and why; `experiment` names its folder in `knowledge/myths`."""

    remedy: str
    why: str
    experiment: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LookAlike:
    """A cause that prints the same, and what would tell the two apart."""

    cause: str
    decides: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Cause:
    """An entry of the rule base: why a failure happens. `prior` is the log-odds by signature before any evidence."""

    id: str
    title: str
    summary: str
    kind: str
    status: str
    since: str
    signatures: tuple[str, ...] = ()
    prior: Mapping[str, float]
    forms: tuple[Form, ...] = ()
    look_alikes: tuple[LookAlike, ...] = ()
    proves_not: str | None = None
    applies: Mapping[str, str]
    needs: tuple[str, ...] = ()
    evidence: tuple[EvidenceRule, ...] = ()
    fixes: tuple[FixRule, ...] = ()
    myths: tuple[Myth, ...] = ()
