"""What a card says of the memory: earlier sightings of the failure, and what changed since the last good run."""

from __future__ import annotations

from dataclasses import dataclass

PYTHON, PACKAGE, FILE, SETTING, ARGUMENT, VARIABLE, MACHINE, COMMIT = (
    "python", "package", "file", "setting", "argument", "variable", "machine", "commit",
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """Earlier sightings of a failure: how many, the first and the last in seconds since 1970, and what cured it.

    `fix` is the fix that was applied last and not found wrong or undone; `is_verified` where a run proved it.
    """

    times: int
    first: float
    last: float
    fix: str | None = None
    is_verified: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One circumstance that differs from the last good run. `before` or `now` is None where there was none, or is none.

    `kind` is "package", "python", "file", "setting", "argument", "variable", "machine" or "commit"; `why` says what makes it
    suspicious. Of a file only that it changed is known: the values are the first digits of digests.
    """

    kind: str
    name: str
    before: str | None = None
    now: str | None = None
    why: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Changes:
    """How a failed run differs from the last good one of the same program, most suspicious first; `since` is that one's time."""

    since: float
    items: tuple[Change, ...] = ()
