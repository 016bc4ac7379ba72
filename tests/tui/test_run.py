"""From a command: run, watch, explain, verify, stop, quit; and every way in which that can fail."""

from __future__ import annotations

import asyncio
import os
import pathlib
import signal
import sys

import pytest

from explainer.tui.worker.live import MAX_LINES, Live
from tests import forked
from tests.tui.conftest import SCALAR, WIDE, hear, opened, press, python, see, settle, shown, until, watched
from tests.verification.programs import CARRIED

pytestmark = pytest.mark.asyncio
SLEEPER = "import subprocess, sys\nchild = subprocess.Popen(['sleep', '60'])\nprint('child', child.pid, flush=True)\nchild.wait()\n"


def is_running(pid: int) -> bool:
    """Whether a process lives; one that has ended and was not asked after yet does not."""
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


async def test_a_command_that_is_not_there(tmp_path) -> None:
    """It is named; v asks for another one, which runs."""
    async with opened(tmp_path, command=("no-such-program", "train.py")) as pilot:
        await see(pilot, "no-such-program: no such file or directory")
        await press(pilot, "v")
        await see(pilot, "How is the program started?")


async def test_a_command_that_cannot_be_read(tmp_path) -> None:
    """An open quotation mark is named; nothing runs."""
    async with opened(tmp_path) as pilot:
        await press(pilot, "v")
        await pilot.press(*"python '")
        await press(pilot, "enter")
        await hear(pilot, "no closing quotation")
        assert not pilot.app.session.command


async def test_a_failure_is_explained(tmp_path) -> None:
    """The output is shown; the failure is explained when the program ends."""
    (tmp_path / "train.py").write_text(f"print('epoch 1')\n{SCALAR}\n")
    async with opened(tmp_path, command=python("train.py"), size=WIDE) as pilot:
        assert pilot.app.at == "finding"
        await see(pilot, "backward/non-scalar-loss")
        await press(pilot, "3")
        await see(pilot, "epoch 1")
        await see(pilot, "failed with status 1")


async def test_a_program_that_ends_well(tmp_path) -> None:
    """It says so, and stays where it is."""
    async with opened(tmp_path, command=python("-c", "print('done')")) as pilot:
        await see(pilot, "the program ended well")
        await see(pilot, "done")


async def test_a_failure_that_says_nothing(tmp_path) -> None:
    """Its status is all that is known."""
    async with opened(tmp_path, command=python("-c", "raise SystemExit(3)")) as pilot:
        await see(pilot, "status 3")


async def test_quitting_asks_while_a_run_is_on(tmp_path) -> None:
    """No stays; yes ends the program with what it started."""
    (tmp_path / "train.py").write_text(SLEEPER)
    from explainer.tui.app import GradfixApp
    from explainer.tui.session import Options

    app = GradfixApp(Options(root=str(tmp_path), command=python("train.py"), probe=False))
    async with app.run_test(size=(80, 24), notifications=True) as pilot:
        await until(pilot, lambda: "child " in shown(pilot))
        child = int(shown(pilot).partition("child ")[2].split()[0])
        await pilot.press("q")
        await see(pilot, "End it and quit?")
        await pilot.press("n")
        assert app.doing == "running"
        await pilot.press("q", "y")
        await until(pilot, lambda: not app.doing)
        assert not is_running(child)


async def test_a_run_that_is_stopped(tmp_path) -> None:
    """x ends it; the interface goes on."""
    from explainer.tui.app import GradfixApp
    from explainer.tui.session import Options

    app = GradfixApp(Options(root=str(tmp_path), command=python("-c", "import time; time.sleep(60)"), probe=False))
    async with app.run_test(size=(80, 24), notifications=True) as pilot:
        await until(pilot, lambda: app.doing == "running")
        await press(pilot, "x")
        await see(pilot, "stopped")
        await press(pilot, "5")
        assert app.pane("rules").chosen


async def test_a_flood_of_output(tmp_path) -> None:
    """It costs lines, not memory or the interface's time; the end is there."""
    code = "for at in range(50_000): print('line', at)"
    async with opened(tmp_path, command=python("-c", code)) as pilot:
        from textual.widgets import Log

        log = pilot.app.query_one("#output", Log)
        assert log.line_count <= MAX_LINES + 1
        assert "line 49999" in "\n".join(log.lines)


