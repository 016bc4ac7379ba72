"""Failures that no rule knows, gathered by the template of their message, each as a file that a new rule is made from."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

from explainer.catalog.cluster import SCHEMA
from explainer.fleet.row import UNKNOWN, Row
from explainer.fleet.template import ANY, literals_of, pattern_of

MAX_CLUSTERS, MAX_KEPT = 5000, 5
_LIKE = 0.75  # the share of words that two templates of one cluster have in common, as in Drain
_MAX_BUCKET = 200


@dataclass(slots=True)
class Cluster:
    """Unknown failures of one exception whose messages have one template."""

    exception: str
    template: str
    count: int = 0
    messages: list[str] = field(default_factory=list)
    files: list[str] = field(default_factory=list)
    torch: Counter[str] = field(default_factory=Counter)
    first: str | None = None
    last: str | None = None

    @property
    def name(self) -> str:
        """A short name for its file: the exception and the first words."""
        words = re.findall(r"[a-z]+", re.sub(r"<[a-z]+>", " ", self.template.lower()))[:6]
        named = [self.exception.rpartition(".")[2].lower() or "no-exception", *words]
        return "-".join(named)[:60].strip("-")

    def add(self, row: Row) -> None:
        """Count a failure, and keep of it what the cluster has room for."""
        self.count += 1
        for kept, value in ((self.messages, row.message), (self.files, row.file)):
            if value and value not in kept and len(kept) < MAX_KEPT:
                kept.append(value)
        self.torch[row.version("torch") or "unknown"] += 1
        if row.time is not None:
            self.first = min(self.first or row.time, row.time)
            self.last = max(self.last or row.time, row.time)


class Clusters:
    """Takes rows in their order; the same rows give the same clusters."""

    def __init__(self) -> None:
        self.dropped = 0
        self._all: list[Cluster] = []
        self._exact: dict[tuple[str, str], Cluster] = {}
        self._alike: dict[tuple[str, int, str], list[Cluster]] = {}

    def add(self, row: Row) -> None:
        """Put an unknown failure into its cluster; other rows are none."""
        if row.status != UNKNOWN:
            return
        exception, template = row.exception or "", row.template or ""
        cluster = self._exact.get((exception, template)) or self._find(exception, template)
        if cluster is None:
            self.dropped += 1
            return
        if len(self._exact) < 4 * MAX_CLUSTERS:
            self._exact[exception, template] = cluster
        cluster.add(row)

    def ranked(self) -> list[Cluster]:
        """The clusters, the most frequent first."""
        return sorted(self._all, key=lambda one: (-one.count, one.exception, one.template))

    def _find(self, exception: str, template: str) -> Cluster | None:
        words = template.split(" ")
        bucket = self._alike.setdefault((exception, len(words), words[0]), [])
        for cluster in bucket:
            merged = _merge(cluster.template.split(" "), words)
            if merged is not None:
                cluster.template = merged
                return cluster
        if len(self._all) >= MAX_CLUSTERS:
            return None
        cluster = Cluster(exception, template)
        self._all.append(cluster)
        if len(bucket) < _MAX_BUCKET:
            bucket.append(cluster)
        return cluster


def _merge(ours: list[str], theirs: list[str]) -> str | None:
    """Two templates of equal length as one, the words that differ open; None where too many do."""
    same = sum(1 for one, other in zip(ours, theirs, strict=True) if one == other)
    if same < _LIKE * len(ours) or len(ours) < 4:
        return None
    return " ".join(one if one == other else ANY for one, other in zip(ours, theirs, strict=True))


def to_toml(cluster: Cluster) -> str:
    """The file of a cluster, which `gradfix rules new --from-cluster` reads."""
    return "\n".join(_lines(cluster)) + "\n"


def _lines(cluster: Cluster) -> Iterator[str]:
    yield "# A failure that no rule knows. `gradfix rules new FAMILY/SLUG --from-cluster` with this file lays out a rule for it."
    yield f"schema = {_quoted(SCHEMA)}"
    yield f"count = {cluster.count}"
    if cluster.first and cluster.last:
        yield f"first = {_quoted(cluster.first)}"
        yield f"last = {_quoted(cluster.last)}"
    yield f"exception = {_quoted(cluster.exception)}"
    yield f"template = {_quoted(cluster.template)}"
    yield f"contains = {_list(literals_of(cluster.template))}"
    yield f"pattern = {_quoted(pattern_of(cluster.template))}"
    yield f"torch = {_list([name for name, _ in cluster.torch.most_common(MAX_KEPT) if name != 'unknown'])}"
    yield f"messages = {_list(cluster.messages)}"
    yield f"files = {_list(cluster.files)}"


def _list(values: list[str]) -> str:
    return "[" + ", ".join(_quoted(one) for one in values) + "]"


def _quoted(text: str) -> str:
    """A basic string of TOML: JSON's, but for what only one of the two allows."""
    clean = text.encode("utf-8", "replace").decode("utf-8")
    return json.dumps(clean, ensure_ascii=False).replace("\x7f", "\\u007f")
