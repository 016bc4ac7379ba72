"""What is remembered: sightings of failures, the fixes and verifications of them, and the circumstances of good runs."""

from __future__ import annotations

from dataclasses import dataclass

FAILURE, FIX, VERIFICATION, UNDO = "failure", "fix", "verification", "undo"
PYTHON, PACKAGE, FILE, SETTING, ARGUMENT, VARIABLE, MACHINE, COMMIT = (
    "python", "package", "file", "setting", "argument", "variable", "machine", "commit",
)  # fmt: skip

Pairs = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """One thing that happened to a project: a failure seen, a fix applied or undone, a verification.

    `time` is in seconds since 1970, `project` the folder's name and a digest of its path. `way` is the command that noted it;
    `digest` tells sightings of one failure apart; `record` is the journal's id of a fix. Nothing of it is source code or a
    message.
    """

    kind: str
    time: float
    project: str
    way: str
    fingerprint: str | None = None
    digest: str | None = None
    cause: str | None = None
    exception: str | None = None
    file: str | None = None
    line: int | None = None
    function: str | None = None
    fix: str | None = None
    record: str | None = None
    verdict: str | None = None


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Circumstances:
    """What a run was made with. A part that is None was not looked at, and is not compared.

    `packages` are names and versions; `files` the program's own and those that git calls changed, with digests of their
    content; `settings` the values of configuration files by `file: key`, secrets masked; `arguments` the words after the
    program; `variables` those of the environment that steer torch; `machine` the GPUs and the driver.
    """

    python: str | None = None
    packages: Pairs | None = None
    machine: Pairs | None = None
    commit: str | None = None
    files: Pairs | None = None
    settings: Pairs | None = None
    arguments: tuple[str, ...] | None = None
    variables: Pairs | None = None