@pytest.mark.parametrize(
    ("data", "lines"),
    {
        "a progress bar": (b"10%\r50%\r100%\n", ["100%"]),
        "colours": (b"\x1b[31mred\x1b[0m\n", ["red"]),
        "an escape that is no colour": (b"\x1b]0;title\x07x\n", ["\\x1b]0;title\\x07x"]),
        "no text": (b"\xff\xfe\n", ["\ufffd\ufffd"]),
        "a line that is not whole": (b"be", []),
    }.values(),
)
async def test_what_is_shown_of_output(data, lines) -> None:
    """What a terminal would show at last; what could disturb the screen is written out."""
    live = Live()
    live.on_output(1, data)
    assert live.fetch() == (lines, [])


async def test_green(project) -> None:
    """Losses and norms are plotted, modules listed, and the state says verified."""
    async with opened(project, "train.log", size=WIDE) as pilot:
        await press(pilot, "f", "a")
        pilot.app.session.command = watched(project, "trains")
        await press(pilot, "v")
        screen = shown(pilot)
        assert "verified  the program trains with this change" in screen
        assert "loss  2.7  3 steps" in screen
        assert "gradient norm  3  3 steps" in screen
        assert "Net.second" in screen
        assert "memory 50 MiB" in screen
        assert "·  verified" in screen.split("\n")[-2]
        await press(pilot, "q")
    assert pilot.app.return_code == 0


async def test_red_is_taken_back(project) -> None:
    """It says why; u gives the bytes back; nothing is asked when leaving."""
    before = (project / "train.py").read_bytes()
    async with opened(project, "train.log") as pilot:
        await press(pilot, "f", "a")
        pilot.app.session.command = watched(project, "overflows")
        await press(pilot, "v")
        await see(pilot, "red  the loss of backward 3 is nan")
        await see(pilot, "u takes the edit back")
        assert (project / "train.py").read_bytes() != before
        await press(pilot, "u")
        await see(pilot, "taken back")
        assert (project / "train.py").read_bytes() == before
        await press(pilot, "q")
    assert pilot.app.return_code == 0


@pytest.mark.parametrize(("answer", "is_kept"), [("y", False), ("n", True)])
async def test_leaving_a_red_edit_asks(project, answer, is_kept) -> None:
    """Yes takes it back, no leaves it: nothing is done unasked."""
    before = (project / "train.py").read_bytes()
    async with opened(project, "train.log") as pilot:
        await press(pilot, "f", "a")
        pilot.app.session.command = watched(project, "overflows")
        await press(pilot, "v", "q")
        await see(pilot, "back before leaving?")
        await press(pilot, answer)
    assert ((project / "train.py").read_bytes() != before) is is_kept


async def test_what_fails_behind_a_fix(project) -> None:
    """n explains what the verification failed with, with the fix in place."""
    async with opened(project, "train.log") as pilot:
        await press(pilot, "f", "a")
        pilot.app.session.command = watched(project, "fails")
        await press(pilot, "v")
        await see(pilot, "red  it")
        await press(pilot, "n")
        assert pilot.app.at == "finding"
        await see(pilot, "backward/non-scalar-loss")
        await press(pilot, "u")
        assert not pilot.app.session.applied


async def test_a_verification_that_is_stopped(project) -> None:
    """The edit stays, unproved; the project has nothing of the run."""
    async with opened(project, "train.log") as pilot:
        await press(pilot, "f", "a")
        pilot.app.session.command = watched(project, "never ends")
        await pilot.press("v")
        await until(pilot, lambda: "step 3" in shown(pilot))
        await press(pilot, "x")
        await see(pilot, "stopped")
        assert pilot.app.session.last.proof is None


async def test_without_a_fix(tmp_path) -> None:
    """v verifies the program as it is."""
    command = watched(tmp_path, "trains")
    async with opened(tmp_path, command=command) as pilot:
        await press(pilot, "v")
        await see(pilot, "verified  the program trains")


