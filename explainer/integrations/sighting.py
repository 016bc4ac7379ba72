"""What the ways in from Python remember of a failure of this very process."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from explainer.model.report import Report


def is_run_by_us() -> bool:
    """Whether this process runs under `gradfix run`, which explains a failure, and remembers it, by itself."""
    return "_gradfix_live" in sys.modules


def is_first_rank() -> bool:
    """Whether this process speaks for its job: what all ranks see is told and noted once."""
    return os.environ.get("RANK", "0") == "0"


def recall_here(report: Report, *, way: str) -> Report:
    """The report of a failure of this very process with what is remembered of it; one rank notes it, for all of them fail.

    Args:
        report: of the failure.
        way: how it was met: "install", "watch" or "notebook"; each sighting counts.
    """
    if is_run_by_us():
        return report
    from explainer.memory import note, recall_failures

    (told,), sightings = recall_failures([report], os.getcwd(), way=way)
    if is_first_rank():
        note(sightings)
    return told
