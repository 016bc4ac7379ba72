"""The confusion of a rule base with itself: which cause each of its own recordings is explained by."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import NamedTuple

from explainer.catalog.catalog import Catalog
from explainer.catalog.check import printed_files
from explainer.ingest.text import read_text
from explainer.match.rank import rank_causes


class Confusion(NamedTuple):
    """One recording: its file, the cause that it was recorded for, and the causes found, best first."""

    file: str
    cause: str
    found: tuple[str, ...]
    confidence: str | None

    @property
    def is_own(self) -> bool:
        """Whether its own cause comes first."""
        return self.found[:1] == (self.cause,)


def read_recordings(folder: str, catalog: Catalog) -> Iterator[Confusion]:
    """Every recording under `folder`, explained without an environment."""
    for cause in catalog.cause_ids:
        place = os.path.join(folder, cause)
        shapes = sorted(entry.name for entry in os.scandir(place) if entry.is_dir()) if os.path.isdir(place) else []
        for path in (path for shape in shapes for path in printed_files(folder, f"{cause}/{shape}")):
            with open(os.path.join(folder, path), encoding="utf-8", errors="replace") as file:
                text = file.read().partition("\n")[2]
            incidents = list(read_text(text))
            findings = rank_causes(incidents[0], None, catalog)
            names = tuple(one.cause for one in findings)
            yield Confusion(path, cause, names, findings[0].confidence if findings else None)


def fault_of(one: Confusion, catalog: Catalog) -> str | None:
    """What is wrong with how a recording is explained; None where nothing is.

    Its own cause comes first, or a look-alike that the cause declares, never `certain`, with the cause itself behind it.
    """
    cause = catalog.cause(one.cause)
    if one.is_own or not (cause.forms or cause.signatures):
        return None
    if not one.found:
        return None if cause.kind == "silent" else "no rule recognises it"
    if one.found[0] not in {alike.cause for alike in cause.look_alikes}:
        return f"explained as {one.found[0]}, which is no look-alike of {one.cause}"
    if one.confidence == "certain":
        return f"explained as {one.found[0]} with certainty"
    if one.cause not in one.found:
        return f"{one.cause} is not among the findings: {', '.join(one.found)}"
    return None
