"""Each screen in two sizes, as it was looked at and found good. `pytest tests/tui/test_snapshots.py --snapshot-update` renews them.

The pictures are of one release of Textual, which draws borders and scrollbars its own way; with another they are skipped.
"""

from __future__ import annotations

import importlib.metadata
import json
import os
import pathlib
import re
import shutil
import time

import pytest

from tests.conftest import ROOT
from tests.gate import some_at_gate
from tests.tui.conftest import NARROW, WIDE, settle

pytest.importorskip("pytest_textual_snapshot")
RELEASE = "8.2"
pytestmark = pytest.mark.skipif(
    not importlib.metadata.version("textual").startswith(f"{RELEASE}."), reason=f"the pictures are of textual {RELEASE}"
)
SIZES = pytest.mark.parametrize(
    "size", [pytest.param(NARROW, id="80x24"), pytest.param(WIDE, id="140x45", marks=pytest.mark.slow)]
)
SCREENS = {
    "finding": (),
    "fix": ("f",),
    "fix-applied": ("f", "a"),
    "rules": ("5",),
    "environment": ("6",),
    "help": ("question_mark",),
    "command": ("v",),
}
ENVIRONMENT = {
    "schema": "gradfix.environment/1",
    "python": {"name": "python", "value": "3.11.7", "source": "/home/user/.venv/bin/python"},
    "packages": [{"name": "torch", "version": "2.13.0", "source": "/home/user/.venv/lib/python3.11/site-packages"}],
    "gpus": [{"name": "NVIDIA H200", "memory_mib": 143771, "capability": "9.0", "bf16": True, "fp16": True, "tf32": True, "source": "NVML"}],
}  # fmt: skip
RECORD = {
    "schema": "gradfix.journal/1", "id": "3f2a9c", "time": 1760000000.0, "command": "python train.py", "fix": "no-cache-in-training",
    "cause": "inplace/cache-updated-in-training", "state": "applied", "note": None, "title": "Train without the cache: `input_pos=None`",
}  # fmt: skip


@pytest.fixture
def app(tmp_path, monkeypatch):
    """The interface on the smallest example, in a folder of always the same name."""
    from explainer.tui.app import GradfixApp
    from explainer.tui.session import Options

    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    project = tmp_path / "mini-omni-cache"
    shutil.copytree(ROOT / "examples" / "mini-omni-cache", project, ignore=shutil.ignore_patterns("__pycache__"))
    (tmp_path / "env.json").write_text(json.dumps(ENVIRONMENT))
    monkeypatch.setenv("VIRTUAL_ENV", "/home/user/.venv")
    monkeypatch.setattr(shutil, "which", lambda name: f"/usr/bin/{name}")
    app = GradfixApp(Options(root=str(project), source=str(project / "train.log"), env=str(tmp_path / "env.json")))
    app.animation_level = "none"
    yield app
    monkeypatch.undo()
    time.tzset()


async def at_rest(pilot) -> None:
    """Wait until what is drawn stays as it is."""
    still, last = 0, ""
    for _ in range(100):
        await pilot.pause(0.1)
        now = pilot.app.export_screenshot()
        still, last = (still + 1 if now == last else 0), now
        if still == 2:
            return
    raise AssertionError("the screen does not come to rest")


def drive(*keys: str, then=None):
    """What is done before the picture is taken."""

    async def run(pilot) -> None:
        from textual.widgets import Input

        for one in pilot.app.screen.query(Input):
            one.cursor_blink = False
        await settle(pilot)
        for key in keys:
            await pilot.press(key)
            await settle(pilot)
        if then is not None:
            await then(pilot)
        pilot.app.clear_notifications()
        for one in pilot.app.screen.query(Input):
            one.cursor_blink = False
            one._cursor_visible = True  # on a busy machine it has blinked by now
        await at_rest(pilot)

    return run


@SIZES
@pytest.mark.parametrize(
    "keys", some_at_gate({name: (keys,) for name, keys in SCREENS.items()}, ["finding", "fix", "command"])
)
def test_screen(snap_compare, app, keys, size) -> None:
    """A screen at rest."""
    assert snap_compare(app, terminal_size=size, run_before=drive(*keys))


@SIZES
def test_history(snap_compare, app, size) -> None:
    """Two patches, one of them taken back."""
    write_records(pathlib.Path(app.session.root))
    assert snap_compare(app, terminal_size=size, run_before=drive("4"))


DOCS = {
    "finding-wide": "test_screen[finding-140x45]",
    "fix": "test_screen[fix-80x24]",
    "fix-light": "test_theme[light]",
    "verify-wide": "test_verify[trains-140x45]",
}


def picture(name: str) -> str:
    """A picture as the tests keep it, without the fonts that it would fetch from elsewhere."""
    text = (pathlib.Path(__file__).parent / "__snapshots__" / "test_snapshots" / f"{name}.svg").read_text()
    return re.sub(r"@font-face \{.*?\}\s*", "", text, flags=re.S)


@pytest.mark.parametrize("name", DOCS)
def test_the_documentation_shows_the_same(name) -> None:
    """What README and docs show is what the tests see. `python -m tests.tui.test_snapshots` copies them anew."""
    assert (ROOT / "docs" / "screens" / f"{name}.svg").read_text() == picture(DOCS[name])


def write_records(root: pathlib.Path) -> None:
    """Two records in the journal of the project, with fixed ids and times."""
    import base64

    from explainer.store.place import journal_folder

    folder = pathlib.Path(journal_folder(os.path.realpath(root)))
    folder.mkdir(parents=True)
    before = (root / "train.py").read_bytes()
    texts = [
        base64.b64encode(one).decode() for one in (before, before.replace(b"input_pos)\n", b"input_pos=None)\n", 1))
    ]
    change = {"file": os.path.realpath(root / "train.py"), "mode": 0o644, "before": texts[0], "after": texts[1]}
    older = {"id": "0b51ce", "time": RECORD["time"] - 5000, "state": "undone", "fix": "count-out-of-place"}
    for one in (RECORD, {**RECORD, **older}):
        text = json.dumps({**one, "root": os.path.realpath(root), "files": [change]})
        (folder / f"{one['id']}.json").write_text(text)


@SIZES
@pytest.mark.parametrize("outcome", ["trains", "overflows"])
def test_verify(snap_compare, app, size, outcome) -> None:
    """A verification that is green, and one that is red."""
    from tests.tui.test_run import watched

    async def verify(pilot) -> None:
        session = pilot.app.session
        session.command = watched(pathlib.Path(session.root), outcome)
        await pilot.press("v")
        await settle(pilot)
        session.command = ("python", "train.py")
        pilot.app.draw_status()
        pilot.app.query_one("#doing").update("4 s   $ python train.py")

    assert snap_compare(app, terminal_size=size, run_before=drive("f", "a", then=verify))


@pytest.mark.parametrize(
    "theme", ["light", *(pytest.param(one, marks=pytest.mark.slow) for one in ("ansi", "high-contrast"))]
)
def test_theme(snap_compare, app, theme) -> None:
    """The screen of fixes in the other themes."""

    async def choose(pilot) -> None:
        pilot.app.theme = theme
        await pilot.pause()

    assert snap_compare(app, terminal_size=NARROW, run_before=drive("f", then=choose))


if __name__ == "__main__":
    for name, test in DOCS.items():
        (ROOT / "docs" / "screens" / f"{name}.svg").write_text(picture(test))
