"""The memory: what it keeps, that it stays small, and that nothing wrong with it costs the answer."""

from __future__ import annotations

import os
import pathlib
import sqlite3
import stat
import subprocess
import sys
import time
from typing import Any

import pytest

from explainer.model.circumstances import Circumstances
from explainer.model.event import FAILURE, FIX, UNDO, VERIFICATION, Event
from explainer.store import memory
from explainer.store.memory import (
    MemoryUnusable,
    forget,
    note_events,
    note_good_run,
    read_events,
    recall,
    recall_good_run,
)
from explainer.store.place import state_folder
from tests.conftest import PATH


@pytest.fixture(autouse=True)
def state(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> pathlib.Path:
    """A state folder of its own."""
    monkeypatch.setenv("GRADFIX_STATE_DIR", str(tmp_path / "state"))
    return tmp_path / "state"


def event(kind: str = FAILURE, **values) -> Event:
    return Event(**{"kind": kind, "time": 100.0, "project": "p-1", "way": "run", "fingerprint": "g1-a", **values})


def test_nothing_is_made_by_looking(state: pathlib.Path) -> None:
    """Before anything is remembered there is nothing, and asking makes nothing."""
    assert (recall("g1-a"), recall_good_run("p-1", "train.py"), read_events(), forget()) == (None, None, [], 0)
    assert not state.exists()


def test_sightings_are_counted() -> None:
    """Another sighting counts; the present one, known by its digest, does not; one digest is one sighting."""
    for number in (3, 1, 1, 2):
        note_events([event(time=100.0 + number, digest=str(number))])
    seen = recall("g1-a", "2")
    assert (seen.times, seen.first, seen.last, seen.fix) == (2, 101.0, 103.0, None)
    assert recall("g1-b") is None


CURED = {
    "verified": ([event(FIX, fix="a", record="1"), event(VERIFICATION, record="1", verdict="green")], ("a", True)),
    "verified, then undone": (
        [event(FIX, fix="a", record="1"), event(VERIFICATION, record="1", verdict="green"), event(UNDO, record="1")],
        ("a", True),
    ),
    "applied": ([event(FIX, fix="a", record="1")], ("a", False)),
    "a proof before a later try": (
        [
            event(FIX, fix="a", record="1"),
            event(VERIFICATION, record="1", verdict="green"),
            event(FIX, fix="b", record="2"),
        ],
        ("a", True),
    ),
    "the last of two proofs": (
        [event(kind, record=name, fix=name, verdict="green") for name in "12" for kind in (FIX, VERIFICATION)],
        ("2", True),
    ),
    "verified without its fingerprint": (
        [event(FIX, fix="a", record="1"), event(VERIFICATION, record="1", verdict="green", fingerprint=None)],
        ("a", True),
    ),
    "refuted": ([event(FIX, fix="a", record="1"), event(VERIFICATION, record="1", verdict="red")], (None, False)),
    "undone": ([event(FIX, fix="a", record="1"), event(UNDO, record="1")], (None, False)),
    "of another failure": ([event(FIX, fix="a", record="1", fingerprint="g1-b")], (None, False)),
}


@pytest.mark.parametrize(("events", "cured"), CURED.values(), ids=CURED.keys())
def test_what_cured_it(events: list[Event], cured: tuple[str | None, bool]) -> None:
    """The last fix that was proved; else the last that stands and was not refuted."""
    note_events([event(digest="1"), *events])
    seen = recall("g1-a")
    assert (seen.fix, seen.is_verified) == cured


def test_a_good_run_comes_back_whole() -> None:
    """What a good run was made with is read as it was written; of each program the last counts."""
    now = Circumstances(python="3.11", packages=(("torch", "2.13.0"),), arguments=("--lr", "1"), machine=())
    note_good_run("p-1", "train.py", Circumstances(python="3.10"))
    note_good_run("p-1", "train.py", now)
    note_good_run("p-2", "train.py", Circumstances())
    since, kept = recall_good_run("p-1", "train.py")
    assert kept == now
    assert abs(since - time.time()) < 60


def test_it_stays_small(state: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Old events, old programs and long texts are dropped; the newest stay."""
    monkeypatch.setattr(memory, "MAX_EVENTS", 50)
    monkeypatch.setattr(memory, "MAX_GOOD_RUNS", 5)
    for start in range(0, 3000, 100):
        note_events([event(digest=str(number), file="x" * 5000) for number in range(start, start + 100)])
    for number in range(20):
        note_good_run("p-1", f"{number}.py", Circumstances(files=tuple((str(one), "1" * 12) for one in range(9000))))
    kept = read_events()
    assert (len(kept), kept[-1].digest, len(kept[0].file)) == (50, "2999", memory.MAX_TEXT)
    assert recall_good_run("p-1", "14.py") is None
    assert recall_good_run("p-1", "15.py")[1].files is None
    assert os.path.getsize(memory.memory_file()) < 512 << 10


def test_only_the_user_may_read_it(state: pathlib.Path) -> None:
    """The file is 0600 and its folder 0700, whatever the umask; no journal of SQLite stays."""
    before = os.umask(0)
    try:
        note_events([event()])
    finally:
        os.umask(before)
    modes = [stat.S_IMODE(os.stat(path).st_mode) for path in (state, memory.memory_file())]
    assert (modes, os.listdir(state)) == ([0o700, 0o600], ["memory.db"])


def test_forgotten_to_the_byte() -> None:
    """What is forgotten is not in the file any more; other projects stay; all is no file."""
    note_events([event(project="p-1", file="forgotten.py"), event(project="p-2", file="kept.py")])
    note_good_run("p-1", "forgotten.py", Circumstances(python="3.11"))
    assert forget("p-1") == 1
    data = pathlib.Path(memory.memory_file()).read_bytes()
    assert (b"forgotten" in data, b"kept.py" in data) == (False, True)
    assert (forget(), os.path.exists(memory.memory_file())) == (1, False)


DAMAGED = {
    "no database": lambda path: path.write_bytes(b"not a database at all" * 100),
    "cut": lambda path: path.write_bytes(path.read_bytes()[:5000]),
    "overwritten in the middle": lambda path: path.write_bytes(
        path.read_bytes()[:4096] + b"\xff" * (len(path.read_bytes()) - 4096)
    ),
    "a table is missing": lambda path: sqlite3.connect(path, isolation_level=None).execute("DROP TABLE event").close(),
}


@pytest.mark.parametrize("damage", DAMAGED.values(), ids=DAMAGED.keys())
def test_a_damaged_memory(damage, state: pathlib.Path) -> None:
    """It is told once, set aside, and the next run begins anew."""
    note_events([event(digest="1", file="x" * 200) for _ in range(3)])
    note_events([event(digest=str(number), file="x" * 200) for number in range(200)])
    damage(pathlib.Path(memory.memory_file()))
    with pytest.raises(MemoryUnusable, match="set aside as memory.db.damaged"):
        recall("g1-a")
    note_events([event(digest="2")])
    assert (len(read_events()), sorted(os.listdir(state))) == (1, ["memory.db", "memory.db.damaged"])
    forget()
    assert os.listdir(state) == []


def test_an_empty_file() -> None:
    """A file that a kill left empty is filled."""
    os.makedirs(state_folder())
    open(memory.memory_file(), "w").close()
    assert recall("g1-a") is None
    note_events([event()])
    assert len(read_events()) == 1


def test_a_newer_release(state: pathlib.Path) -> None:
    """The memory of a newer gradfix is left alone."""
    note_events([event()])
    with sqlite3.connect(memory.memory_file()) as database:
        database.execute("PRAGMA user_version = 99")
    before = pathlib.Path(memory.memory_file()).read_bytes()
    for act in (lambda: recall("g1-a"), lambda: note_events([event()])):
        with pytest.raises(MemoryUnusable, match="newer"):
            act()
    assert pathlib.Path(memory.memory_file()).read_bytes() == before


def test_a_locked_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where another holds it for long, reading gives up within half a second, writing within two; nothing is set aside."""
    note_events([event()])
    module = memory._sqlite()  # noqa: SLF001 - the only way to what waits
    connect, patience = module.connect, []

    def connected(*arguments: Any, **keywords: Any) -> sqlite3.Connection:
        patience.append(keywords["timeout"])  # for which SQLite waits: no time is measured here
        return connect(*arguments, **keywords)

    with sqlite3.connect(memory.memory_file(), isolation_level=None) as holder:
        holder.execute("BEGIN EXCLUSIVE")
        monkeypatch.setattr(module, "connect", connected)
        for act, most in ((lambda: recall("g1-a"), 0.5), (lambda: note_events([event()]), 2.0)):
            patience.clear()
            with pytest.raises(MemoryUnusable, match="locked"):
                act()
            assert 0 < sum(patience) <= most
        holder.execute("ROLLBACK")
    assert len(read_events()) == 1


@pytest.mark.parametrize("place", ["a folder", "a file in the way", "the file"])
def test_an_unwritable_memory(place: str, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where nothing can be written the reason is one exception, whoever we are."""
    if place == "a folder":  # root may write anywhere but there
        monkeypatch.setenv("GRADFIX_STATE_DIR", "/proc/nowhere/state")
    elif place == "a file in the way":
        (tmp_path / "state").write_text("")
    else:
        (tmp_path / "state" / "memory.db").mkdir(parents=True)
    with pytest.raises(MemoryUnusable):
        note_events([event()])


def test_two_processes_at_once() -> None:
    """What two processes note at the same time is all there."""
    code = (
        "from explainer.model.event import Event\nfrom explainer.store.memory import note_events\nimport sys\n"
        "for n in range(60): note_events([Event(kind='failure', time=1.0, project='p', way='run', fingerprint='g1-a',"
        " digest=sys.argv[1] + str(n))])\n"
    )
    environment = {**os.environ, "PYTHONPATH": PATH}
    both = [subprocess.Popen([sys.executable, "-c", code, name], env=environment) for name in "ab"]
    assert [one.wait(60) for one in both] == [0, 0]
    assert len({one.digest for one in read_events()}) == 120


def test_where_it_lies(monkeypatch: pytest.MonkeyPatch) -> None:
    """The state folder is the one that platformdirs names, which is not imported for it on Linux."""
    platformdirs = pytest.importorskip("platformdirs")
    monkeypatch.delenv("GRADFIX_STATE_DIR")
    for value in ("/somewhere/state", "", None):
        monkeypatch.delenv("XDG_STATE_HOME", raising=False)
        if value is not None:
            monkeypatch.setenv("XDG_STATE_HOME", value)
        assert state_folder() == platformdirs.user_state_dir("gradfix", appauthor=False)
