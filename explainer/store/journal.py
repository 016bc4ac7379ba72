"""The journal of a project: one file a patch, written before the project's files are.

What a kill leaves behind is settled by the next gradfix that opens the journal to write: a record that is still
"intended" becomes "applied" or "undone" by what the files hold; a patch of which only some files were written is taken
back.
"""

from __future__ import annotations

import os
import secrets
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace

from explainer.disk import replace_file, sync_folder, temporary_of
from explainer.model.journal import APPLIED, INTENDED, UNDONE, FileChange, Record
from explainer.store.lock import hold_lock
from explainer.store.place import journal_folder, journal_folders, make_folder
from explainer.store.record import record_of_json, record_to_json

_SUFFIX = ".json"
_BEGUN = ".new"
_INTERRUPTED = "gradfix was ended while it wrote"


@dataclass(frozen=True, slots=True)
class Journal:
    """The journal that lies in `folder`. Change it only inside `open_journal`."""

    folder: str

    def records(self) -> list[Record]:
        """The records, oldest first; a damaged one is left out (`damaged` names it)."""
        return sorted((record for _, record in self._read() if record is not None), key=lambda one: one.time)

    def damaged(self) -> list[str]:
        """The files of the journal that hold no record."""
        return [path for path, record in self._read() if record is None]

    def new_record(self, **values: object) -> Record:
        """A record of its own id and time, later than all others; it is not written yet."""
        known = self.records()
        taken = {one.id for one in known}
        name = next(one for one in iter(lambda: secrets.token_hex(3), "") if one not in taken)
        now = max([time.time(), *(one.time + 1e-3 for one in known)])
        return Record(id=name, time=now, state=INTENDED, **values)  # type: ignore[arg-type]

    def write(self, record: Record) -> Record:
        """Put a record on disk, in place of the one of the same id; it is there for good when this returns."""
        path = self._path(record)
        replace_file(path, record_to_json(record), path + _BEGUN, 0o600)
        return record

    def drop(self, record: Record) -> None:
        """Forget a record of which nothing was written."""
        with suppress(FileNotFoundError):
            os.unlink(self._path(record))
        sync_folder(self.folder)

    def tidy(self) -> None:
        """Take away records that an ended process had begun to write."""
        for name in os.listdir(self.folder):
            if name.endswith(_BEGUN):
                os.unlink(os.path.join(self.folder, name))

    def _path(self, record: Record) -> str:
        return os.path.join(self.folder, f"{record.id}{_SUFFIX}")

    def _read(self) -> Iterator[tuple[str, Record | None]]:
        try:
            names = sorted(os.listdir(self.folder))
        except OSError:
            return
        for path in (os.path.join(self.folder, name) for name in names if name.endswith(_SUFFIX)):
            try:
                with open(path, "rb") as file:
                    yield path, record_of_json(file.read())
            except (OSError, ValueError):
                yield path, None


def read_journal(root: str) -> Journal:
    """The journal of the project at `root`, a real path, to be read."""
    return Journal(journal_folder(root))


def every_journal() -> list[Journal]:
    """The journals of all projects, to be read."""
    return [Journal(folder) for folder in journal_folders()]


@contextmanager
def open_journal(root: str, purpose: str) -> Iterator[Journal]:
    """The journal of a project, locked and settled, to be changed.

    Raises:
        Locked: another gradfix is changing this project.
        OSError: the state folder cannot be written.
    """
    journal = read_journal(root)
    make_folder(journal.folder)
    with hold_lock(journal.folder, purpose):
        journal.tidy()
        for record in journal.records():
            if record.state == INTENDED:
                settle(journal, record)
        yield journal


def settle(journal: Journal, record: Record) -> Record:
    """Bring a record that a kill left "intended" to "applied" or "undone", as its files say.

    Raises:
        OSError: a file that must be taken back cannot be written.
    """
    holds = [_state(change) for change in record.files]
    if None not in holds and APPLIED in holds and UNDONE in holds:
        for change, state in zip(record.files, holds, strict=True):
            if state == APPLIED:
                replace_file(change.file, change.before, temporary_of(change.file, record.id), change.mode)
        holds = [UNDONE]
    _clear(record.files, record.id)
    state = UNDONE if UNDONE in holds and APPLIED not in holds else APPLIED
    return journal.write(replace(record, state=state, note=_INTERRUPTED))


def _state(change: FileChange) -> str | None:
    """Which of the two a file holds; None where it is neither: someone else has changed it since."""
    try:
        with open(change.file, "rb") as file:
            now = file.read()
    except OSError:
        return None
    return {change.after: APPLIED, change.before: UNDONE}.get(now)


def _clear(changes: Sequence[FileChange], token: str) -> None:
    """Take away what an ended process had begun to write beside the files."""
    for change in changes:
        with suppress(OSError):
            os.unlink(temporary_of(change.file, token))
