"""From a log: open, explain, fix, apply, undo; and every way in which that can fail."""

from __future__ import annotations

import os
import subprocess

import pytest

from explainer.errors import Stopped
from explainer.tui.app import GradfixApp
from explainer.tui.session import Options
from explainer.tui.worker.reading import Reading
from tests.tui.conftest import WIDE, copy_example, hear, opened, press, see, settle, shown, until

UNREADABLE = {
    "a missing file": (None, "no such file"),
    "an empty file": (b"", "the input is empty"),
    "no text": (b"\x7fELF\x00\x01\x02" * 100, "not a log"),
}


@pytest.mark.parametrize(("data", "said"), UNREADABLE.values(), ids=UNREADABLE.keys())
@pytest.mark.asyncio
async def test_an_input_that_cannot_be_read(tmp_path, data, said) -> None:
    """It is named, with what to do; the other screens work."""
    if data is not None:
        (tmp_path / "train.log").write_bytes(data)
    async with opened(tmp_path, "train.log") as pilot:
        await see(pilot, said)
        await see(pilot, "gradfix ui train.log")
        await press(pilot, "f", "5")
        await hear(pilot, "nothing is explained yet")
        assert pilot.app.pane("rules").chosen


@pytest.mark.asyncio
async def test_rules_that_cannot_be_used(project) -> None:
    """A folder of rules that is not there is named."""
    async with opened(project, "train.log", knowledge="/nowhere") as pilot:
        await see(pilot, "/nowhere: no such folder of rules")


@pytest.mark.asyncio
async def test_nothing_to_explain(project) -> None:
    """Without a log it says how to give one."""
    async with opened(project) as pilot:
        await see(pilot, "gradfix ui -- python train.py")
        await press(pilot, "f", "v", "escape", "u", "t", "a", "c")
        await hear(pilot, "nothing to copy")


@pytest.mark.asyncio
async def test_a_failure_that_is_not_recognised(tmp_path) -> None:
    """It says so, and what to do next."""
    (tmp_path / "train.log").write_text("Traceback (most recent call last):\nLookupError: no such flavour of quark\n")
    async with opened(tmp_path, "train.log") as pilot:
        await see(pilot, "the cause is not known")


@pytest.mark.asyncio
async def test_advice_is_not_applied(project) -> None:
    """A fix without an edit says what it is; the file stays."""
    before = (project / "train.py").read_bytes()
    async with opened(project, "train.log") as pilot:
        await press(pilot, "f", "right_square_bracket")
        await see(pilot, "advice, to be done by hand")
        await press(pilot, "a")
        await hear(pilot, "this fix is advice")
    assert (project / "train.py").read_bytes() == before


@pytest.mark.asyncio
async def test_an_unsafe_fix_asks(tmp_path) -> None:
    """No leaves the file alone, and so does enter; yes applies it."""
    project = copy_example("mistral-mask", tmp_path)
    before = (project / "train.py").read_bytes()
    async with opened(project, "train.log") as pilot:
        await press(pilot, "f", "right_square_bracket", "a")
        await see(pilot, "changes memory, speed or training")
        await press(pilot, "n", "a", "enter")
        assert (project / "train.py").read_bytes() == before
        await press(pilot, "a", "y")
        assert b"checkpoint(" not in (project / "train.py").read_bytes()


@pytest.mark.asyncio
async def test_explained_applied_undone(project) -> None:
    """f shows the diff, a writes it, u gives the bytes back."""
    before = (project / "train.py").read_bytes()
    async with opened(project, "train.log") as pilot:
        await see(pilot, "inplace/cache-updated-in-training")
        await see(pilot, "17 ▌         logits = model(token, input_pos)")
        await press(pilot, "f")
        await see(pilot, "17 +         logits = model(token, input_pos=None)")
        assert (project / "train.py").read_bytes() == before
        await press(pilot, "a")
        assert b"input_pos=None" in (project / "train.py").read_bytes()
        await press(pilot, "a")
        assert len(pilot.app.session.applied) == 1
        await press(pilot, "u")
    assert (project / "train.py").read_bytes() == before


@pytest.mark.asyncio
async def test_a_file_that_changed_since(project) -> None:
    """Nothing is written over it; the edit is planned anew, and then applies."""
    train = project / "train.py"
    async with opened(project, "train.log") as pilot:
        train.write_text(train.read_text() + "# mine\n")
        await press(pilot, "f", "a")
        await hear(pilot, "has changed since")
        assert "input_pos=None" not in train.read_text()
        await until(pilot, lambda: not pilot.app.is_busy)
        await press(pilot, "f", "a")
        assert train.read_text().endswith("# mine\n")
        assert "input_pos=None" in train.read_text()


@pytest.mark.asyncio
async def test_an_undo_that_is_refused(project) -> None:
    """A file that changed since is left alone; the history shows the change that stands in the way."""
    train = project / "train.py"
    async with opened(project, "train.log", size=WIDE) as pilot:
        await press(pilot, "f", "a")
        train.write_text(train.read_text() + "# mine\n")
        now = train.read_bytes()
        await press(pilot, "u")
        await hear(pilot, "has changed since")
        await see(pilot, "+ # mine")
        assert pilot.app.at == "history"
    assert train.read_bytes() == now


