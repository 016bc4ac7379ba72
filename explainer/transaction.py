"""Applies a fix and takes it back: the lock, the journal, then the files; each a whole or nothing."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TypeVar

from explainer.disk import hold_signals
from explainer.errors import UsageError
from explainer.fix.apply import check_changes, read_changes, write_changes
from explainer.model.finding import Fix
from explainer.model.journal import APPLIED, INTENDED, UNDONE, FileChange, Record, Refused
from explainer.store.journal import Journal, every_journal, open_journal, read_journal
from explainer.store.lock import Locked

T = TypeVar("T")


def apply_fix(fix: Fix, *, cause: str, root: str, command: str = "") -> Record | Refused:
    """Write the files of a fix to the project at `root`: the record by which they are taken back, or why not.

    All files of the fix are written or none; Ctrl-C meanwhile leaves them as they were and is raised afterwards.
    """
    root = os.path.realpath(root)
    if not fix.changes:
        return Refused(reason=f"`{fix.id}` has no edit: {fix.title}")

    def change(journal: Journal, is_stopped: Callable[[], bool]) -> Record | Refused:
        files = read_changes(fix.changes, root)
        if isinstance(files, Refused):
            return files
        record = journal.new_record(
            root=root, command=command, cause=cause, fix=fix.id, title=fix.title, files=files
        )  # fmt: skip
        done = _carry_out(journal, record, files, APPLIED, is_stopped)
        if isinstance(done, Refused):
            journal.drop(record)
        return done

    files = read_changes(fix.changes, root)
    return files if isinstance(files, Refused) else _locked(root, command or "fix", change)


def undo_record(record: Record) -> Record | Refused:
    """Take one applied patch back, byte for byte and with each file's mode; the record afterwards, or why not."""

    def change(journal: Journal, is_stopped: Callable[[], bool]) -> Record | Refused:
        current = next((one for one in journal.records() if one.id == record.id), None)
        if current is None or current.state != APPLIED:
            return Refused(reason=f"{record.id} is not applied")
        files = tuple(one.reversed() for one in current.files)
        refused = check_changes(files, current.root)
        if refused:
            return replace(refused, reason=f"{record.id}: {refused.reason}{_later(journal, current)}")
        done = _carry_out(journal, current, files, UNDONE, is_stopped)
        if isinstance(done, Refused):
            journal.write(current)
        return done

    return _locked(record.root, f"undo {record.id}", change)


def list_records(root: str | None) -> list[Record]:
    """The records of the project that holds the folder `root`, or of all projects, oldest first.

    The project is the folder itself or the nearest one above it that has a journal.
    """
    if root is None:
        return sorted((one for journal in every_journal() for one in journal.records()), key=lambda one: one.time)
    return read_journal(project_of(root)).records()


def list_damaged(root: str | None) -> list[str]:
    """The files of those journals that hold no record."""
    journals = every_journal() if root is None else [read_journal(project_of(root))]
    return [path for journal in journals for path in journal.damaged()]


def project_of(folder: str) -> str:
    """The folder itself or the nearest one above it that has a journal; the folder where none has."""
    start = folder = os.path.realpath(folder)
    while not read_journal(folder).records():
        folder, below = os.path.dirname(folder), folder
        if folder == below:
            return start
    return folder


def settle_journal(root: str) -> Refused | None:
    """Settle what a killed gradfix left of the project that holds `root`; why that could not be done."""
    root = project_of(root)
    if all(one.state != INTENDED for one in read_journal(root).records()):
        return None
    return _locked(root, "settling", lambda _journal, _is_stopped: None)


def find_record(name: str) -> Record:
    """The record whose id begins with `name`, in any project.

    Raises:
        UsageError: there is none, or more than one.
    """
    found = [one for one in list_records(None) if one.id.startswith(name)]
    if len(found) != 1:
        raise UsageError(f"{len(found) or 'no'} patches with the id {name!r}; `gradfix history --all` lists them")
    return found[0]


def _carry_out(
    journal: Journal, record: Record, files: Sequence[FileChange], state: str, is_stopped: Callable[[], bool]
) -> Record | Refused:
    """Write the intention, the files, then the record of it; nothing of it where a step fails or is interrupted."""
    done = journal.write(replace(record, state=INTENDED, note=None))
    refused = write_changes(files, record.root, record.id, is_stopped)
    if refused:
        return refused
    try:
        done = journal.write(replace(done, state=state))
    except OSError as error:
        refused = Refused(reason=f"cannot write the journal: {error.strerror or error}; nothing was changed")
    if refused is None and not is_stopped():
        return done
    if write_changes([one.reversed() for one in files], record.root, record.id, lambda: False):
        return done  # someone else has written to a file since: the patch stands
    return refused or Refused(reason="interrupted; nothing was changed")


def _locked(root: str, purpose: str, change: Callable[[Journal, Callable[[], bool]], T]) -> T | Refused:
    try:
        with open_journal(root, purpose) as journal, hold_signals() as is_stopped:
            return change(journal, is_stopped)
    except Locked as error:
        return Refused(reason=str(error))
    except OSError as error:
        place = f" {error.filename}" if error.filename else ""
        return Refused(reason=f"cannot write{place}: {(error.strerror or str(error)).lower()}")


def _later(journal: Journal, record: Record) -> str:
    """A hint where a later patch changed the same file."""
    files = {change.file for change in record.files}
    for other in reversed(journal.records()):
        if other.state == APPLIED and other.time > record.time and files & {one.file for one in other.files}:
            return f"; {other.id} was applied later: undo it first"
    return ""
