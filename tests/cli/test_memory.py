"""What users see of the memory: earlier sightings on the card, the history, the ways to be rid of it."""

from __future__ import annotations

import json
import os
import pathlib
import re
import sqlite3
import stat
import subprocess
import sys

import pytest

from tests.cli.test_fix import BROKEN, PRINTED
from tests.conftest import PATH

SECRET = "hf_abcdefghijklmnopqrstuvwxyz0123"
SEEN = re.compile(r"^seen before: .*$", re.MULTILINE)


@pytest.fixture
def project(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> pathlib.Path:
    """A project with a failing program, a log of it, and a memory of its own."""
    monkeypatch.setenv("GRADFIX_STATE_DIR", str(tmp_path / "state"))
    monkeypatch.setenv("GRADFIX_NO_MEMORY", "0")
    (tmp_path / "p").mkdir()
    (tmp_path / "p" / "broken.py").write_bytes(BROKEN)
    (tmp_path / "p" / "train.log").write_text(PRINTED)
    (tmp_path / "p" / "other.log").write_text("step 7 of another run\n" + PRINTED)
    return tmp_path / "p"


def gradfix(folder: pathlib.Path, *words: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "gradfix", *words]
    environment = {**os.environ, "PYTHONPATH": PATH, "COLUMNS": "100"}
    return subprocess.run(
        command, capture_output=True, text=True, cwd=folder, env=environment, input=stdin, timeout=120
    )


def explain(folder: pathlib.Path, *words: str, **given: str) -> str:
    run = gradfix(folder, "explain", "--no-probe", *words, **given)
    assert (run.returncode, run.stderr) == (0, "")
    return run.stdout


def database(project: pathlib.Path) -> bytes:
    return (project.parent / "state" / "memory.db").read_bytes()


def test_the_same_log_is_one_sighting(project: pathlib.Path) -> None:
    """A log is not seen before however often it is explained, as a file or through a pipe; a log of another run is."""
    assert not SEEN.search(explain(project, "train.log"))
    assert not SEEN.search(explain(project, "train.log"))
    assert not SEEN.search(explain(project, stdin=PRINTED))
    assert SEEN.search(explain(project, "other.log"))[0].startswith("seen before: once, on ")


def test_every_format_tells(project: pathlib.Path) -> None:
    """Text, Markdown, HTML and JSON say that a failure was seen; JSON and --verbose give its fingerprint."""
    explain(project, "train.log")
    for name in ("markdown", "html"):
        assert "een before: once, on" in explain(project, "other.log", "--format", name)
    report = json.loads(explain(project, "other.log", "--format", "json"))
    assert report["seen"]["times"] == 1
    assert re.fullmatch(r"g1-[0-9a-f]{12}", report["fingerprint"])
    assert report["fingerprint"] in explain(project, "other.log", "--verbose")


def test_a_fix_is_remembered_until_it_is_undone(project: pathlib.Path) -> None:
    """The card names the fix that was applied; once it is undone it does not."""
    assert gradfix(project, "fix", "--no-probe", "train.log", "--apply").returncode == 0
    assert "last time: `inplace-false` (applied, not verified)" in SEEN.search(explain(project, "other.log"))[0]
    assert gradfix(project, "undo").returncode == 0
    assert "inplace-false" not in SEEN.search(explain(project, "other.log"))[0]
    lines = [line.split()[3] for line in gradfix(project, "history").stdout.splitlines()]
    assert lines == ["undone", "failed"]  # in the order of their times; the two sightings as one line


def test_several_logs_of_one_failure(project: pathlib.Path) -> None:
    """In one call the second log of a failure has seen the first."""
    cards = explain(project, "train.log", "other.log")
    assert len(SEEN.findall(cards)) == 1
    (line,) = [line for line in gradfix(project, "history").stdout.splitlines() if "failed" in line]
    assert line.endswith("  (2 times)")


def test_forgotten(project: pathlib.Path) -> None:
    """--forget empties the memory of a project, with --all of every one; patches can be undone all the same."""
    gradfix(project, "fix", "--no-probe", "train.log", "--apply")
    (project / "sub").mkdir()
    assert "forgotten: 2 events of this project" in gradfix(project / "sub", "history", "--forget").stdout
    assert b"broken.py" not in database(project)
    explain(project, "train.log")
    assert "forgotten: 1 event of all projects" in gradfix(project, "history", "--forget", "--all").stdout
    assert not (project.parent / "state" / "memory.db").exists()
    assert gradfix(project, "undo").returncode == 0


def test_the_history_as_json(project: pathlib.Path) -> None:
    """Patches as before, and beside them the events."""
    gradfix(project, "fix", "--no-probe", "train.log", "--apply")
    told = json.loads(gradfix(project, "history", "--format", "json").stdout)
    assert [one["fix"] for one in told["records"]] == ["inplace-false"]
    assert [one["kind"] for one in told["events"]] == ["failure", "fix"]
    assert told["events"][0]["project"].startswith("p-")


def test_switched_off(project: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With GRADFIX_NO_MEMORY nothing is written, and what is remembered is not told."""
    explain(project, "train.log")
    before = database(project)
    monkeypatch.setenv("GRADFIX_NO_MEMORY", "1")
    assert not SEEN.search(explain(project, "other.log"))
    run = gradfix(project, "run", "--no-probe", "--", sys.executable, "-c", "raise ValueError('x')")
    assert (run.returncode, database(project)) == (1, before)


def test_neither_code_nor_secrets_nor_paths(project: pathlib.Path) -> None:
    """The database's bytes hold no line of source, no message, no secret and no folder above the project's."""
    (project / "config.json").write_text(json.dumps({"lr": 0.125, "api_key": "hunter2hunter2"}))
    source = f'import json, sys\nCONFIG = json.load(open("config.json"))\nif len(sys.argv) > 3: sys.exit(0)\nraise ValueError("geheim {SECRET}")\n'
    (project / "train.py").write_text(source)
    words = ["run", "--no-probe", "--", sys.executable, "train.py", "--hub-token", SECRET]
    assert gradfix(project, *words, "--password", "hunter3hunter3", f"--data={project}/data").returncode == 0
    assert gradfix(project, *words[:-2]).returncode == 1
    explain(project, "--no-mask", stdin=PRINTED.replace("RuntimeError: ", f"RuntimeError: token={SECRET} "))
    gradfix(project, "fix", "--no-probe", "train.log", "--apply")
    data = database(project)
    for kept in (
        b"train.py",
        b"ValueError",
        b"config.json: lr",
        b"0.125",
        b"--hub-token",
        b"inplace-false",
        b"--data=data",
    ):
        assert kept in data, kept
    text = [line.strip().encode() for line in f"{source}\n{BROKEN.decode()}".splitlines() if len(line.strip()) > 12]
    hidden = [
        SECRET,
        "hunter2",
        "hunter3",
        "geheim",
        "modified by an inplace",
        str(project.parent),
        os.path.expanduser("~/"),
    ]
    assert [one for one in (*text, *(word.encode() for word in hidden)) if one in data] == []
    assert stat.S_IMODE(os.stat(project.parent / "state" / "memory.db").st_mode) == 0o600


UNUSABLE = {
    "damaged": lambda state: (state / "memory.db").write_bytes(b"damaged" * 1000),
    "a folder in its place": lambda state: [(state / "memory.db").unlink(), (state / "memory.db").mkdir()],
    "the state folder is a file": lambda state: [(state / "memory.db").unlink(), state.rmdir(), state.write_text("")],
}


@pytest.mark.parametrize("spoil", UNUSABLE.values(), ids=UNUSABLE.keys())
def test_an_unusable_memory_costs_a_line(project: pathlib.Path, spoil) -> None:
    """The card is the same, the exit status too; one line of standard error says that nothing is remembered."""
    card = explain(project, "train.log")
    spoil(project.parent / "state")
    run = gradfix(project, "explain", "--no-probe", "train.log")
    assert (run.returncode, run.stdout) == (0, card)
    (line,) = run.stderr.splitlines()
    assert line.startswith("gradfix: nothing is remembered: ")
    assert "GRADFIX_NO_MEMORY=1" in line


def test_a_read_only_state_folder(project: pathlib.Path) -> None:
    """A memory that cannot be written is read all the same."""
    if os.geteuid() == 0:
        pytest.skip("root writes anywhere")
    explain(project, "train.log")
    os.chmod(project.parent / "state" / "memory.db", 0o400)
    os.chmod(project.parent / "state", 0o500)
    run = gradfix(project, "explain", "--no-probe", "other.log")
    assert (run.returncode, bool(SEEN.search(run.stdout)), len(run.stderr.splitlines())) == (0, True, 1)


def test_a_locked_memory_costs_a_line(project: pathlib.Path) -> None:
    """Another process that holds the memory for long costs a second and a line, not the answer."""
    card = explain(project, "train.log")
    with sqlite3.connect(project.parent / "state" / "memory.db", isolation_level=None) as holder:
        holder.execute("BEGIN EXCLUSIVE")
        run = gradfix(project, "explain", "--no-probe", "train.log")
    assert (run.returncode, run.stdout, len(run.stderr.splitlines())) == (0, card, 1)


def test_what_is_no_failure(project: pathlib.Path) -> None:
    """Ctrl-C, a benign warning and a healthy log are not remembered."""
    for text in (
        'Traceback (most recent call last):\n  File "a.py", line 1, in <module>\nKeyboardInterrupt\n',
        "{'loss': 0.5}\n",
    ):
        gradfix(project, "explain", "--no-probe", stdin=text)
    assert not (project.parent / "state" / "memory.db").exists()


def test_it_is_not_loaded_before_the_answer(project: pathlib.Path) -> None:
    """SQLite is imported once the card is computed, and not at all where nothing is kept."""
    code = (
        "import sys, explainer.memory as memory\n"
        "recall = memory.recall_failures\n"
        "def look(*given, **named):\n    print('sqlite' in ' '.join(sys.modules), file=sys.stderr)\n    return recall(*given, **named)\n"
        "memory.recall_failures = look\n"
        "from explainer.cli.entry import main\n"
        "main(['explain', '--no-probe', 'train.log'])\n"
        "print('_sqlite3' in sys.modules, 'sqlite3' in sys.modules, file=sys.stderr)\n"
    )
    for kept, loaded in (("0", "True False"), ("1", "False False")):
        environment = {**os.environ, "PYTHONPATH": PATH, "GRADFIX_NO_MEMORY": kept}
        run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=project, env=environment)
        assert run.stderr.split("\n")[:2] == ["False", loaded]
