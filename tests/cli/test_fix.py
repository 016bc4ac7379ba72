"""`gradfix fix`, `undo` and `history` as their user meets them."""

from __future__ import annotations

import json
import os
import pathlib
import shutil
import subprocess

import pytest

from tests.cli.test_command_line import LOG, UNKNOWN, gradfix
from tests.conftest import ROOT

SHAPE = ROOT / "knowledge" / "inplace" / "op-on-saved-tensor" / "inplace-activation"
PRINTED = (SHAPE / "printed" / "2.13.0.txt").read_text().partition("\n")[2]
BROKEN, FIXED = (SHAPE / "broken.py").read_bytes(), (SHAPE / "fixed.py").read_bytes()


@pytest.fixture
def project(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> pathlib.Path:
    """A project with a failing program, its log beside the project, and a state folder of its own."""
    monkeypatch.setenv("GRADFIX_STATE_DIR", str(tmp_path / "state"))
    (tmp_path / "train.log").write_text(PRINTED)
    (tmp_path / "scalar.log").write_text(LOG)
    (tmp_path / "unknown.log").write_text(UNKNOWN)
    (tmp_path / "project").mkdir()
    (tmp_path / "project" / "broken.py").write_bytes(BROKEN)
    return tmp_path / "project"


def fix(project: pathlib.Path, *words: str, log: str = "../train.log", **named) -> subprocess.CompletedProcess:
    return gradfix("fix", log, "--no-probe", *words, cwd=project, **named)


WRONG = {
    "no log": (["../missing.log"], 2, "missing.log: no such file"),
    "an unknown fix": (["../train.log", "--fix", "nonsense"], 2, "--fix nonsense: not found here; there are inplace-"),
    "an unknown cause": (["../train.log", "--cause", "a/b"], 2, "--cause a/b: not found here; there are inplace/"),
    "no such root": (["../train.log", "--root", "gone"], 2, "gone: no such folder"),
    "show and write": (["../train.log", "--diff", "--apply"], 2, "give one of them"),
    "a format that is not there": (["../train.log", "--format", "html"], 2, "html"),
    "not recognised": (["../unknown.log"], 1, "nothing to fix: "),
    "no line to cure": (["../train.log", "--root", ".."], 1, "nothing to fix: "),
    "no edit for it": (["../scalar.log"], 1, "nothing to fix: backward/non-scalar-loss: "),
    "advice": (["../train.log", "--apply", "--fix", "clone-before-write"], 1, "nothing to fix: "),
}


@pytest.mark.parametrize(("words", "status", "message"), WRONG.values(), ids=WRONG.keys())
def test_nothing_is_done(project: pathlib.Path, words: list[str], status: int, message: str) -> None:
    """A mistake or a failure without an edit is one line on standard error, and no file changes."""
    if "--root" in words and words[-1] == "..":
        shutil.move(project / "broken.py", project / "moved.py")
    run = gradfix("fix", *words, "--no-probe", cwd=project)
    assert (run.returncode, run.stderr.decode().count("\n")) == (status, 1), run.stderr
    assert message in run.stderr.decode()
    assert next(project.iterdir()).read_bytes() == BROKEN


def test_refused(project: pathlib.Path) -> None:
    """A file with a second name is refused: status 4, one line."""
    os.link(project / "broken.py", project.parent / "other-name.py")
    run = fix(project, "--apply")
    assert run.returncode == 4
    assert run.stderr.startswith(b"gradfix: refused: broken.py has 2 hard links")
    answer = json.loads(fix(project, "--apply", "--format", "json").stdout)
    assert (answer["status"], answer["applied"]) == ("refused", None)


def test_a_file_without_write_permission(project: pathlib.Path) -> None:
    """It is replaced like any other where its folder may be written, and keeps its mode."""
    (project / "broken.py").chmod(0o444)
    assert fix(project, "--apply").returncode == 0
    assert (project / "broken.py").stat().st_mode & 0o777 == 0o444


UNDO_WRONG = {
    "nothing was applied": (["undo"], 4, "refused: no patch is applied in this project"),
    "all of nothing": (["undo", "--all"], 4, "refused: no patch is applied in this project"),
    "no such id": (["undo", "abc"], 2, "no patches with the id 'abc'"),
    "an id and all": (["undo", "abc", "--all"], 2, "not both"),
    "an empty history": (["history"], 0, "no patch was applied to this project"),
}


@pytest.mark.parametrize(("words", "status", "message"), UNDO_WRONG.values(), ids=UNDO_WRONG.keys())
def test_nothing_to_undo(project: pathlib.Path, words: list[str], status: int, message: str) -> None:
    """Where there is nothing to take back, one line says so."""
    run = gradfix(*words, cwd=project)
    assert (run.returncode, run.stderr.decode().count("\n"), run.stdout) == (status, 1, b"")
    assert message in run.stderr.decode()


def test_shown(project: pathlib.Path) -> None:
    """By itself it shows: the cause, the fix, the diff, what to type next; no file changes and nothing is stored."""
    run = fix(project)
    text = run.stdout.decode()
    assert (run.returncode, run.stderr) == (0, b"")
    assert "\n-    nn.ReLU(inplace=True),\n+    nn.ReLU(inplace=False),\n" in text
    assert text.endswith("apply inplace-false: gradfix fix ../train.log --apply\n")
    assert (project / "broken.py").read_bytes() == BROKEN
    assert not (project.parent / "state").exists()


@pytest.mark.skipif(shutil.which("patch") is None, reason="needs the program `patch`")
def test_a_shown_diff_is_a_patch(project: pathlib.Path) -> None:
    """What goes into a pipe is what `patch` applies."""
    (project / "broken.py").write_bytes(BROKEN.replace(b"\n", b"\r\n"))
    diff = fix(project, "--fix", "inplace-false").stdout
    subprocess.run(["patch", "-p1", "--binary"], input=diff, cwd=project, check=True, capture_output=True)
    assert (project / "broken.py").read_bytes() == FIXED.replace(b"\n", b"\r\n")


COLOUR = {
    "a pipe": ({}, [], False),
    "no colour": ({"NO_COLOR": "1", "FORCE_COLOR": "1"}, [], False),
    "asked for": ({"NO_COLOR": "1"}, ["--color", "always"], True),
}


@pytest.mark.parametrize(("variables", "words", "is_coloured"), COLOUR.values(), ids=COLOUR.keys())
def test_colour(project: pathlib.Path, variables: dict, words: list[str], is_coloured: bool) -> None:
    """A diff is coloured where the terminal or the option says so."""
    run = fix(project, *words, **variables)
    assert (b"\x1b[32m+    nn.ReLU(inplace=False),\x1b[0m\n" in run.stdout) is is_coloured


def test_applied_and_undone(project: pathlib.Path) -> None:
    """--apply writes and says how to take it back; undo does, byte for byte; the history keeps both."""
    applied = fix(project, "--apply")
    assert (applied.returncode, applied.stderr, (project / "broken.py").read_bytes()) == (0, b"", FIXED)
    hint = applied.stdout.decode().splitlines()[-1]
    assert hint.startswith("undo: gradfix undo ")
    (line,) = gradfix("history", cwd=project).stdout.decode().splitlines()
    assert line.split()[3:] == ["applied", "inplace/op-on-saved-tensor", "inplace-false", "broken.py"]
    undone = gradfix(*hint.split()[2:], cwd=project.parent)
    assert (undone.returncode, (project / "broken.py").read_bytes()) == (0, BROKEN)
    (record,) = json.loads(gradfix("history", "--format", "json", cwd=project).stdout)["records"]
    assert (record["state"], record["files"]) == ("undone", ["broken.py"])
    assert [path.name for path in project.iterdir()] == ["broken.py"]


def test_twice_is_once(project: pathlib.Path) -> None:
    """A second time there is nothing left to fix."""
    fix(project, "--apply")
    assert fix(project, "--apply").returncode == 1
    assert (project / "broken.py").read_bytes() == FIXED


def test_undo_from_below_and_of_all(project: pathlib.Path) -> None:
    """A folder inside the project knows its journal; --all takes back what it can."""
    (project / "src").mkdir()
    fix(project, "--apply")
    run = gradfix("undo", "--all", cwd=project / "src")
    assert (run.returncode, (project / "broken.py").read_bytes()) == (0, BROKEN)


def test_undo_of_a_changed_file(project: pathlib.Path) -> None:
    """A file that changed since is left alone: status 4, the reason, the change."""
    fix(project, "--apply")
    (project / "broken.py").write_bytes(FIXED + b"x = 1\n")
    run = gradfix("undo", cwd=project)
    assert (run.returncode, b"+x = 1\n" in run.stdout, run.stderr.count(b"\n")) == (4, True, 1)
    assert (project / "broken.py").read_bytes() == FIXED + b"x = 1\n"


def test_standard_input(project: pathlib.Path) -> None:
    """A pipe ends in a patch; JSON goes alone to standard output."""
    run = fix(project, "--apply", "--format", "json", log="-", stdin=PRINTED)
    answer = json.loads(run.stdout)
    assert (answer["schema"], answer["status"], answer["applied"]["files"]) == (
        "gradfix.fix/1",
        "applied",
        ["broken.py"],
    )
    assert (project / "broken.py").read_bytes() == FIXED


def test_secrets_in_a_diff(project: pathlib.Path) -> None:
    """A token beside the edit does not get out, unless asked for; the file keeps it."""
    secret = b"    nn.Tanh(),  # hf_AbCdEfGhIjKlMnOpQrSt\n"
    (project / "broken.py").write_bytes(BROKEN.replace(b"    nn.Tanh(),\n", secret))
    assert b"hf_AbCd" not in fix(project).stdout
    assert b"hf_AbCd" in fix(project, "--no-mask").stdout
    fix(project, "--apply")
    assert secret in (project / "broken.py").read_bytes()


CELLS = {
    "Cell In[2]": ["import torch\n", "from torch import nn\n", "model = nn.Sequential(nn.Linear(6, 8), nn.Tanh(), nn.ReLU(inplace=True))"],
    "Cell In[3]": "def step(x):\n    loss = model(x).sum()\n    loss.backward()\n    return loss",
    "Cell In[4]": ["%time\n", "x = torch.randn(4, 6)\n", "step(x)"],
}  # fmt: skip
TRACEBACK = [
    "---------------------------------------------------------------------------",
    "RuntimeError                              Traceback (most recent call last)",
    "Cell In[4], line 3\n      1 get_ipython().run_line_magic('time', '')\n      2 x = torch.randn(4, 6)\n----> 3 step(x)\n",
    "Cell In[3], line 3, in step(x)\n      1 def step(x):\n      2     loss = model(x).sum()\n----> 3     loss.backward()\n      4     return loss\n",
    PRINTED.splitlines()[-1],
]


def test_a_notebook(project: pathlib.Path) -> None:
    """The cell that is guilty changes, though another one failed; every other byte of the notebook stays; undo works."""
    cells = [
        {"cell_type": "code", "execution_count": int(name[8]), "metadata": {}, "source": source, "outputs": []}
        for name, source in CELLS.items()
    ]
    cells[2]["outputs"] = [
        {"output_type": "error", "ename": "RuntimeError", "evalue": TRACEBACK[-1][14:], "traceback": TRACEBACK}
    ]
    text = json.dumps({"cells": [{"cell_type": "markdown", "source": "# é"}, *cells], "nbformat": 4}, indent=1)
    (project / "nb.ipynb").write_text(text)
    shown = fix(project, log="nb.ipynb").stdout.decode()
    assert "--- a/nb.ipynb Cell In[2]\n" in shown
    assert fix(project, "--apply", log="nb.ipynb").returncode == 0
    assert (project / "nb.ipynb").read_text() == text.replace("inplace=True", "inplace=False")
    assert gradfix("undo", cwd=project).returncode == 0
    assert (project / "nb.ipynb").read_text() == text


def test_a_damaged_record(project: pathlib.Path) -> None:
    """A record that cannot be read is named, and the others serve as before."""
    fix(project, "--apply")
    (record,) = (project.parent / "state").rglob("*.json")
    (record.parent / "000000.json").write_text('{"schema": "gradfix.journal/1"')
    run = gradfix("history", cwd=project)
    assert (run.returncode, run.stdout.count(b"\n")) == (0, 1)
    assert run.stderr.decode() == f"gradfix: {record.parent}/000000.json: this record cannot be read\n"
    assert gradfix("undo", cwd=project).returncode == 0
    assert (project / "broken.py").read_bytes() == BROKEN


@pytest.mark.parametrize("command", ["fix", "undo", "history"])
def test_help(command: str) -> None:
    """Each command shows examples of its use."""
    text = gradfix(command, "--help").stdout.decode()
    assert f"Examples:\n    gradfix {command}" in text


def test_completion() -> None:
    """The shell completes the options."""
    variables = {"_GRADFIX_COMPLETE": "complete_bash", "COMP_WORDS": "gradfix fix --un", "COMP_CWORD": "2"}
    assert os.fsdecode(gradfix(**variables).stdout).split() == ["--unsafe-fixes"]
