"""What to say where nothing was recognised: what resembles it, what is missing, what to run next."""

from __future__ import annotations

from collections.abc import Iterator

from explainer.catalog.catalog import Catalog
from explainer.match.resemblance import nearest
from explainer.model.incident import Incident
from explainer.model.report import Unknown

MAX_NEAREST = 3


def describe_unknown(incident: Incident, catalog: Catalog) -> Unknown:
    """Why there is no finding for an incident, and the one command that would tell more."""
    named = [record for record in incident.exceptions if record.type]
    message = f"{named[-1].type}: {named[-1].message}" if named else ""
    return Unknown(
        why=_why(incident, message),
        nearest=tuple(nearest(catalog, named[-1].message, limit=MAX_NEAREST)) if named else (),
        missing=tuple(_missing(incident)),
        next_command=_next_command(incident),
    )


def _why(incident: Incident, message: str) -> str:
    named = {record.type.rpartition(".")[2] for record in incident.exceptions if record.type}
    if named and named <= {"KeyboardInterrupt", "SystemExit"}:
        return "the program was interrupted or ended by itself; nothing in the input failed"
    if message:
        return f"no rule recognises `{message.splitlines()[0][:200].strip()}`"
    if any(not record.is_complete for record in incident.exceptions):
        return "the log is cut before the line that names the exception"
    if incident.metrics:
        return "the log holds metrics that are all in order, and no exception"
    if incident.warnings:
        return "the log holds warnings that no rule knows, and no exception"
    return "there is no exception, no warning and no metric in the input"


def _missing(incident: Incident) -> Iterator[str]:
    if not any(record.frames for record in incident.exceptions):
        yield "the traceback above the message"
    if any(not record.is_complete for record in incident.exceptions):
        yield "the rest of the traceback, down to the line with the exception's type and message"
    if any("ChildFailedError" in record.type for record in incident.exceptions):
        yield "the output of the rank that failed first"


def _next_command(incident: Incident) -> str:
    if any("ChildFailedError" in record.type or record.rank is not None for record in incident.exceptions):
        return "torchrun --log-dir logs --redirects 3 --tee 3 ... && gradfix explain logs/"
    return "python train.py 2>&1 | gradfix explain"
