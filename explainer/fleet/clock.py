"""When the failures of a log happened: the timestamps that its lines carry, noted while it streams by."""

from __future__ import annotations

import re
from bisect import bisect_right
from datetime import datetime, timedelta, timezone

from explainer.ingest.sieve import TRACEBACK

MAX_NOTES = 1000
_NEAR, _TAIL = 4 << 10, 64 << 10
_STAMP = re.compile(
    rb"(?<!\d)(?:(?P<year>20\d\d)[-/](?P<month>\d\d)[-/](?P<day>\d\d)|(?P<us_month>\d\d)/(?P<us_day>\d\d)/(?P<us_year>20\d\d))"
    rb"[T ](?P<hour>\d\d):(?P<minute>\d\d):(?P<second>\d\d)(?:[.,]\d{1,9})?(?P<zone>Z|[ ]?[+-]\d\d:?\d\d)?"
)


class Clock:
    """Takes a log piece by piece; knows the last timestamp above each traceback and the last one of all.

    A timestamp without a zone is taken for UTC.
    """

    def __init__(self) -> None:
        self._carry = b""
        self._lines = 0
        self._notes: list[tuple[int, str]] = []

    def feed(self, chunk: bytes) -> None:
        """Take the next bytes."""
        start = max(len(self._carry) - len(TRACEBACK) + 1, 0)
        counted = len(self._carry)
        data = self._carry + chunk
        at = data.find(TRACEBACK, start)
        while at >= 0 and len(self._notes) < MAX_NOTES:
            stamp = _last(data[max(at - _NEAR, 0) : at])
            if stamp is not None:
                if at > counted:
                    self._lines += data.count(b"\n", counted, at)
                    counted = at
                self._notes.append((self._lines + 1, stamp))
            at = data.find(TRACEBACK, at + len(TRACEBACK))
        self._lines += data.count(b"\n", counted)
        self._carry = data[-_TAIL:]

    def time_of(self, line: int | None) -> str | None:
        """The time of a failure at that line (from 1) in ISO 8601, UTC; the log's last timestamp where it has none."""
        if line is not None and self._notes:
            at = bisect_right(self._notes, (line, "~"))
            if at:
                return self._notes[at - 1][1]
        return _last(self._carry)


def _last(data: bytes) -> str | None:
    """The last timestamp of some bytes that is a date."""
    for found in reversed(list(_STAMP.finditer(data))):
        parts = {name: value.decode() for name, value in found.groupdict().items() if value is not None}
        try:
            moment = datetime(
                int(parts.get("year") or parts["us_year"]),
                int(parts.get("month") or parts["us_month"]),
                int(parts.get("day") or parts["us_day"]),
                int(parts["hour"]),
                int(parts["minute"]),
                int(parts["second"]),
                tzinfo=_zone(parts.get("zone", "Z").strip()),
            )
        except ValueError:
            continue
        return moment.astimezone(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
    return None


def _zone(text: str) -> timezone:
    if text == "Z":
        return timezone.utc
    digits = text[1:].replace(":", "")
    offset = timedelta(hours=int(digits[:2]), minutes=int(digits[2:]))
    return timezone(-offset if text[0] == "-" else offset)
