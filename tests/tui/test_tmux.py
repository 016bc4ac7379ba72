"""In tmux, by keys alone: an example is run, explained, fixed, verified and undone; a repair that turns red is taken back."""

from __future__ import annotations

import os
import pathlib
import shlex
import shutil
import subprocess
import sys
import time
import uuid

import pytest

from tests.conftest import PATH
from tests.knowledge.repaired import difference, first_gradients
from tests.test_examples import SEEDS, load  # noqa: F401 - a fixture

pytestmark = [pytest.mark.torch, pytest.mark.skipif(shutil.which("tmux") is None, reason="tmux is not here")]
GRADFIX = f"{shlex.quote(sys.executable)} -m gradfix"
TRAIN = f"{shlex.quote(sys.executable)} train.py"
PATIENCE = 120.0


class Tmux:
    """A terminal of 80 by 24 in which a person types."""

    def __init__(self, folder: pathlib.Path, command: str) -> None:
        self._name = f"gradfix-{uuid.uuid4().hex[:8]}"
        self.keys = 0
        path = f"{os.path.dirname(sys.executable)}:{os.environ['PATH']}"
        variables = {
            "PATH": path,
            "PYTHONPATH": PATH,
            "HF_HUB_OFFLINE": "1",
            "OMP_NUM_THREADS": "1",
            "TEXTUAL_ANIMATIONS": "none",
        }
        given = " ".join(f"{name}={shlex.quote(value)}" for name, value in variables.items())
        line = f"cd {shlex.quote(str(folder))}; export {given}; {command}; echo status=$?; exec sleep 600"
        self._do("-f", "/dev/null", "new-session", "-d", "-x", "80", "-y", "24", "bash", "--norc", "-c", line)

    def _do(self, *words: str) -> str:
        return subprocess.run(["tmux", "-L", self._name, *words], check=True, capture_output=True, text=True).stdout

    def screen(self) -> str:
        """What is to be seen."""
        return self._do("capture-pane", "-p")

    def press(self, *keys: str) -> None:
        """Press keys; they are counted."""
        self.keys += len(keys)
        self._do("send-keys", *keys)

    def type(self, text: str) -> None:
        """Type a text."""
        self._do("send-keys", "-l", text)

    def wait(self, *texts: str) -> str:
        """Wait until all of these are to be seen; the screen then."""
        until = time.monotonic() + PATIENCE
        while time.monotonic() < until:
            screen = self.screen()
            if all(text in screen for text in texts):
                return screen
            time.sleep(0.1)
        raise AssertionError(f"{texts} was not to be seen:\n{screen}")

    def close(self) -> None:
        """End it with all that runs in it."""
        subprocess.run(["tmux", "-L", self._name, "kill-server"], capture_output=True)


@pytest.fixture
def terminal(project):
    """Opens the interface in tmux; the terminal is closed afterwards."""
    pytest.importorskip("torch")
    opened: list[Tmux] = []

    def open_one(command: str) -> Tmux:
        # What the fixtures of this folder set is not in the environment of a tmux server that is started elsewhere.
        names = ("GRADFIX_STATE_DIR", "XDG_CONFIG_HOME")
        given = " ".join(f"{name}={shlex.quote(os.environ[name])}" for name in names)
        opened.append(Tmux(project, f"export {given}; {command}"))
        return opened[-1]

    yield open_one
    for one in opened:
        one.close()


def test_run_explained_fixed_verified_undone(terminal, project, load) -> None:  # noqa: F811
    """Four keys lead from the failure to `verified`; the gradients are the reference's; u gives the bytes back."""
    train = project / "train.py"
    before = train.read_bytes()
    tmux = terminal(f"{GRADFIX} ui --no-probe -- {TRAIN}")
    tmux.wait("inplace/cache-updated-in-training", "f Fix")
    tmux.press("f")
    tmux.wait("17 +", "model(token, input_pos=None)")
    assert train.read_bytes() == before
    tmux.press("a")
    tmux.wait("v verifies it")
    tmux.press("v")
    tmux.wait("verified  the program trains with this change", "GPT.lm_head")
    assert tmux.keys == 3
    assert b"model(token, input_pos=None)" in train.read_bytes()
    assert_trains_as_the_reference(project, load)
    tmux.press("u")
    tmux.wait("taken back")
    assert train.read_bytes() == before
    tmux.press("q")
    tmux.wait("status=0")


def assert_trains_as_the_reference(project: pathlib.Path, load) -> None:  # noqa: F811
    """The first gradients of the program are those of the example's reference."""
    wanted = SEEDS["mini-omni-cache"].reference(load(project))
    got = first_gradients(project / "train.py")
    assert not isinstance(got, str), got
    names = [f"optimizer 1 group 0 parameter {at}" for at in range(len(wanted))]
    assert difference(got, {name: one.double().numpy() for name, one in zip(names, wanted, strict=True)}, 1e-4) == ""


@pytest.mark.slow
def test_red_is_taken_back(terminal, project) -> None:
    """A fix that a person has spoilt turns red: the screen says why, and u gives the bytes back."""
    train = project / "train.py"
    before = train.read_bytes()
    tmux = terminal(f"{GRADFIX} ui --no-probe train.log")
    tmux.wait("inplace/cache-updated-in-training", "f Fix")
    tmux.press("f", "E")
    tmux.wait("Take this text", "model(token, input_pos=None)")
    # At the start of the line: a key that moves the cursor overtakes letters that come in one burst with it.
    tmux.type("        model.lm_head.weight.data.fill_(float('nan'))")
    tmux.press("Enter")
    tmux.wait("17          model.lm_head", "18          logits")
    tmux.press("C-s")
    tmux.wait("17 +         model.lm_head", "a Apply")
    tmux.press("a")
    tmux.wait("v verifies it")
    tmux.press("v")
    tmux.wait("How is the program started?", "train.py")
    tmux.press("Enter")
    tmux.wait("red", "is nan", "u takes the edit back")
    assert train.read_bytes() != before
    tmux.press("u")
    tmux.wait("taken back")
    assert train.read_bytes() == before


def test_from_a_pipe(terminal, project) -> None:
    """The program's own output comes through the pipe; the keys are the terminal's."""
    before = (project / "train.py").read_bytes()
    tmux = terminal(f"{TRAIN} 2>&1 | {GRADFIX} ui --no-probe -")
    tmux.wait("inplace/cache-updated-in-training", "standard input", "f Fix")
    tmux.press("f")
    tmux.wait("a applies it")
    tmux.press("a")
    tmux.wait("v verifies it")
    tmux.press("u")
    tmux.wait("a applies it")
    assert (project / "train.py").read_bytes() == before
    tmux.press("q")
    tmux.wait("status=0")
