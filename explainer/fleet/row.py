"""One row of a triage: a failure with what is known of it, or an object that gave none."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from typing import Any

EXPLAINED, UNKNOWN, NO_FAILURE, EMPTY, UNREADABLE, KILLED = (
    "explained",
    "unknown",
    "no failure",
    "empty",
    "unreadable",
    "killed",
)
STATUSES = (EXPLAINED, UNKNOWN, NO_FAILURE, EMPTY, UNREADABLE, KILLED)
FAULTY = frozenset((UNREADABLE, KILLED))


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """A failure; its fields are the columns, in this order, of every output.

    `failure` counts within `file`, from 1; it is 0 where the object holds no failure or was not read, which `status` tells:
    "explained", "unknown" (a failure without a finding), "no failure", "empty", "unreadable", "killed" (the process that
    read it died twice). `time` is UTC, `time_from` says whether it was read in the "log" or is the "object"'s last change.
    `score` is the share of the belief, from 0 to 1. `template` is `message` with open values. `detail` says why an object
    was not read, or not to its end.
    """

    job: str
    file: str
    failure: int = 0
    status: str
    rank: int | None = None
    time: str | None = None
    time_from: str | None = None
    cause: str | None = None
    kind: str | None = None
    confidence: str | None = None
    score: float | None = None
    guilty_file: str | None = None
    guilty_line: int | None = None
    exception: str | None = None
    message: str | None = None
    template: str | None = None
    op: str | None = None
    shapes: tuple[str, ...] = ()
    versions: tuple[tuple[str, str], ...] = ()
    gpu: str | None = None
    fingerprint: str | None = None
    detail: str | None = None

    @property
    def is_failure(self) -> bool:
        """Whether something went wrong in the program: not a benign notice, nor an object without a failure."""
        return self.failure > 0 and self.kind != "notice"

    def version(self, package: str) -> str | None:
        """The version of a package that the log states, or None."""
        return dict(self.versions).get(package)


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """What came of one object: its rows as a JSON array, how many are failures, and whether it was not read to its end.

    The JSON is made where the object was read: one process that collects serves many that read.
    """

    rows: str
    failures: int
    is_faulty: bool


COLUMNS = tuple(field.name for field in fields(Row))


def to_object(row: Row) -> dict[str, Any]:
    """The row as JSON has it: every column in order, `versions` as an object."""
    values = {name: getattr(row, name) for name in COLUMNS}
    return {**values, "shapes": list(row.shapes), "versions": dict(row.versions)}


def reading_of(rows: Iterable[Row]) -> Reading:
    """The rows of one object as they are handed on and kept."""
    rows = tuple(rows)
    return Reading(
        rows=json.dumps([to_object(row) for row in rows], separators=(",", ":")),
        failures=sum(1 for row in rows if row.is_failure),
        is_faulty=any(row.status in FAULTY or row.detail for row in rows),
    )


def from_object(values: Mapping[str, Any]) -> Row:
    """The row that `to_object` wrote."""
    named = {name: values[name] for name in COLUMNS}
    return Row(**{**named, "shapes": tuple(values["shapes"]), "versions": tuple(values["versions"].items())})
