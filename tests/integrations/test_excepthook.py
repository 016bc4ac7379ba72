"""`gradfix.install()`: the traceback as ever, and below it the finding."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from tests.conftest import PATH

MESSAGE = "element 0 of tensors does not require grad and does not have a grad_fn"
OWN_HOOK = "import sys\nsys.excepthook = lambda *_: print('own hook', file=sys.stderr)\n"
PROGRAMS = {
    "uncaught": (f"import gradfix\ngradfix.install()\nraise RuntimeError('{MESSAGE}')\n", 1, "RuntimeError: element 0"),
    "twice installed": (f"import gradfix\ngradfix.install()\ngradfix.install()\nraise RuntimeError('{MESSAGE}')\n", 1, "RuntimeError"),
    "over a hook of the program": (f"{OWN_HOOK}import gradfix\ngradfix.install()\nraise RuntimeError('{MESSAGE}')\n", 1, "own hook"),
    "in a thread": (
        "import gradfix, threading\ngradfix.install()\n"
        f"def f():\n    raise RuntimeError('{MESSAGE}')\nt = threading.Thread(target=f)\nt.start()\nt.join()\n", 0, "RuntimeError",
    ),
}  # fmt: skip


def run(text: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": PATH}
    return subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, env=environment)


@pytest.mark.parametrize(("text", "status", "first"), PROGRAMS.values(), ids=PROGRAMS.keys())
def test_the_finding_stands_below(text: str, status: int, first: str) -> None:
    """The usual output comes first, the card once after it, the exit status is the program's."""
    done = run(text)
    assert done.returncode == status
    assert done.stderr.index(first) < done.stderr.index("no-graph/")
    assert done.stderr.count("likely (") + done.stderr.count("possible (") == 1


@pytest.mark.parametrize("raised", ["ValueError('nothing that is known')", "SystemExit(3)", "KeyboardInterrupt()"])
def test_nothing_is_added(raised: str) -> None:
    """What no rule knows, an exit and an interrupt are left as they are."""
    with_it, without = run(f"import gradfix\ngradfix.install()\nraise {raised}\n"), run(f"pass\npass\nraise {raised}\n")
    assert with_it.stderr == without.stderr
    assert with_it.returncode == without.returncode


@pytest.mark.parametrize(("rank", "times"), [("0", "seen before: 2 times since"), ("3", "seen before: once, on")])
def test_a_failure_that_was_seen_before(tmp_path, monkeypatch, rank: str, times: str) -> None:
    """Each uncaught one counts, those of other ranks are told of it and not counted."""
    monkeypatch.setenv("GRADFIX_STATE_DIR", str(tmp_path))
    monkeypatch.setenv("GRADFIX_NO_MEMORY", "0")
    failing = f"import gradfix\ngradfix.install()\nraise RuntimeError('{MESSAGE}')\n"
    assert "seen before" not in run(failing).stderr
    monkeypatch.setenv("RANK", rank)
    assert "seen before: once, on" in run(failing).stderr
    assert times in run(failing).stderr