@pytest.mark.asyncio
async def test_undo_of_an_earlier_session(project) -> None:
    """The history undoes what was applied before this session."""
    before = (project / "train.py").read_bytes()
    async with opened(project, "train.log") as pilot:
        await press(pilot, "f", "a")
    async with opened(project) as pilot:
        await press(pilot, "4")
        await see(pilot, "applied")
        await press(pilot, "u")
        await see(pilot, "undone")
    assert (project / "train.py").read_bytes() == before


@pytest.mark.asyncio
async def test_a_fix_that_is_edited_first(project) -> None:
    """What does not parse is refused; what does is applied as the person wrote it."""
    from textual.widgets import TextArea

    async with opened(project, "train.log") as pilot:
        await press(pilot, "f", "E")
        area = pilot.app.screen.query_one(TextArea)
        assert area.cursor_location[0] == 16
        area.text = area.text.replace("input_pos=None", "(")
        await press(pilot, "ctrl+s")
        await hear(pilot, "does not parse")
        pilot.app.clear_notifications()
        await press(pilot, "E")
        area = pilot.app.screen.query_one(TextArea)
        area.text = area.text.replace("input_pos=None", "None")
        await press(pilot, "ctrl+s")
        await see(pilot, "model(token, None)")
        await press(pilot, "a")
    assert "model(token, None)" in (project / "train.py").read_text()


@pytest.mark.asyncio
async def test_an_edit_that_is_given_up(project) -> None:
    """Escape leaves the fix as it was planned."""
    async with opened(project, "train.log") as pilot:
        await press(pilot, "f", "E")
        await until(pilot, lambda: pilot.app.screen.query("TextArea"), "the editor")
        await press(pilot, "x", "escape")
        await see(pilot, "input_pos=None")


@pytest.mark.asyncio
async def test_several_failures(tmp_path) -> None:
    """The last one is shown; ( and ) go through them."""
    one = 'Traceback (most recent call last):\n  File "a.py", line 1, in <module>\n    f()\nRuntimeError: {}\n\n'
    texts = (
        "grad can be implicitly created only for scalar outputs",
        "Trying to backward through the graph a second time",
    )
    between = "{'loss': 2.31, 'grad_norm': 1.2, 'learning_rate': 1e-05, 'epoch': 0.5}\n"
    (tmp_path / "train.log").write_text(between.join(one.format(text) for text in texts))
    async with opened(tmp_path, "train.log") as pilot:
        await see(pilot, "failure 2 of 2")
        await press(pilot, "left_parenthesis")
        await see(pilot, "scalar outputs")
        await press(pilot, "left_parenthesis", "right_parenthesis")
        await see(pilot, "a second time")


@pytest.mark.asyncio
async def test_secrets_are_masked(tmp_path) -> None:
    """A token in a log is not shown, and not copied."""
    (tmp_path / "train.log").write_text(
        "Traceback (most recent call last):\nOSError: token hf_AbCdEfGhIjKlMnOpQrSt is not valid\n"
    )
    async with opened(tmp_path, "train.log") as pilot:
        await see(pilot, "***")
        assert "hf_AbCd" not in shown(pilot)
        await press(pilot, "c")
        assert "hf_AbCd" not in pilot.app.clipboard


LINE = "[rank0]: step 1234 loss 0.1234 | throughput 123.4 it/s | RuntimeError? {'loss': 0.12, 'grad_norm': 1.0}"
END = b"RuntimeError: grad can be implicitly created only for scalar outputs\n"


@pytest.mark.asyncio
async def test_a_hundred_megabytes(tmp_path) -> None:
    """Keys answer while a log flows in without end; 100 MB of it later its end is explained."""
    ours, theirs = os.pipe()
    writer = subprocess.Popen(["yes", LINE], stdout=theirs)
    app = GradfixApp(Options(root=str(tmp_path), source="-", stream=ours, probe=False))
    async with app.run_test(size=(80, 24), notifications=True) as pilot:
        await until(pilot, lambda: app._reading is not None and app._reading.read > 0)
        app.simulate_key("question_mark")
        await until(pilot, lambda: type(app.screen).__name__ == "Help")
        app.simulate_key("escape")
        app.simulate_key("5")
        await until(pilot, lambda: app.has_shown("rules") and app.pane("rules").chosen is not None)
        app.simulate_key("1")
        await until(pilot, lambda: "reading standard input" in shown(pilot) and app._reading.read > 100_000_000)
        writer.kill()
        writer.wait()
        os.write(theirs, b"\n" + END)
        os.close(theirs)
        await settle(pilot)
        await see(pilot, "backward/non-scalar-loss")


def test_a_file_whose_reading_is_stopped(tmp_path) -> None:
    """It ends at the next piece; nothing of it is explained."""
    (tmp_path / "train.log").write_bytes(END)
    reading = Reading(str(tmp_path / "train.log"), None)
    reading.stop()
    with pytest.raises(Stopped):
        reading.incidents()


@pytest.mark.asyncio
async def test_a_pipe_that_stays_silent(tmp_path) -> None:
    """What has come is shown; x explains it without waiting for more."""
    ours, theirs = os.pipe()
    os.write(theirs, b"epoch 1\nRuntimeError: grad can be implicitly created only for scalar outputs\n")
    app = GradfixApp(Options(root=str(tmp_path), source="-", stream=ours, probe=False))
    async with app.run_test(size=(80, 24), notifications=True) as pilot:
        await until(pilot, lambda: "epoch 1" in shown(pilot))
        await press(pilot, "x")
        await see(pilot, "backward/non-scalar-loss")
    os.close(theirs)
