"""What the interface remembers, and shows of it: sightings, fixes with their verdicts, what changed since a good run."""

from __future__ import annotations

import pytest

from explainer.memory import events_of
from tests.tui.conftest import SCALAR, WIDE, opened, press, python, see, settle, shown, watched

pytestmark = pytest.mark.asyncio


@pytest.fixture(autouse=True)
def _kept(monkeypatch) -> None:
    monkeypatch.setenv("GRADFIX_NO_MEMORY", "0")


def remembered(root) -> list[tuple[str, str, str | None]]:
    """The events of a project: kind, way and verdict."""
    return [(one.kind, one.way, one.verdict) for one in events_of(str(root))]


async def test_a_fix_is_known_the_next_time(project) -> None:
    """Applied, verified and taken back, all in the memory; a log counts once, however often its edits are planned."""
    async with opened(project, "train.log", size=WIDE) as pilot:
        assert "before: " not in shown(pilot)
        await pilot.app.replan()
        await settle(pilot)
        await press(pilot, "f", "a")
        pilot.app.session.command = watched(project, "trains")
        await press(pilot, "v")
        await see(pilot, "verified  the program trains with this change")
    sighting, applied, proved = ("failure", "ui", None), ("fix", "ui", None), ("verification", "verify", "green")
    assert remembered(project) == [sighting, applied, proved]
    with (project / "train.log").open("a") as log:  # that of the next run
        log.write("RuntimeError: the same again\n")
    async with opened(project, "train.log", size=WIDE) as pilot:
        await see(pilot, "before: once, on")
        await see(pilot, "(verified)")
        await pilot.app.replan()
        await settle(pilot)
        await see(pilot, "before: once, on")
        await press(pilot, "4", "u")
        await see(pilot, "undone")
    assert remembered(project)[3:] == [sighting, ("undo", "undo", None)]


async def test_what_changed_since_a_good_run(tmp_path) -> None:
    """The card of a failed run lists it."""
    (tmp_path / "train.py").write_text("print('epoch 1')\n")
    async with opened(tmp_path, command=python("train.py"), size=WIDE) as pilot:
        await see(pilot, "the program ended well")
    (tmp_path / "train.py").write_text(f"print('epoch 1')\n{SCALAR}\n")
    async with opened(tmp_path, command=python("train.py"), size=WIDE) as pilot:
        await see(pilot, "since the last good run")
        await see(pilot, "train.py changed")
