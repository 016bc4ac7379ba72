"""Applying and taking back: what is refused, that files change whole or not at all, and that odd bytes survive."""

from __future__ import annotations

import contextlib
import errno
import functools
import gc
import os
import pathlib
import signal
import subprocess
import sys
import threading
import time

import pytest

from explainer.fix import apply as apply_module
from explainer.fix.splice import make_patch
from explainer.model.finding import Fix
from explainer.model.journal import Record, Refused
from explainer.model.patch import Edit, FilePatch
from explainer.source.file import read_source
from explainer.store.lock import hold_lock
from explainer.store.place import journal_folder, make_folder
from explainer.workflow import apply, history, undo
from tests.conftest import ROOT

OLD, NEW = b"h += x\n", b"h = h + x\n"


@pytest.fixture(autouse=True)
def state(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> pathlib.Path:
    monkeypatch.setenv("GRADFIX_STATE_DIR", str(tmp_path / "state"))
    return tmp_path / "state"


@pytest.fixture
def root(tmp_path: pathlib.Path) -> pathlib.Path:
    (tmp_path / "project").mkdir()
    (tmp_path / "project" / "train.py").write_bytes(OLD)
    return tmp_path / "project"


def fix_of(*paths: pathlib.Path | str) -> Fix:
    changes = tuple(FilePatch(file=str(path), before=OLD, after=NEW) for path in paths)
    return Fix(id="f", title="Cure it", applicability="safe", kind="edit", changes=changes)


def run(root: pathlib.Path, *paths: pathlib.Path | str) -> Record | Refused:
    return apply(fix_of(*(paths or (root / "train.py",))), cause="inplace/x", root=str(root), command="test")


def outside(root: pathlib.Path) -> pathlib.Path:
    (root.parent / "other.py").write_bytes(OLD)
    return root.parent / "other.py"


def beside(root: pathlib.Path) -> pathlib.Path:
    """A folder whose name only begins like the project's."""
    (root.parent / "project2").mkdir()
    (root.parent / "project2" / "train.py").write_bytes(OLD)
    return root.parent / "project2" / "train.py"


def link_out(root: pathlib.Path) -> pathlib.Path:
    (root / "link.py").symlink_to(outside(root))
    return root / "link.py"


def folder_link_out(root: pathlib.Path) -> pathlib.Path:
    (root / "lib").symlink_to(beside(root).parent)
    return root / "lib" / "train.py"


def nested(root: pathlib.Path, *names: str) -> pathlib.Path:
    path = root.joinpath(*names)
    path.parent.mkdir(parents=True)
    path.write_bytes(OLD)
    return path


def environment(root: pathlib.Path) -> pathlib.Path:
    path = nested(root, "myenv", "src", "m.py")
    (root / "myenv" / "pyvenv.cfg").touch()
    return path


def targeted(root: pathlib.Path) -> pathlib.Path:
    """A package put there by `pip install --target`."""
    path = nested(root, "vendored", "pkg", "m.py")
    (root / "vendored" / "pkg-1.dist-info").mkdir()
    (root / "vendored" / "pkg-1.dist-info" / "RECORD").write_text("pkg/m.py,sha256=x,7\n")
    return path


def with_mode(path: pathlib.Path, mode: int) -> pathlib.Path:
    path.chmod(mode)
    return path


def closed_folder(root: pathlib.Path) -> pathlib.Path:
    path = nested(root, "closed", "m.py")
    path.parent.chmod(0o555)
    return path


def fifo(root: pathlib.Path) -> pathlib.Path:
    os.mkfifo(root / "pipe.py")
    return root / "pipe.py"


def hard_link(root: pathlib.Path) -> pathlib.Path:
    os.link(root / "train.py", root / "same.py")
    return root / "train.py"


def changed(root: pathlib.Path) -> pathlib.Path:
    (root / "train.py").write_bytes(b"h += 2 * x\n")
    return root / "train.py"


def folder(root: pathlib.Path) -> pathlib.Path:
    (root / "pkg.py").mkdir()
    return root / "pkg.py"


REFUSALS = {
    "outside of the project": (outside, "lies outside of"),
    "by way of ..": (lambda root: f"{root}/../{outside(root).name}", "lies outside of"),
    "beside the project": (beside, "lies outside of"),
    "a link that leads out": (link_out, "is a link that leads out of the project"),
    "a folder link that leads out": (folder_link_out, "is a link that leads out of the project"),
    "site-packages": (lambda root: nested(root, "site-packages", "m.py"), "belongs to an installed package"),
    "dist-packages": (lambda root: nested(root, "x", "dist-packages", "m.py"), "belongs to an installed package"),
    "the standard library": (lambda root: nested(root, "lib", "python3.11", "m.py"), "belongs to an installed package"),
    "an environment": (environment, "belongs to an installed package"),
    "a package that pip put there": (targeted, "belongs to an installed package"),
    "git's own files": (lambda root: nested(root, ".git", "m.py"), "belongs to an installed package"),
    "a changed file": (changed, "train.py has changed since"),
    "a missing file": (lambda root: root / "gone.py", "gone.py cannot be read: no such file"),
    "a folder": (folder, "pkg.py is no regular file"),
    "a fifo": (fifo, "pipe.py is no regular file"),
    "a hard link": (hard_link, "train.py has 2 hard links"),
}


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_without_write_permission(root: pathlib.Path) -> None:
    """Where the user may not write the folder the fix is refused."""
    path = closed_folder(root)
    refused = read_changes([FilePatch(file=str(path), before=path.read_bytes(), after=b"x = 1\n")], str(root))
    assert isinstance(refused, Refused)
    assert "lies in a read-only folder" in refused.reason


@pytest.mark.parametrize(("make", "reason"), REFUSALS.values(), ids=REFUSALS.keys())
def test_refused(root: pathlib.Path, state: pathlib.Path, make, reason: str) -> None:
    """What is not ours to change is refused in one line, the other files of the fix with it, and leaves no trace."""
    good = nested(root, "good", "a.py")
    path = make(root)
    refused = run(root, good, path)
    assert isinstance(refused, Refused)
    assert reason in refused.reason
    assert "\n" not in refused.reason
    assert good.read_bytes() == OLD
    assert not list(root.rglob("*.gradfix"))
    assert not state.exists()


def test_a_project_inside_an_installed_package(tmp_path: pathlib.Path) -> None:
    """site-packages is refused also as the root itself."""
    path = nested(tmp_path, "site-packages", "pkg", "m.py")
    refused = run(path.parent, path)
    assert isinstance(refused, Refused)
    assert path.read_bytes() == OLD


def test_what_changed_is_shown(root: pathlib.Path) -> None:
    """A changed file comes with the difference."""
    assert run(root, changed(root)).diff.splitlines()[-2:] == ["-h += x", "+h += 2 * x"]


def test_advice_is_not_applied(root: pathlib.Path) -> None:
    """A fix without an edit is refused."""
    advice = Fix(id="f", title="Look at it", applicability="display", kind="advice")
    assert apply(advice, cause="c", root=str(root)) == Refused(reason="`f` has no edit: Look at it")


def test_a_journal_that_cannot_be_written(root: pathlib.Path, state: pathlib.Path) -> None:
    """Without a journal no file changes."""
    state.write_text("in the way")
    refused = run(root)
    assert refused.reason.startswith("cannot write ")
    assert (root / "train.py").read_bytes() == OLD


@pytest.mark.parametrize("name", ["stage_file", "swap_in"])
def test_a_full_disk(root: pathlib.Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """When the second of two files cannot be written the first is as it was, and the journal is empty."""
    second = nested(root, "pkg", "m.py")
    real = getattr(apply_module, name)

    def fail(*given) -> None:
        if str(second) in given:
            raise OSError(errno.ENOSPC, "No space left on device")
        real(*given)

    monkeypatch.setattr(apply_module, name, fail)
    refused = run(root, root / "train.py", second)
    assert refused == Refused(reason="cannot be written: No space left on device; nothing was changed")
    assert ((root / "train.py").read_bytes(), second.read_bytes()) == (OLD, OLD)
    assert (sorted(os.listdir(root)), history(str(root))) == (["pkg", "train.py"], [])


def test_a_change_while_it_is_staged(root: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An editor that saves between the first look and the rename wins."""
    real = apply_module.stage_file
    monkeypatch.setattr(apply_module, "stage_file", lambda *given: (real(*given), changed(root)))
    refused = run(root)
    assert "has changed since" in refused.reason
    assert (root / "train.py").read_bytes() == b"h += 2 * x\n"
    assert history(str(root)) == []


@pytest.mark.parametrize("name", ["stage_file", "swap_in"])
def test_an_interrupt(root: pathlib.Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """Ctrl-C during an apply comes through, and every file is as it was."""
    real = getattr(apply_module, name)
    monkeypatch.setattr(apply_module, name, lambda *given: (real(*given), os.kill(os.getpid(), signal.SIGINT)))
    gc.disable()  # what is raised in a callback of the collector, as Hypothesis has one, comes to nobody
    try:
        with pytest.raises(KeyboardInterrupt):
            run(root)
    finally:
        gc.enable()
    assert (os.listdir(root), (root / "train.py").read_bytes(), history(str(root))) == (["train.py"], OLD, [])


def test_one_gradfix_at_a_time(root: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A second one waits for a while, then says who holds the lock."""
    where = journal_folder(os.path.realpath(root))
    make_folder(where)
    monkeypatch.setattr("explainer.store.journal.hold_lock", functools.partial(hold_lock, patience=0.2))
    with hold_lock(where, "gradfix run"):
        refused = run(root)
    assert refused.reason.startswith(f"process {os.getpid()} (gradfix run) is changing this project")
    assert isinstance(run(root), Record)


def test_it_waits_for_the_lock(root: pathlib.Path) -> None:
    """A lock that is let go within the patience costs only time."""
    where = journal_folder(os.path.realpath(root))
    make_folder(where)
    held = hold_lock(where, "another")
    held.__enter__()
    threading.Timer(0.4, lambda: held.__exit__(None, None, None)).start()
    assert isinstance(run(root), Record)


def test_a_link_inside_stays_a_link(root: pathlib.Path) -> None:
    """The file behind a link inside the project changes; the link stays."""
    (root / "link.py").symlink_to("train.py")
    assert isinstance(run(root, root / "link.py"), Record)
    assert (root / "link.py").is_symlink()
    assert (root / "train.py").read_bytes() == NEW


ODD = {
    "a byte order mark": b"\xef\xbb\xbfimport torch\nh += x\n",
    "CRLF": b"import torch\r\nh += x\r\n",
    "mixed line ends": b"a = 1\r\nb = 2\rh += x\nc = 3\r\n",
    "latin-1": "# -*- coding: latin-1 -*-\ns = 'é'\nh += x\n".encode("latin-1"),
    "tabs and trailing blanks": b"if 1:\n\th = 1  \t\n\th += x \t \n",
    "a form feed": b"a = 1\n\x0c\nh += x\n",
    "no final newline": b"h += x",
    "a line separator in a string": "s = '\u2028'\nh += x\n".encode(),
    "cp1252 with CRLF": "# coding: cp1252\r\ns = '€'\r\nh += x\r\n".encode("cp1252"),
}


@pytest.mark.parametrize("data", ODD.values(), ids=ODD.keys())
def test_odd_bytes_survive(root: pathlib.Path, data: bytes) -> None:
    """Every byte outside of the edit stays, and undo brings all of them and the mode back."""
    path = root / "odd.py"
    path.write_bytes(data)
    path.chmod(0o751)
    source = read_source(str(path))
    at = source.text.index("h += x")
    patch = make_patch([Edit(file=str(path), start=at, end=at + 6, new="h = h + x")], {str(path): source}, str(root))
    fix = Fix(id="f", title="t", applicability="safe", kind="edit", changes=patch.files)
    record = apply(fix, cause="c", root=str(root))
    assert (path.read_bytes(), path.stat().st_mode & 0o777) == (data.replace(b"h += x", b"h = h + x"), 0o751)
    path.chmod(0o644)
    assert undo(record).state == "undone"
    assert (path.read_bytes(), path.stat().st_mode & 0o777) == (data, 0o751)


def test_attributes_and_group(root: pathlib.Path) -> None:
    """Extended attributes and, where that is allowed, the owner stay with the file."""
    path = root / "train.py"
    try:
        os.setxattr(path, "user.note", b"mine")
    except OSError:
        pytest.skip("this file system has no extended attributes")
    with contextlib.suppress(PermissionError):  # only root may give a file away
        os.chown(path, 12345, 23456)
    before = path.stat()
    assert isinstance(run(root), Record)
    after = path.stat()
    assert os.getxattr(path, "user.note") == b"mine"
    assert (after.st_uid, after.st_gid, after.st_mode) == (before.st_uid, before.st_gid, before.st_mode)


def test_python_sees_an_edit_of_equal_size(root: pathlib.Path) -> None:
    """Within the second of the last import, an edit that keeps the size still reaches the program: its .pyc is stale."""
    path = root / "value.py"
    time.sleep(1 - time.time() % 1)  # what follows takes less than the second that begins
    path.write_bytes(b"a = 1\n")
    code = [sys.executable, "-c", "import value; print(value.a)"]
    assert subprocess.run(code, cwd=root, check=True, capture_output=True).stdout == b"1\n"
    change = FilePatch(file=str(path), before=b"a = 1\n", after=b"a = 2\n")
    fix = Fix(id="f", title="t", applicability="safe", kind="edit", changes=(change,))
    assert isinstance(apply(fix, cause="c", root=str(root)), Record)
    assert subprocess.run(code, cwd=root, check=True, capture_output=True).stdout == b"2\n"


def test_undo_of_a_file_that_changed(root: pathlib.Path) -> None:
    """A file that was edited after the apply is left alone, and the edit is shown."""
    record = run(root)
    (root / "train.py").write_bytes(NEW + b"y = 1\n")
    refused = undo(record)
    assert "train.py has changed since" in refused.reason
    assert "+y = 1" in refused.diff
    assert (root / "train.py").read_bytes() == NEW + b"y = 1\n"
    assert history(str(root))[-1].state == "applied"


def test_undo_of_several_files_is_all_or_none(root: pathlib.Path) -> None:
    """When one of two files changed since, neither is taken back."""
    second = nested(root, "pkg", "m.py")
    record = run(root, root / "train.py", second)
    second.write_bytes(b"")
    assert isinstance(undo(record), Refused)
    assert (root / "train.py").read_bytes() == NEW


def test_undo_of_an_earlier_patch_of_the_file(root: pathlib.Path) -> None:
    """The later patch of the same file is named; in the right order both go back."""
    first = run(root)
    change = FilePatch(file=str(root / "train.py"), before=NEW, after=b"pass\n")
    second = apply(
        Fix(id="g", title="t", applicability="safe", kind="edit", changes=(change,)), cause="c", root=str(root)
    )
    assert undo(first).reason.endswith(f"{second.id} was applied later: undo it first")
    assert (undo(second).state, undo(first).state) == ("undone", "undone")
    assert (root / "train.py").read_bytes() == OLD


def test_undo_twice(root: pathlib.Path) -> None:
    """What is undone cannot be undone again."""
    record = run(root)
    undo(record)
    assert undo(record) == Refused(reason=f"{record.id} is not applied")


def test_the_journal_comes_first_and_is_private(root: pathlib.Path, state: pathlib.Path) -> None:
    """The record is on disk before any file of the project changes, synced, and only the user may read it."""
    code = (
        "import os, sys\nfrom tests.fix.test_apply import fix_of\nfrom explainer.workflow import apply\n"
        "for name in ('fsync', 'replace'):\n"
        "    def call(*given, real=getattr(os, name), name=name):\n"
        "        real(*given)\n"
        "        given = [os.readlink(f'/proc/self/fd/{one}') if isinstance(one, int) else one for one in given]\n"
        "        print(name, os.path.basename(given[-1]) or given[-1])\n"
        "    setattr(os, name, call)\n"
        "root = sys.argv[1]\napply(fix_of(f'{root}/train.py'), cause='c', root=root)\n"
    )
    run = subprocess.run([sys.executable, "-c", code, str(root)], capture_output=True, text=True, cwd=ROOT, check=True)
    (record,) = state.rglob("*.json")
    name, place = record.name, record.parent.name
    write = [f"fsync {name}.new", f"replace {name}", f"fsync {place}"]
    staged = f"fsync .train.py.{record.stem}.gradfix"
    assert run.stdout.splitlines() == [*write, staged, "replace train.py", "fsync project", *write]
    assert {path.stat().st_mode & 0o077 for path in (record, record.parent)} == {0}
