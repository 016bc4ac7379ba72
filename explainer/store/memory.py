"""The memory of failures, fixes, verifications and good runs: one small SQLite file in the user's state folder.

It is a convenience. Whatever is wrong with it is one `MemoryUnusable`, which the faces tell in a line or leave out; a file
that is no database is set aside, so that the next run begins anew. Rows beyond a bound are dropped, the oldest first.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from types import ModuleType
from typing import TYPE_CHECKING, Any, TypeVar

from explainer.model.event import FAILURE, FIX, UNDO, VERIFICATION, Event
from explainer.model.memory import Seen
from explainer.model.verdict import GREEN, RED
from explainer.store.place import make_folder, state_folder

if TYPE_CHECKING:
    import sqlite3

    from explainer.model.circumstances import Circumstances

T = TypeVar("T")
NAME = "memory.db"
FORMAT = 1
MAX_EVENTS = 5000
MAX_GOOD_RUNS = 100
MAX_TEXT = 300
MAX_CIRCUMSTANCES = 128 << 10
_READ_PATIENCE, _WRITE_PATIENCE = 0.2, 1.0
_ASIDE = ".damaged"
_COLUMNS = Event._fields
_SCHEMA = f"""
CREATE TABLE IF NOT EXISTS event (id INTEGER PRIMARY KEY AUTOINCREMENT, {", ".join(_COLUMNS)});
CREATE INDEX IF NOT EXISTS event_fingerprint ON event (fingerprint);
CREATE UNIQUE INDEX IF NOT EXISTS event_once ON event (project, fingerprint, digest) WHERE digest IS NOT NULL;
CREATE TABLE IF NOT EXISTS good_run (project, program, time, circumstances, PRIMARY KEY (project, program));
PRAGMA user_version = {FORMAT};
"""


class MemoryUnusable(Exception):
    """The memory cannot be read or written; the text says why, in a few words."""


def memory_file() -> str:
    """Where the memory lies."""
    return os.path.join(state_folder(), NAME)


def note_events(events: Sequence[Event]) -> None:
    """Remember what happened, in one transaction; a sighting that is remembered already is not noted again.

    Raises:
        MemoryUnusable: it cannot be written.
    """
    rows = [tuple(map(_bounded, event)) for event in events]

    def write(database: sqlite3.Connection) -> None:
        marks = ", ".join("?" * len(_COLUMNS))
        database.executemany(f"INSERT OR IGNORE INTO event ({', '.join(_COLUMNS)}) VALUES ({marks})", rows)  # noqa: S608
        database.execute("DELETE FROM event WHERE id <= (SELECT max(id) FROM event) - ?", (MAX_EVENTS,))

    _written(write)


def note_good_run(project: str, program: str, now: Circumstances) -> None:
    """Remember what a good run of a program was made with, in place of the run before.

    Raises:
        MemoryUnusable: it cannot be written.
    """
    import json
    from dataclasses import asdict

    text = json.dumps(asdict(now), separators=(",", ":"))
    if len(text) > MAX_CIRCUMSTANCES:  # a program of very many files: what outranks them is kept
        text = json.dumps({**asdict(now), "files": None, "settings": None}, separators=(",", ":"))

    def write(database: sqlite3.Connection) -> None:
        row = (_bounded(project), _bounded(program), time.time(), text)
        database.execute("INSERT OR REPLACE INTO good_run VALUES (?, ?, ?, ?)", row)
        oldest = "SELECT rowid FROM good_run ORDER BY time DESC LIMIT -1 OFFSET ?"
        database.execute(f"DELETE FROM good_run WHERE rowid IN ({oldest})", (MAX_GOOD_RUNS,))  # noqa: S608

    if len(text) <= MAX_CIRCUMSTANCES:
        _written(write)


def recall(fingerprint: str, digest: str | None = None) -> Seen | None:
    """What is remembered of a failure, but for the sighting with that digest; None where it was never seen.

    Raises:
        MemoryUnusable: it cannot be read.
    """

    def read(database: sqlite3.Connection) -> Seen | None:
        times, first, last = database.execute(
            "SELECT count(*), min(time), max(time) FROM event WHERE fingerprint = ? AND kind = ? AND digest IS NOT ?",
            (fingerprint, FAILURE, digest),
        ).fetchone()
        if not times:
            return None
        acts = database.execute(
            "SELECT kind, fix, record, verdict FROM event WHERE record IS NOT NULL AND record IN "
            "(SELECT record FROM event WHERE fingerprint = ? AND kind = ?) ORDER BY id",
            (fingerprint, FIX),
        ).fetchall()
        fix, is_verified = _cured_by(acts)
        return Seen(times=times, first=first, last=last, fix=fix, is_verified=is_verified)

    return _read(read, None)


def recall_good_run(project: str, program: str) -> tuple[float, Circumstances] | None:
    """The last good run of a program: its time, and what it was made with; None where none is remembered.

    Raises:
        MemoryUnusable: it cannot be read.
    """

    def read(database: sqlite3.Connection) -> tuple[float, Circumstances] | None:
        query = "SELECT time, circumstances FROM good_run WHERE project = ? AND program = ?"
        row = database.execute(query, (_bounded(project), _bounded(program))).fetchone()
        return (row[0], _circumstances(row[1])) if row else None

    return _read(read, None)


def read_events(project: str | None = None) -> list[Event]:
    """What is remembered of a project, or of all, oldest first.

    Raises:
        MemoryUnusable: it cannot be read.
    """

    def read(database: sqlite3.Connection) -> list[Event]:
        query = f"SELECT {', '.join(_COLUMNS)} FROM event WHERE ? IS NULL OR project = ? ORDER BY id"  # noqa: S608
        rows = database.execute(query, (_bounded(project),) * 2).fetchall()
        return [Event(*row) for row in rows]

    return _read(read, [])


def read_projects() -> frozenset[str]:
    """The projects of which something is remembered.

    Raises:
        MemoryUnusable: it cannot be read.
    """
    query = "SELECT project FROM event UNION SELECT project FROM good_run"
    return _read(lambda database: frozenset(row[0] for row in database.execute(query)), frozenset())


def fix_of(record: str) -> Event | None:
    """The fix that a record of the journal applied, as it is remembered.

    Raises:
        MemoryUnusable: it cannot be read.
    """

    def read(database: sqlite3.Connection) -> Event | None:
        query = f"SELECT {', '.join(_COLUMNS)} FROM event WHERE record = ? AND kind = ? ORDER BY id DESC LIMIT 1"  # noqa: S608
        row = database.execute(query, (record, FIX)).fetchone()
        return Event(*row) if row else None

    return _read(read, None)


def forget(project: str | None = None) -> int:
    """Forget a project, or everything, also a memory that cannot be read; how many events that were.

    Raises:
        MemoryUnusable: it cannot be written.
    """
    count = 0
    if project is not None:
        if os.path.exists(memory_file()):
            count = _written(lambda database: _delete(database, _bounded(project)))
        return count
    with suppress(MemoryUnusable):
        count = len(read_events())
    for suffix in ("", "-journal", _ASIDE):
        try:
            os.unlink(memory_file() + suffix)
        except FileNotFoundError:
            continue
        except OSError as error:
            raise MemoryUnusable((error.strerror or str(error)).lower()) from error
    return count


def _delete(database: sqlite3.Connection, project: str) -> int:
    database.execute("DELETE FROM good_run WHERE project = ?", (project,))
    return database.execute("DELETE FROM event WHERE project = ?", (project,)).rowcount


def _cured_by(acts: Sequence[tuple[str, str | None, str, str | None]]) -> tuple[str | None, bool]:
    """The fix that cured a failure, and whether that was proved, from its fixes, undos and verifications in order."""
    fixes: dict[str, str | None] = {}
    verdicts: dict[str, str | None] = {}
    for kind, fix, record, verdict in acts:
        if kind == FIX:
            fixes[record] = fix
        elif kind == VERIFICATION:
            verdicts[record] = verdict
        elif kind == UNDO and verdicts.get(record) != GREEN:
            fixes.pop(record, None)
    for record in reversed(fixes):
        if verdicts.get(record) == GREEN:
            return fixes[record], True
    standing = [fix for record, fix in fixes.items() if verdicts.get(record) != RED]
    return (standing[-1] if standing else None), False


def _read(read: Callable[[sqlite3.Connection], T], nothing: T) -> T:
    if not os.path.exists(memory_file()):
        return nothing
    with _opened(_READ_PATIENCE) as database:
        return read(database) if _is_made(database) else nothing


def _written(write: Callable[[sqlite3.Connection], T]) -> T:
    path = memory_file()
    try:
        make_folder(os.path.dirname(path))
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
    except OSError as error:
        raise MemoryUnusable((error.strerror or str(error)).lower()) from error
    with _opened(_WRITE_PATIENCE) as database:
        database.execute("BEGIN IMMEDIATE")
        if not _is_made(database):
            for statement in _SCHEMA.split(";"):
                database.execute(statement)
        done = write(database)
        database.execute("COMMIT")
        return done


@contextmanager
def _opened(patience: float) -> Iterator[sqlite3.Connection]:
    """The database, open; everything that can be wrong with it is one exception.

    A file that is damaged is set aside under another name, so that it is met once.
    """
    sqlite = _sqlite()
    path = memory_file()
    try:
        database: sqlite3.Connection = sqlite.connect(path, timeout=patience, isolation_level=None)
    except sqlite.Error as error:
        raise MemoryUnusable(str(error)) from error
    try:
        # Not synced to disk: a kill loses nothing, and what a power cut takes is worth less than the 5 ms.
        database.execute("PRAGMA synchronous = OFF")
        database.execute("PRAGMA secure_delete = ON")
        yield database
    except sqlite.OperationalError as error:
        if str(error).startswith("no such"):  # a table or column: somebody else has written here
            raise _set_aside(path, error) from error
        raise MemoryUnusable(str(error)) from error
    except (sqlite.DatabaseError, ValueError, TypeError) as error:
        raise _set_aside(path, error) from error
    finally:
        database.close()


def _sqlite() -> ModuleType:
    """The module below `sqlite3`, whose adapters for dates, which nothing here needs, would double its cost."""
    try:
        import _sqlite3
    except ImportError:
        import sqlite3

        return sqlite3
    return _sqlite3


def _set_aside(path: str, error: Exception) -> MemoryUnusable:
    with suppress(OSError):
        os.replace(path, path + _ASIDE)
    return MemoryUnusable(f"{error}; set aside as {NAME}{_ASIDE}")


def _is_made(database: sqlite3.Connection) -> bool:
    """Whether the tables are there.

    Raises:
        MemoryUnusable: they are those of another release.
    """
    (version,) = database.execute("PRAGMA user_version").fetchone()
    if version > FORMAT:
        raise MemoryUnusable("it is that of a newer gradfix")
    return bool(version)


def _circumstances(text: str) -> Circumstances:
    import json

    from explainer.model.circumstances import Circumstances

    plain: dict[str, Any] = json.loads(text)
    return Circumstances(**{name: _tuples(value) for name, value in plain.items()})


def _tuples(value: Any) -> Any:
    return tuple(_tuples(one) for one in value) if isinstance(value, list) else value


def _bounded(value: T) -> T | str:
    """A value as a row holds it: text is cut, and what is no Unicode in it, as in names of files, replaced."""
    return value[:MAX_TEXT].encode("utf-8", "replace").decode() if isinstance(value, str) else value
