"""The command line as its user meets it: formats, exit codes, errors of one line, what it loads."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from explainer.cli.options import ExplainOptions
from explainer.cli.quick import parse_quickly, parse_ui_quickly
from tests.conftest import PATH, ROOT

LOG = 'Traceback (most recent call last):\n  File "train.py", line 3, in f\n    loss.backward()\nRuntimeError: grad can be implicitly created only for scalar outputs\n'
UNKNOWN = "RuntimeError: the flux capacitor is empty\n"


def gradfix(*words: str, stdin: str | bytes = "", cwd: object = None, **variables: str) -> subprocess.CompletedProcess:
    environment = {**os.environ, "PYTHONPATH": PATH, **variables}
    data = stdin.encode() if isinstance(stdin, str) else stdin
    return subprocess.run(
        [sys.executable, "-m", "gradfix", *words], input=data, capture_output=True, cwd=cwd, env=environment, timeout=60
    )


STATUS = {
    "explained": (["explain", "--no-probe"], LOG, 0),
    "not recognised": (["explain", "--no-probe"], UNKNOWN, 1),
    "no failure": (["explain", "--no-probe"], "all is well\n", 1),
    "empty": (["explain", "--no-probe"], "", 2),
    "binary": (["explain", "--no-probe"], bytes(range(256)) * 20, 2),
    "missing file": (["explain", "missing.log"], "", 2),
    "an unknown option": (["explain", "--nonsense"], "", 2),
    "an unknown format": (["explain", "--format", "xml"], "", 2),
    "no such environment": (["explain", "--env", "missing.json"], LOG, 2),
    "no such rules": (["explain", "--knowledge", "missing"], LOG, 2),
    "an unknown cause": (["explain", "--cause", "no/such"], "", 2),
    "a cause": (["explain", "--cause", "inplace/op-on-saved-tensor"], "", 0),
    "an unknown command": (["explode"], "", 2),
    "help": (["explain", "--help"], "", 0),
    "version": (["--version"], "", 0),
    "rules list": (["rules", "list", "inplace"], "", 0),
    "an unknown family": (["rules", "list", "nonsense"], "", 2),
    "rules show": (["rules", "show", "op-on-saved-tensor"], "", 0),
    "rules search": (["rules", "search", "inplce", "relu"], "", 0),
    "nothing found": (["rules", "search", "zzzzqqqqxx"], "", 1),
    "a schema": (["rules", "schema", "report"], "", 0),
    "the schema of a verification": (["rules", "schema", "verification"], "", 0),
    "an unknown schema": (["rules", "schema", "nonsense"], "", 2),
    "probe": (["probe"], "", 0),
    "probe of nothing": (["probe", "--python", "/no/such/python"], "", 0),
}


@pytest.mark.parametrize(("words", "stdin", "status"), STATUS.values(), ids=STATUS.keys())
def test_exit_status(words: list[str], stdin: str | bytes, status: int, tmp_path) -> None:
    """The exit status is the documented one, an error is one line on standard error, and never a traceback of ours."""
    run = gradfix(*words, stdin=stdin, cwd=tmp_path)
    assert run.returncode == status, run.stderr.decode()
    assert b"Traceback (most recent call last):\n  File" not in run.stderr
    if status == 2:
        assert run.stderr.startswith(b"gradfix: ")
        assert run.stderr.count(b"\n") == 1


@pytest.mark.parametrize("name", ["text", "json", "markdown", "html", "sarif", "github"])
def test_formats(name: str) -> None:
    """Each format is printed whole, on standard output alone."""
    run = gradfix("explain", "--no-probe", "--format", name, stdin=LOG)
    assert (run.returncode, run.stderr) == (0, b"")
    assert b"non-scalar-loss" in run.stdout


def test_json_is_one_object() -> None:
    """One failure is one line of JSON."""
    report = json.loads(gradfix("explain", "--no-probe", "--format", "json", stdin=LOG).stdout)
    assert report["findings"][0]["cause"] == "backward/non-scalar-loss"
    assert report["environment"] is None


def test_several_inputs(tmp_path) -> None:
    """Several files and folders give a line each; one that cannot be read is named and does not stop the others."""
    (tmp_path / "a.log").write_text(LOG)
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs" / "b.err").write_text(UNKNOWN)
    run = gradfix("explain", "--no-probe", "--format", "json", "a.log", "missing.log", "logs", cwd=tmp_path)
    sources = [json.loads(line)["incident"]["source"] for line in run.stdout.decode().splitlines()]
    assert sources == ["a.log", "logs/b.err"]
    assert (run.returncode, run.stderr.count(b"\n")) == (2, 1)


def test_a_folder_without_logs(tmp_path) -> None:
    """A folder that holds no log says so."""
    run = gradfix("explain", str(tmp_path))
    assert (run.returncode, b"no log in this folder" in run.stderr) == (2, True)


def test_independent_failures_are_lines(tmp_path) -> None:
    """A log with two independent failures gives two objects."""
    run = gradfix(
        "explain", "--no-probe", "--format", "json", stdin=LOG + "{'loss': 0.5}\n" + LOG.replace("line 3", "line 9")
    )
    assert [json.loads(line)["incident"]["exceptions"][0]["frames"][0]["line"] for line in run.stdout.splitlines()] == [
        3,
        9,
    ]


@pytest.mark.parametrize("root", [[], ["--root", "."]], ids=["the working directory", "a dot"])
def test_paths_are_relative_to_the_root(tmp_path, root: list[str]) -> None:
    """Under --root (by default the working directory) paths are short; the source line is read from there."""
    (tmp_path / "train.py").write_text("a = 1\nb = 2\nloss.backward()\n")
    text = LOG.replace("train.py", str(tmp_path / "train.py")).replace("    loss.backward()\n", "")
    report = json.loads(gradfix("explain", "--no-probe", "--format", "json", *root, stdin=text, cwd=tmp_path).stdout)
    culprit = report["findings"][0]["culprits"][0]
    assert (culprit["file"], culprit["code"]) == ("train.py", "loss.backward()")


UNREAD = {"a device": "/dev/zero", "a secret": "secret.txt", "a folder": ".", "a fifo": "pipe.py"}


@pytest.mark.parametrize("name", UNREAD.values(), ids=UNREAD.keys())
def test_only_python_source_is_read(tmp_path, name: str) -> None:
    """A frame that names another kind of file opens nothing."""
    (tmp_path / "secret.txt").write_text("a\nb\ntop secret\n")
    os.mkfifo(tmp_path / "pipe.py")
    text = LOG.replace("train.py", name).replace("    loss.backward()\n", "")
    run = gradfix("explain", "--no-probe", stdin=text, cwd=tmp_path)
    assert run.returncode == 0
    assert b"top secret" not in run.stdout


COLOUR = {
    "a pipe": ({}, [], False),
    "forced": ({"FORCE_COLOR": "1"}, [], True),
    "no colour": ({"NO_COLOR": "1", "FORCE_COLOR": "1"}, [], False),
    "asked for": ({"NO_COLOR": "1"}, ["--color", "always"], True),
}


@pytest.mark.parametrize(("variables", "words", "is_coloured"), COLOUR.values(), ids=COLOUR.keys())
def test_colour(variables: dict, words: list[str], is_coloured: bool) -> None:
    """Colour follows the option, then NO_COLOR, then FORCE_COLOR, then the terminal."""
    run = gradfix("explain", "--no-probe", *words, stdin=LOG, **variables)
    assert (b"\x1b[" in run.stdout) is is_coloured


def test_secrets_are_masked() -> None:
    """A token in the log does not get out, unless asked for."""
    text = LOG.replace("only for", "only hf_AbCdEfGhIjKlMnOpQrSt for")
    assert b"hf_AbCd" not in gradfix("explain", "--no-probe", "-v", stdin=text).stdout
    assert b"hf_AbCd" in gradfix("explain", "--no-probe", "-v", "--no-mask", stdin=text).stdout


def test_a_reader_that_goes_away() -> None:
    """`| head -1` ends the program quietly."""
    command = f"{sys.executable} -m gradfix rules show op-on-saved-tensor | head -1"
    run = subprocess.run(["bash", "-c", command], capture_output=True, env={**os.environ, "PYTHONPATH": PATH})
    assert run.stderr == b""


def test_what_explain_loads() -> None:
    """Explaining loads neither torch nor an interface nor validation: start-up is budgeted import by import."""
    code = (
        "import sys\nfrom explainer.cli.entry import main\n"
        "main(['explain', '--no-probe', '--format', 'json'])\n"
        "heavy = ('torch', 'transformers', 'numpy', 'textual', 'libcst', 'pydantic', 'typer', 'click', 'rich', 'rapidfuzz', 'yaml')\n"
        "print(sorted(set(heavy) & set(sys.modules)), file=sys.stderr)\n"
    )
    run = subprocess.run([sys.executable, "-c", code], input=LOG, capture_output=True, text=True, cwd=ROOT)
    assert run.stderr.strip() == "[]"


def test_importing_gradfix_loads_nothing() -> None:
    """`import gradfix` costs almost nothing; its names load what they need."""
    code = (
        "import sys; before = set(sys.modules); import gradfix; print(len(set(sys.modules) - before)); gradfix.explain"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT, check=True)
    assert int(run.stdout) <= 3


words = st.lists(
    st.sampled_from(
        ["a.log", "-", "--verbose", "-v", "--no-probe", "--probe", "--no-mask", "--format", "json", "text", "xml", "--top", "3", "0",
         "--env", "e.json", "--cause", "a/b", "--root", "/p", "--color", "never", "--tracebacks-only", "--passthrough", "--nonsense",
         "--knowledge", "--format=json", "--top=2", "--python", "--help", "--no-passthrough"]
    ),
    max_size=6,
)  # fmt: skip


@given(words)
@settings(max_examples=150, deadline=None)
def test_the_quick_reader_agrees_with_the_full_one(arguments: list[str]) -> None:
    """What the quick reader understands, the declared command line understands alike; the rest it leaves to it."""
    quick = parse_quickly(arguments)
    if quick is not None:
        assert quick == full(arguments)


def full(arguments: list[str]) -> ExplainOptions | None:
    """What typer makes of the same words."""
    from unittest.mock import patch

    from explainer.cli.app import run_app

    seen: list[ExplainOptions] = []

    def record(options: ExplainOptions) -> int:
        seen.append(options)
        return 0

    with patch("explainer.cli.explain.run_explain", record):
        run_app(["explain", *arguments])
    return seen[0] if seen else None


def test_the_quick_reader_is_used() -> None:
    """The common forms need no typer."""
    assert parse_quickly(["--no-probe", "--format", "json", "-"]) == ExplainOptions(
        probe=False, format="json", files=("-",)
    )


ui_words = st.lists(
    st.sampled_from(
        ["a.log", "-", "--", "python", "train.py", "--no-probe", "--probe", "--no-mask", "--mask", "-v", "--web", "--steps", "3",
         "--root", "--env=e.json", "--help"]
    ),
    max_size=6,
)  # fmt: skip


@given(ui_words)
@settings(max_examples=100, deadline=None)
def test_the_quick_reader_of_ui_agrees_too(arguments: list[str]) -> None:
    """What it understands, the declared command line understands alike."""
    from unittest.mock import patch

    from explainer.cli.app import run_app
    from explainer.cli.ui import UiOptions

    seen: list[UiOptions] = []
    with patch("explainer.cli.ui.run_ui", lambda options: seen.append(options) or 0):
        quick = parse_ui_quickly(arguments)
        if quick is not None:
            run_app(["ui", *arguments])
    assert quick is None or seen == [quick]


def test_opening_a_log_needs_no_typer() -> None:
    """The forms that people type."""
    assert parse_ui_quickly(["train.log"]) is not None
    assert parse_ui_quickly(["--no-probe", "--", "python", "train.py", "--lr", "1"]) is not None
    assert parse_ui_quickly(["--web", "train.log"]) is None


def test_a_users_module_of_that_name(tmp_path) -> None:
    """A user's own `explainer.py` beside the script gives a clear error, not an odd one."""
    (tmp_path / "explainer.py").write_text("x = 1\n")
    code = "import gradfix; gradfix.explain"
    environment = {**os.environ, "PYTHONPATH": f"{tmp_path}{os.pathsep}{ROOT}"}
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=tmp_path, env=environment)
    assert f"{tmp_path}/explainer.py hides gradfix's own package" in run.stderr
    assert "ImportError" in run.stderr


def test_completion() -> None:
    """The shell can complete commands and options."""
    run = gradfix(**{"_GRADFIX_COMPLETE": "complete_bash", "COMP_WORDS": "gradfix rules s", "COMP_CWORD": "2"})
    assert set(run.stdout.decode().split()) >= {"show", "search", "schema"}
