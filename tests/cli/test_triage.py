"""`gradfix triage` as its user meets it: what it prints, where, and how it ends."""

from __future__ import annotations

import json
import os
import pathlib
import subprocess
import sys

import pytest

from explainer.cli.entry import main
from tests.conftest import PATH, ROOT
from tests.fleet.logs import make_log


def gradfix(*words: object, cwd: pathlib.Path, **environment: str) -> subprocess.CompletedProcess[str]:
    given = {**os.environ, "PYTHONPATH": PATH, "COLUMNS": "100", **environment}
    return subprocess.run([sys.executable, "-m", "gradfix", "triage", *map(str, words), "--workers", "1"], capture_output=True, text=True, cwd=cwd, env=given)  # fmt: skip


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    """Some logs, one of which is a program."""
    folder = tmp_path_factory.mktemp("triage")
    (folder / "logs").mkdir()
    for number in range(5, 9):
        (folder / "logs" / f"{number}.log").write_text(make_log(number))
    (folder / "wrong.log").write_bytes(b"\x7fELF" + bytes(99))
    return folder


def test_a_table(folder: pathlib.Path) -> None:
    """Causes and unknown messages on standard output, the sum on standard error, status 0."""
    run = gradfix("logs", cwd=folder)
    assert run.returncode == 0, run.stderr
    assert "What breaks" in run.stdout
    assert "What is unknown, by message" in run.stdout
    assert run.stderr.startswith("4 of 4 objects, ")
    assert "\x1b" not in run.stdout + run.stderr


def test_rows_and_what_cannot_be_read(folder: pathlib.Path) -> None:
    """A line of JSON a row, in the order of the files; status 5, and rows that say what was not read."""
    run = gradfix("logs", "wrong.log", "none.log", "--format", "json", cwd=folder)
    rows = [json.loads(line) for line in run.stdout.splitlines()]
    assert run.returncode == 5
    assert [row["file"] for row in rows] == sorted(row["file"] for row in rows)
    assert {row["schema"] for row in rows} == {"gradfix.triage/1"}
    assert {row["file"]: row["detail"] for row in rows if row["status"] == "unreadable"} == {
        "none.log": "no such file or directory",
        "wrong.log": "this is a program, not a log",
    }


def test_outputs(folder: pathlib.Path) -> None:
    """--out writes rows, report and clusters; a second run is told of --resume, and with it reads nothing."""
    pyarrow = pytest.importorskip("pyarrow.parquet")
    assert gradfix("logs", "--out", "out", cwd=folder).returncode == 0
    table = pyarrow.read_table(folder / "out" / "rows.parquet")
    assert table.num_rows == 4
    assert (folder / "out" / "report.html").read_text().startswith("<!doctype html>")
    assert list((folder / "out" / "clusters").glob("001-*.toml"))
    again = gradfix("logs", "--out", "out", cwd=folder)
    assert (again.returncode, again.stdout) == (2, "")
    assert again.stderr.strip() == "gradfix: out: holds a triage; --resume goes on with it, or name another folder"
    assert gradfix("logs", "--out", "out", "--resume", cwd=folder).returncode == 0


REFUSED = {
    "standard input": (["-"], "triage reads files and addresses"),
    "--resume without a folder": (["logs", "--resume"], "name it with --out"),
    "rules that are none": (["logs", "--knowledge", "nowhere"], "nowhere"),
    "an engine that is none": (["logs", "--engine", "spark"], "spark"),
    "an output in a store": (["logs", "--out", "s3://bucket/out"], "a folder of this machine"),
    "an output that is a file": (["logs", "--out", "wrong.log"], "wrong.log"),
}


@pytest.mark.parametrize(("words", "says"), REFUSED.values(), ids=REFUSED.keys())
def test_refused(
    folder: pathlib.Path,
    words: list[str],
    says: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Wrong use is one line and status 2."""
    monkeypatch.chdir(folder)
    assert main(["triage", *words]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert says in err
    assert len(err.strip().splitlines()) == 1


def test_an_extra_that_is_missing(folder: pathlib.Path, tmp_path: pathlib.Path) -> None:
    """Parquet without pyarrow is refused before anything is read, with what to install."""
    (tmp_path / "pyarrow").mkdir()
    (tmp_path / "pyarrow" / "__init__.py").write_text("raise ImportError('not here')")
    run = gradfix("logs", "--out", "other", cwd=folder, PYTHONPATH=f"{tmp_path}{os.pathsep}{ROOT}")
    assert run.returncode == 2
    assert run.stderr.strip() == "gradfix: --out writes Parquet with pyarrow: pip install 'gradfix[fleet]'"
    assert not (folder / "other").exists()
