"""Notes what happens and recalls it for the faces: failures, fixes, verifications, good runs.

Whatever is wrong with the memory, the answer is given without it: each function then gives what it was given, or nothing, and
`why_unusable` says why, in one line for the face to tell. `GRADFIX_NO_MEMORY=1` switches all of it off.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, TypeVar

from explainer.digest import digest
from explainer.match.fingerprint import failed_record, last_frame
from explainer.model.event import FAILURE, FIX, UNDO, VERIFICATION, Event
from explainer.model.report import Report
from explainer.render.mask import mask_text

if TYPE_CHECKING:
    from explainer.catalog.catalog import Catalog
    from explainer.model.circumstances import Circumstances
    from explainer.model.journal import Record
    from explainer.model.repair import Repair

T = TypeVar("T")
SWITCH = "GRADFIX_NO_MEMORY"
_OF_LOGS = ("explain", "fix", "ui")  # one log may be read often; what fails before our eyes fails each time anew
_unusable: list[str] = []


def is_kept() -> bool:
    """Whether anything is remembered."""
    return os.environ.get(SWITCH, "0") in ("", "0")


def why_unusable() -> str | None:
    """Why the memory was left out, in one line, the first time that this is asked; None where nothing was wrong."""
    if not _unusable:
        return None
    why = f"nothing is remembered: {_unusable[0]} ({SWITCH}=1 keeps no memory)"
    _unusable.clear()
    return why


def project_of(root: str) -> str:
    """A project as the memory names it: the folder's name, and a digest of its path."""
    path = os.path.realpath(root)
    return f"{os.path.basename(path)}-{digest(path)}"


def digest_of(report: Report) -> str:
    """What tells one sighting of a failure from another: a digest of what was read, so that one log counts once.

    Logs of two runs differ in times, losses and process numbers; where they do not, they count once too.
    """
    incident = report.incident
    said = [f"{one.type} {one.message} {one.log_line} {one.rank}" for one in incident.exceptions]
    said += [f"{frame.file} {frame.line}" for one in incident.exceptions for frame in one.frames]
    said += [f"{row.log_line} {row.values}" for row in incident.metrics]
    said += [f"{line.number} {line.text}" for line in incident.log]
    return digest("\n".join(said))


def recall_failures(reports: Sequence[Report], root: str, *, way: str) -> tuple[list[Report], list[Event]]:
    """The reports with what is remembered of each failure, and the sightings that they are, to be noted once they are shown.

    Args:
        reports: of failures, as explained.
        root: the project's folder.
        way: how they were met: "explain", "fix", "ui" of a log, "run" or in this process; a log counts once.
    """
    if not is_kept() or not any(map(_is_failure, reports)):
        return list(reports), []
    from explainer.store.memory import recall

    root = os.path.abspath(root)
    told: list[Report] = []
    sightings: list[Event] = []
    for report in reports:
        if not _is_failure(report):
            told.append(report)
            continue
        event = _sighting(report, root, way)
        sightings.append(event)
        seen = _guarded(lambda event=event: recall(event.fingerprint or "", event.digest), None)  # type: ignore[misc]
        told.append(replace(report, seen=seen))
    return told, sightings


def note(events: Sequence[Event]) -> None:
    """Remember events."""
    if events and is_kept():
        from explainer.store.memory import note_events

        _guarded(lambda: note_events(events), None)


def note_fix(record: Record, report: Report, *, way: str) -> None:
    """Remember that a fix was applied for the failure of a report."""
    note([_fix(record.fix, record.cause, record.id, report, (record.root, way))])


def note_repair(done: Repair, root: str) -> None:
    """Remember the fixes that a repair tried and kept, with their verdicts."""
    if done.report is None:
        return
    kept = {(one.cause, one.fix): one.record for one in done.applied}
    where = (root, "run --fix")
    events = [_fix(one.fix, one.cause, one.record, done.report, where) for one in done.applied]
    for one in done.rounds:
        event = _fix(one.fix, one.cause, kept.get((one.cause, one.fix)), done.report, where)
        events.append(event._replace(kind=VERIFICATION, verdict=one.verdict))
    note(events)


def note_verification(verdict: str, record: Record | None, root: str) -> None:
    """Remember how a verification of the project ended; it is one of the patch that was applied last, where one is."""
    if not is_kept():
        return
    from explainer.store.memory import fix_of

    fix = _guarded(lambda: fix_of(record.id), None) if record is not None else None
    event = Event(kind=VERIFICATION, time=time.time(), project=project_of(root), way="verify", verdict=verdict)
    if record is not None:
        event = event._replace(cause=record.cause, fix=record.fix, record=record.id)
    note([event._replace(fingerprint=fix.fingerprint if fix is not None else None)])


def note_undo(record: Record) -> None:
    """Remember that a patch was taken back."""
    if not is_kept():
        return
    from explainer.store.memory import fix_of

    fix = _guarded(lambda: fix_of(record.id), None)
    if fix is not None:
        note([fix._replace(kind=UNDO, time=time.time(), way="undo")])


