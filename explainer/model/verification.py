"""What a run under watch showed: steps, losses, gradients, and the verdict on them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

GREEN, RED, INCONCLUSIVE = "green", "red", "inconclusive"
SCHEMA = "gradfix.verification/1"


@dataclass(frozen=True, slots=True, kw_only=True)
class StepRow:
    """One optimizer step: how many of its parameters had a gradient, how many of these were exactly zero, their norm.

    `norm` is None where a gradient was not finite.
    """

    optimizer: str
    step: int
    parameters: int
    given: int
    zero: int
    norm: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ParameterHealth:
    """One parameter over all watched steps: in how many it had a gradient, one that is not zero, one that is not finite."""

    name: str
    optimizer: str
    trains: bool
    given: int
    moved: int
    bad: int
    shape: tuple[int, ...] = ()
    dtype: str = ""
    device: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """An exception that a process noted: where it was seen, its traceback as text, and each optimizer's steps so far.

    `facts` are what the live objects said, by name: `live_moved_parameter`, `live_trainable`, `live_grad_enabled`, ...
    """

    type: str
    message: str
    where: str
    text: str = field(default="", repr=False)
    steps: tuple[tuple[str, int], ...] = ()
    facts: tuple[tuple[str, str], ...] = ()
    traced: dict[str, Any] = field(default_factory=dict, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessReport:
    """What one process of the run reported. `not_finite` names optimizers whose parameters are not finite at the end.

    `traced` is what the tracer saw by the end, here as in `Failure` as it came: `verification.traced` reads it.
    """

    pid: int
    rank: str | None = None
    is_stopped: bool = False
    steps: tuple[tuple[str, int], ...] = ()
    rows: tuple[StepRow, ...] = ()
    losses: tuple[float, ...] = ()
    parameters: tuple[ParameterHealth, ...] = ()
    failures: tuple[Failure, ...] = ()
    step_seconds: float | None = None
    not_finite: tuple[str, ...] = ()
    traced: dict[str, Any] = field(default_factory=dict, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Verification:
    """The verdict on a run, why, and what it was read from. `status` is the command's exit status."""

    schema: str = SCHEMA
    verdict: str
    reasons: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    status: int = 0
    seconds: float = 0.0
    processes: tuple[ProcessReport, ...] = ()
    output: str = field(default="", repr=False)
