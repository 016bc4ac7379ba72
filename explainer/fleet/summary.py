"""What a triage's rows come to: counts by cause, day, version, GPU and file, in one pass and bounded memory."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from explainer.fleet.cluster import Clusters
from explainer.fleet.row import EMPTY, FAULTY, UNKNOWN, Row

UNKNOWN_CAUSE = "(unknown)"
MAX_KEYS, MAX_UNREAD = 50_000, 200

Table = Counter[tuple[str, str]]


@dataclass(slots=True)
class CauseLine:
    """One cause over all rows: how often, how sure, in how many jobs, and where first."""

    count: int = 0
    sure: Counter[str] = field(default_factory=Counter)
    places: Counter[str] = field(default_factory=Counter)
    example: str = ""


@dataclass(slots=True)
class Summary:
    """Counts over rows. The tables count (key, cause): by hour in UTC, torch release, GPU, and guilty file."""

    statuses: Counter[str] = field(default_factory=Counter)
    causes: dict[str, CauseLine] = field(default_factory=dict)
    by_hour: Table = field(default_factory=Counter)
    by_version: Table = field(default_factory=Counter)
    by_gpu: Table = field(default_factory=Counter)
    by_file: Table = field(default_factory=Counter)
    clusters: Clusters = field(default_factory=Clusters)
    unread: list[Row] = field(default_factory=list)
    objects: int = 0
    failures: int = 0
    notices: int = 0
    cut: int = 0

    def add(self, row: Row) -> None:
        """Count a row; rows come in the order of their objects."""
        self.statuses[row.status] += 1
        self.objects += row.failure <= 1
        if row.status in FAULTY or row.status == EMPTY or row.detail:
            self.cut += bool(row.detail) and row.failure <= 1 and row.status not in (*FAULTY, EMPTY)
            if len(self.unread) < MAX_UNREAD:
                self.unread.append(row)
        self.notices += row.failure > 0 and not row.is_failure
        if row.is_failure:
            self.failures += 1
            self._count(row)

    @property
    def is_all_read(self) -> bool:
        """Whether every object was read, and to its end."""
        return not self.cut and not any(self.statuses[status] for status in FAULTY)

    def ranked(self) -> list[tuple[str, CauseLine]]:
        """The causes, the most frequent first; what is unknown is one of them."""
        return sorted(self.causes.items(), key=lambda item: (-item[1].count, item[0]))

    def _count(self, row: Row) -> None:
        cause = UNKNOWN_CAUSE if row.status == UNKNOWN else str(row.cause)
        line = self.causes.setdefault(cause, CauseLine(example=row.file))
        line.count += 1
        line.sure[row.confidence or "unknown"] += 1
        if row.guilty_file:
            place = f"{short_path(row.guilty_file)}:{row.guilty_line}"
            _bump(line.places, place)
            self._bump(self.by_file, short_path(row.guilty_file), cause)
        if row.time is not None:
            self._bump(self.by_hour, row.time[:13], cause)
        self._bump(self.by_version, row.version("torch") or "not stated", cause)
        self._bump(self.by_gpu, row.gpu or "not stated", cause)
        self.clusters.add(row)

    @staticmethod
    def _bump(table: Table, key: str, cause: str) -> None:
        _bump(table, (key, cause))


def short_path(path: str) -> str:
    """The last two parts of a path: what is the same on every machine."""
    return "/".join(path.replace("\\", "/").split("/")[-2:])


def _bump(table: Counter, key: object) -> None:  # type: ignore[type-arg]
    """Count; a table that would grow without end loses its rarest half."""
    table[key] += 1
    if len(table) > MAX_KEYS:
        for rare, _ in table.most_common()[MAX_KEYS // 2 :]:
            del table[rare]
