"""Errors: a line on standard error always, and a JSON object on standard output where JSON was asked for."""

from __future__ import annotations

import json
import os
import pathlib
import subprocess
import sys

import pytest

from explainer.cli.failure import wants_json
from tests.conftest import PATH

FAILING = {
    "a log that is not there": (["explain", "none.log", "--format", "json"], 2, "none.log"),
    "a folder without logs": (["explain", ".", "--format=json"], 2, "no log in this folder"),
    "rules that are not there": (["explain", "a.log", "--knowledge", "none", "--format", "json"], 2, "none"),
    "an option that is not there": (["fix", "a.log", "--format", "json", "--quick"], 2, "--quick"),
    "a value that is not there": (["explain", "a.log", "--format", "json", "--top", "many"], 2, "--top"),
    "an edit that is not there": (["fix", "a.log", "--format", "json", "--fix", "nothing-such", "--no-probe"], 2, "nothing-such"),
    "a program that is not there": (["run", "--format", "json", "--", "no-such-program"], 2, "no-such-program"),
    "a program that cannot be verified": (["verify", "--format", "json", "--", "no-such-program"], 2, "no-such-program"),
    "a report that is not there": (["verify", "--format", "json", "--against", "none.json", "--", "true"], 2, "none.json"),
    "a family that is not there": (["rules", "list", "nothing", "--format", "json"], 2, "no family"),
}  # fmt: skip
ASKED = {
    "two words": ["explain", "a.log", "--format", "json"],
    "one word": ["run", "--format=json", "--", "python"],
    "after a value": ["verify", "--steps", "3", "--format", "json", "python"],
    "after a switch": ["run", "--fix", "--format", "json", "python"],
}
NOT_ASKED = {
    "nothing": ["explain", "a.log"],
    "another format": ["explain", "--format", "html", "json"],
    "the program's own": ["run", "--", "tool", "--format", "json"],
    "the program's own, without dashes": ["run", "--fix", "tool", "--format", "json"],
    "no words": [],
}


@pytest.mark.parametrize("words", NOT_ASKED.values(), ids=NOT_ASKED)
def test_text_is_asked_for(words: list[str]) -> None:
    """What a program is given is not for us."""
    assert not wants_json(words)


@pytest.mark.parametrize("words", ASKED.values(), ids=ASKED)
def test_json_is_asked_for(words: list[str]) -> None:
    """In either spelling, among options of any kind."""
    assert wants_json(words)


def gradfix(*words: str, cwd: pathlib.Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "gradfix", *words]
    environment = {**os.environ, "PYTHONPATH": PATH, "GRADFIX_STATE_DIR": str(cwd / "state")}
    return subprocess.run(command, capture_output=True, text=True, cwd=cwd, env=environment)


@pytest.mark.parametrize(("words", "status", "says"), FAILING.values(), ids=FAILING)
def test_an_error_is_an_object(tmp_path, words: list[str], status: int, says: str) -> None:
    """One line, with the message and the exit status; the message on standard error is the same."""
    folder = tmp_path / "project"
    folder.mkdir()
    if "." not in words:
        (folder / "a.log").write_text("RuntimeError: grad can be implicitly created only for scalar outputs\n")
    done = gradfix(*words, cwd=folder)
    answer = json.loads(done.stdout)
    assert (answer["schema"], answer["exit"], done.returncode) == ("gradfix.error/1", status, status)
    assert says in answer["error"]
    assert done.stderr.startswith("gradfix: ")
    assert len(done.stderr.splitlines()) == 1


def test_an_error_in_words(tmp_path) -> None:
    """Without JSON standard output stays empty."""
    done = gradfix("explain", "none.log", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")


@pytest.mark.parametrize(
    "words", [["run", "--", "true"], ["explain"], ["verify", "--", "true"]], ids=lambda words: words[0]
)
def test_a_folder_that_was_deleted(tmp_path: pathlib.Path, words: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """One line that says what to do, whatever asked for the folder first."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "gone").mkdir()
    command = f"cd gone && rmdir ../gone && echo 'RuntimeError: x' | {sys.executable} -m gradfix {' '.join(words)}"
    environment = {**os.environ, "PYTHONPATH": PATH, "GRADFIX_STATE_DIR": str(tmp_path / "state")}
    ended = subprocess.run(["bash", "-c", command], capture_output=True, text=True, env=environment)
    assert ended.returncode == 2
    assert ended.stderr.splitlines()[-1] == "gradfix: the current folder has been deleted: change to another one"
