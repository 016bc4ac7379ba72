"""What to say where nothing was recognised: what resembles it, what is missing, what to run next."""

from __future__ import annotations

from collections.abc import Iterator

from explainer.catalog.catalog import Catalog
from explainer.match.fingerprint import failed_record
from explainer.match.resemblance import nearest
from explainer.model.incident import RUN, Incident
from explainer.model.report import Unknown

MAX_NEAREST = 3


def describe_unknown(incident: Incident, catalog: Catalog) -> Unknown:
    """Why there is no finding for an incident, and the one command that would tell more."""
    failed = failed_record(incident, None)
    failed = failed if failed is not None and failed.type else None
    message = f"{failed.type}: {failed.message}" if failed is not None else ""
    return Unknown(
        why=_why(incident, message),
        nearest=tuple(nearest(catalog, failed.message, limit=MAX_NEAREST)) if failed is not None else (),
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
    if is_raised_by_program(incident) and incident.fact(RUN) is None:
        yield "what went wrong before the program raised this itself: it may have caught it"
    if _is_of_launcher(incident):
        yield "the output of the rank that failed first"


def _is_of_launcher(incident: Incident) -> bool:
    """Whether nothing was raised but torchrun's report: where the rank's own exception stands above it, nothing is missing."""
    failed = failed_record(incident, None)
    return failed is not None and "ChildFailedError" in failed.type


def is_raised_by_program(incident: Incident) -> bool:
    """Whether the failing line is a `raise` of the program: what it met before may have been caught, and is in no traceback."""
    failed = failed_record(incident, None)
    frame = failed.frames[-1] if failed is not None and failed.frames else None
    return frame is not None and frame.library is None and (frame.code or "").startswith("raise")


def _next_command(incident: Incident) -> str:
    if _is_of_launcher(incident) or any(record.rank is not None for record in incident.exceptions):
        return "torchrun --log-dir logs --redirects 3 --tee 3 ... && gradfix explain logs/"
    if is_raised_by_program(incident):
        return f"gradfix run {'' if incident.fact(RUN) is None else '--trace '}-- python train.py"
    return "python train.py 2>&1 | gradfix explain"
