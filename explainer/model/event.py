"""What is remembered of a project: failures seen, fixes applied and taken back, verifications."""

from __future__ import annotations

from typing import NamedTuple

FAILURE, FIX, VERIFICATION, UNDO = "failure", "fix", "verification", "undo"


class Event(NamedTuple):
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