async def test_the_command_is_guessed_and_remembered(project) -> None:
    """From the log's own script; the next time it is the one that was typed."""
    from textual.widgets import Input

    async with opened(project, "train.log") as pilot:
        await press(pilot, "v")
        line = pilot.app.screen.query_one(Input)
        assert line.value.endswith(" train.py")
        line.value = f"{sys.executable} -c 'print(1)'"
        await press(pilot, "enter")
        await see(pilot, "inconclusive")
    async with opened(project, "train.log") as pilot:
        await press(pilot, "v")
        assert pilot.app.screen.query_one(Input).value == f"{sys.executable} -c 'print(1)'"


@pytest.mark.torch
async def test_traced(project) -> None:
    """t runs a failed program again, each operation watched; what was seen stands among the evidence."""
    pytest.importorskip("torch")
    async with opened(project, command=(forked.python(), "train.py"), size=(140, 60)) as pilot:
        assert pilot.app.session.run.status == 1
        await press(pilot, "t")
        assert pilot.app.at == "finding"
        await hear(pilot, "traced: the lines that it saw")
        assert pilot.app.session.report.incident.traced[0].file == "train.py"
        await see(pilot, "saved for backward")


async def test_a_kill_ends_the_program_too(tmp_path) -> None:
    """SIGTERM to the interface leaves nothing running."""
    (tmp_path / "train.py").write_text(SLEEPER)
    code = (
        "import sys; from explainer.tui.app import GradfixApp; from explainer.tui.session import Options\n"
        f"app = GradfixApp(Options(root={str(tmp_path)!r}, command=({sys.executable!r}, 'train.py'), probe=False))\n"
        "app.run(headless=True)\napp.end_work()\n"
    )
    process = await asyncio.create_subprocess_exec(sys.executable, "-c", code)
    children = f"/proc/{process.pid}/task/{process.pid}/children"
    from explainer.verification.family import any_left, descendants

    while len(family := descendants(process.pid)) < 2:
        assert os.path.exists(children)
        await asyncio.sleep(0.05)
    await asyncio.sleep(0.2)
    process.send_signal(signal.SIGTERM)
    await process.wait()
    assert not any_left(family)


@pytest.mark.slow
async def test_a_cut_is_held_to_the_gradients_before_it(tmp_path) -> None:
    """The finding shows at once; the program runs once more before a cut is written, and not again for the next edit."""
    pytest.importorskip("torch")
    (tmp_path / "train.py").write_text(CARRIED)
    async with opened(tmp_path, command=python("train.py"), size=WIDE) as pilot:
        session = pilot.app.session
        await see(pilot, "backward/state-carried-across-steps")
        assert session.target.before is None
        await press(pilot, "f", "a")
        await hear(pilot, "train.py changed")
        assert session.target.before[0].first[0].gradients
        assert "detach" in (tmp_path / "train.py").read_text()
        await press(pilot, "v")
        await see(pilot, "verified  the program trains with this change")
        await press(pilot, "u")
        assert (tmp_path / "train.py").read_text() == CARRIED
        assert session.to_look is None


async def test_v_right_behind_a(tmp_path) -> None:
    """While the program still runs as it is, for gradients to hold the edit against: it is verified once the edit is written."""
    pytest.importorskip("torch")
    (tmp_path / "train.py").write_text(CARRIED)
    async with opened(tmp_path, command=python("train.py"), size=WIDE) as pilot:
        await see(pilot, "backward/state-carried-across-steps")
        await pilot.press("f", "a")
        await until(pilot, lambda: bool(pilot.app.doing), "the look")
        await pilot.press("v")
        await hear(pilot, "verified as soon as it is written")
        await settle(pilot)
        await see(pilot, "verified  the program trains with this change")
        assert "detach" in (tmp_path / "train.py").read_text()


@pytest.mark.slow
async def test_a_look_that_is_stopped_writes_nothing(tmp_path) -> None:
    """x while the program runs before the edit: it ends, the file is as it was, and a asks again."""
    pytest.importorskip("torch")
    (tmp_path / "train.py").write_text(CARRIED)
    async with opened(tmp_path, command=python("train.py"), size=WIDE) as pilot:
        await see(pilot, "backward/state-carried-across-steps")
        await pilot.press("f", "a")
        await until(pilot, lambda: bool(pilot.app.doing), "the look")
        await press(pilot, "x")
        await see(pilot, "stopped")
        assert (tmp_path / "train.py").read_text() == CARRIED
        assert pilot.app.session.to_look
