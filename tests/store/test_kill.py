"""`kill -9` at every step of an apply and of an undo: each file is old or new, and the journal tells which."""

from __future__ import annotations

import pathlib

import pytest

from explainer.model.journal import Record
from explainer.transaction import settle_journal
from explainer.workflow import apply, history, undo
from tests.store.programs import NEW, OLD, contents, fix_of, killed_at, last_record, make_project

MIN_STEPS = 30  # fewer would mean that the child's calls are no longer counted


@pytest.fixture(autouse=True)
def state(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GRADFIX_STATE_DIR", str(tmp_path / "state"))


def visible_files(root: pathlib.Path) -> dict[str, bytes]:
    return {name: data for name, data in contents(root).items() if not name.startswith(".")}


def check(root: pathlib.Path, step: int) -> None:
    """The files right after the kill, and what the next start makes of them."""
    for name, data in visible_files(root).items():
        assert data in (OLD[name], NEW[name]), f"step {step}: {name} is torn"
    assert settle_journal(str(root)) is None
    states = [one.state for one in history(str(root))]
    expected = NEW if states == ["applied"] else OLD
    assert contents(root) == expected, f"step {step}: {states}"
    assert {path.stat().st_mode & 0o777 for path in root.iterdir()} == {0o640}


EACH = pytest.mark.parametrize("stride", [5, pytest.param(1, marks=pytest.mark.slow)])


@EACH
def test_apply(tmp_path: pathlib.Path, stride: int) -> None:
    """Killed at any step of an apply: afterwards all files are old or all new, as the journal says, and it works again."""
    for step in range(1, 200, stride):
        root = make_project(tmp_path / f"p{step}")
        was_killed = killed_at(step, "apply", root, tmp_path)
        check(root, step)
        if not was_killed:
            break
        again = apply(fix_of(root), cause="c", root=str(root)) if contents(root) == OLD else last_record(root)
        assert isinstance(again, Record)
        assert contents(root) == NEW
    assert MIN_STEPS < step < 195
    assert last_record(root).state == "applied"


@EACH
def test_undo(tmp_path: pathlib.Path, stride: int) -> None:
    """Killed at any step of an undo: the same."""
    for step in range(1, 200, stride):
        root = make_project(tmp_path / f"p{step}")
        assert isinstance(apply(fix_of(root), cause="c", root=str(root)), Record)
        was_killed = killed_at(step, "undo", root, tmp_path)
        check(root, step)
        if not was_killed:
            break
        again = undo(last_record(root)) if contents(root) == NEW else last_record(root)
        assert isinstance(again, Record)
        assert contents(root) == OLD
    assert MIN_STEPS < step < 195
    assert last_record(root).state == "undone"