def note_good_run(command: Sequence[str], root: str, *, is_probed: bool) -> None:
    """Remember what a run that ended well was made with."""
    if not is_kept():
        return
    from explainer.probe.command import read_command
    from explainer.store.memory import note_good_run as write

    now = _circumstances(command, root, is_probed=is_probed)
    if now is not None:
        _guarded(lambda: write(project_of(root), read_command(command, root).program, now), None)


def with_changes(report: Report, command: Sequence[str], root: str, catalog: Catalog, *, is_probed: bool) -> Report:
    """The report of a failed run with what differs from the last good run of the same program, most suspicious first.

    Args:
        report: with paths relative to `root`.
        command: that was run.
        root: the folder that it ran in.
        catalog: the rules, whose causes name the releases that they occur with.
        is_probed: whether interpreter, packages and GPUs are looked at.
    """
    if not is_kept():
        return report
    from explainer.probe.command import read_command
    from explainer.store.memory import recall_good_run

    program = read_command(command, root).program
    good = _guarded(lambda: recall_good_run(project_of(root), program), None)
    if good is None:
        return report
    from explainer.match.change import differences, rank_changes
    from explainer.model.memory import Changes

    since, before = good
    now = _circumstances(command, root, is_probed=is_probed, also=[name for name, _ in before.files or ()])
    if now is None:
        return report
    causes = [catalog.cause(one.cause) for one in report.findings]
    items = rank_changes(list(differences(before, now)), report.findings, causes, report.incident)
    return replace(report, changes=Changes(since=since, items=items))


def _circumstances(
    command: Sequence[str], root: str, *, is_probed: bool, also: Sequence[str] = ()
) -> Circumstances | None:
    """What a command runs with; None where it cannot be read: the run and its exit status are what counts."""
    from explainer.probe.circumstances import read_circumstances

    try:
        return read_circumstances(command, root, os.environ, is_probed=is_probed, also=also)
    except Exception as error:  # noqa: BLE001 - the project's files may hold anything, and the run has already ended well
        _unusable.append(f"what the run was made with cannot be read ({type(error).__name__}: {error})"[:200])
        return None


def events_of(root: str | None) -> list[Event]:
    """What is remembered of the project that holds the folder `root`, or of all, oldest first."""
    from explainer.store.memory import read_events

    if root is None:
        return _guarded(read_events, [])
    return _guarded(lambda: read_events(_known_project(root)), [])


def forget(root: str | None) -> int:
    """Forget the project that holds the folder `root`, or everything; how many events that were.

    Raises:
        MemoryUnusable: the memory cannot be written.
    """
    from explainer.store import memory

    return memory.forget(_known_project(root) if root is not None else None)


def _known_project(root: str) -> str:
    """The folder itself or the nearest one above it of which something is remembered; the folder where nothing is."""
    from explainer.store.memory import read_projects

    nothing: frozenset[str] = frozenset()
    known = _guarded(read_projects, nothing)
    folder = os.path.realpath(root)
    while project_of(folder) not in known:
        folder, below = os.path.dirname(folder), folder
        if folder == below:
            return project_of(root)
    return project_of(folder)


def _is_failure(report: Report) -> bool:
    """Whether a report tells of a failure that is worth remembering: not a benign notice, not Ctrl-C."""
    return report.fingerprint is not None and not (report.findings and report.findings[0].kind == "notice")


def _sighting(report: Report, root: str, way: str) -> Event:
    incident = report.incident
    finding = report.findings[0] if report.findings else None
    record = failed_record(incident, finding)
    frame = last_frame(record, incident) if record is not None else None
    return Event(
        kind=FAILURE,
        time=time.time(),
        project=project_of(root),
        way=way,
        fingerprint=report.fingerprint,
        digest=digest_of(report) if way in _OF_LOGS else os.urandom(8).hex(),
        cause=finding.cause if finding is not None else None,
        exception=record.type if record is not None else None,
        file=mask_text(_inside(frame.file, root)) if frame is not None else None,
        line=frame.line if frame is not None else None,
        function=mask_text(frame.function or "") if frame is not None else None,
    )


def _fix(fix: str, cause: str, record: str | None, report: Report, where: tuple[str, str]) -> Event:
    root, way = where
    return Event(
        kind=FIX, time=time.time(), project=project_of(root), way=way, fingerprint=report.fingerprint, cause=cause, fix=fix,
        record=record,
    )  # fmt: skip


def _inside(file: str, root: str) -> str:
    """A file's path relative to the project; of one that lies elsewhere only its name."""
    path = os.path.join(root, file)
    inside = root.rstrip(os.sep) + os.sep
    return path.removeprefix(inside) if path.startswith(inside) else file.replace("\\", "/").rpartition("/")[2]


def _guarded(act: Callable[[], T], otherwise: T) -> T:
    """What `act` gives; where the memory is unusable the other, and the reason is kept to be told once."""
    from explainer.store.memory import MemoryUnusable

    try:
        return act()
    except MemoryUnusable as error:
        _unusable.append(str(error))
        return otherwise
