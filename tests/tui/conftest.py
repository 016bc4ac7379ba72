"""Opens the interface on copies of the examples and drives it by keys."""

from __future__ import annotations

import asyncio
import contextlib
import pathlib
import shutil
import sys
import time
from collections.abc import AsyncIterator

import pytest

from tests.conftest import PATH, ROOT

pytest.importorskip("textual")

NARROW, WIDE = (80, 24), (140, 45)
PATIENCE = 60.0
TRAINER = str(pathlib.Path(__file__).with_name("trainer.py"))
SCALAR = "raise RuntimeError('grad can be implicitly created only for scalar outputs')"


@pytest.fixture(autouse=True)
def _own_folders(tmp_path_factory, monkeypatch) -> pathlib.Path:
    """No test sees or leaves anything of the person's."""
    monkeypatch.setenv("GRADFIX_STATE_DIR", str(tmp_path_factory.mktemp("state")))
    config = tmp_path_factory.mktemp("config")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(config))
    monkeypatch.setenv("PYTHONPATH", PATH)
    monkeypatch.setenv("PYTHONUNBUFFERED", "1")
    monkeypatch.delenv("COLORFGBG", raising=False)
    monkeypatch.delenv("NO_COLOR", raising=False)
    return config


@pytest.fixture
def project(tmp_path) -> pathlib.Path:
    """A copy of the smallest example."""
    return copy_example("mini-omni-cache", tmp_path)


def copy_example(name: str, folder: pathlib.Path) -> pathlib.Path:
    """A copy of an example, with its log."""
    target = folder / name
    shutil.copytree(ROOT / "examples" / name, target, ignore=shutil.ignore_patterns("__pycache__"))
    return target


@contextlib.asynccontextmanager
async def opened(root: pathlib.Path, source: str | None = None, *, size=NARROW, **options) -> AsyncIterator:
    """The interface on a project, at rest; gives Textual's pilot."""
    from explainer.tui.app import GradfixApp
    from explainer.tui.session import Options

    path = str(root / source) if source else None

    class Listening(GradfixApp):
        heard: list[str] = []

        def notify(self, message: str, **keywords) -> None:
            self.heard.append(message)
            super().notify(message, **keywords)

    app = Listening(Options(root=str(root), source=path, **{"probe": False, **options}))
    app.heard = []
    app.animation_level = "none"
    async with app.run_test(size=size, notifications=True) as pilot:
        await settle(pilot)
        yield pilot


async def settle(pilot) -> None:
    """Wait until no work is on and everything is drawn."""
    await pilot.pause()
    await until(pilot, lambda: not pilot.app.is_busy)
    await pilot.pause()


async def until(pilot, is_so, wanted: str = "it") -> None:
    """Wait for an event."""
    deadline, pause = time.monotonic() + PATIENCE, 0.02
    while time.monotonic() < deadline:
        if is_so():
            return
        await asyncio.sleep(pause)  # `pilot.pause` waits up to a second where a thread is at work
        pause = min(pause * 1.3, 0.2)  # to look at the screen takes the time of what is waited for
    heard = getattr(pilot.app, "heard", [])
    raise AssertionError(f"{wanted!r} never came; heard {heard}; the screen:\n{shown(pilot)}")


async def press(pilot, *keys: str) -> None:
    """Press keys, each once the one before has had its effect."""
    for key in keys:
        await pilot.press(key)
        await settle(pilot)


def shown(pilot) -> str:
    """The text of the screen."""
    screen = pilot.app.screen
    strips = screen._compositor.render_strips()
    return "\n".join(strip.text.rstrip() for strip in strips)


def flat(pilot) -> str:
    """The text of the screen as one line, however it is wrapped."""
    return " ".join(shown(pilot).translate(dict.fromkeys(map(ord, "│▌▊▎"), " ")).split())


async def see(pilot, text: str) -> None:
    """Wait until a text is to be seen, wrapped or not."""
    await until(pilot, lambda: text in shown(pilot) or text in flat(pilot), text)


async def hear(pilot, text: str) -> None:
    """Wait until something was notified; what has gone from the screen counts."""
    await until(pilot, lambda: any(text in one for one in pilot.app.heard), text)


def watched(folder: pathlib.Path, outcome: str) -> tuple[str, ...]:
    """A command that reports as a watched program does."""
    (folder / "outcome.txt").write_text(outcome)
    return python(TRAINER, "outcome.txt")


def python(*words: str) -> tuple[str, ...]:
    """A command of this interpreter."""
    return (sys.executable, *words)
