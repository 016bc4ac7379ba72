"""A report is kept, the program is changed, and the first gradients tell whether it still computes the same."""

from __future__ import annotations

import json
import os
import pathlib
import subprocess
import sys

import jsonschema
import pytest

from explainer.cli.schema import schema_of
from explainer.errors import UnreadableInput
from explainer.verification.against import verify_against
from explainer.verification.saved import read_verification, save_verification
from explainer.verification.verify import Watch, verify_command
from tests import forked
from tests.conftest import PATH
from tests.gate import some_at_gate
from tests.verification.programs import LOOP, LOSS

pytestmark = pytest.mark.torch
BEFORE = LOOP.format(before="", loss=LOSS)
VERDICTS = {
    "another loss": (LOOP.format(before="", loss=f"{LOSS} * 3"), "red", "the loss of the first step is"),
    "a gradient cut off": (
        LOOP.format(before="", loss="model[2](model[1](model[0](torch.randn(4, 3))).detach()).square().mean()"), "red",
        "2 of 4 first gradients differ: Sequential.0.",
    ),
    "other parameters": (BEFORE.replace("(5, 1)", "(5, 1, bias=False)"), "inconclusive", "other parameters train"),
    "random at every run": (LOOP.format(before="torch.seed()", loss=LOSS), "inconclusive", "it is not deterministic"),
    "the same, written otherwise": (LOOP.format(before="", loss=LOSS.replace("square()", "pow(2)")), "green", ""),
    "the same, compiled": (LOOP.format(before="", loss=f"torch.compile(model, backend='eager'){LOSS[5:]}"), "green", ""),
}  # fmt: skip


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """The report of the program before a change; it sets no seed."""
    pytest.importorskip("torch")
    folder = tmp_path_factory.mktemp("before")
    (folder / "train.py").write_text(BEFORE)
    save_verification(
        verify_command((forked.python(), "train.py"), str(folder), Watch(steps=2)), str(folder / "before.json")
    )
    return folder / "before.json"


@pytest.mark.parametrize(
    ("text", "verdict", "says"),
    some_at_gate(VERDICTS, ["a gradient cut off", "random at every run"]),
)
def test_held_against_a_report(tmp_path: pathlib.Path, saved: pathlib.Path, text: str, verdict: str, says: str) -> None:
    """Red names what differs; what cannot be compared is inconclusive and says why."""
    (tmp_path / "train.py").write_text(text)
    proof = verify_against((forked.python(), "train.py"), str(tmp_path), Watch(steps=2), read_verification(str(saved)))
    assert proof.verdict == verdict
    assert any(says in one for one in proof.reasons) or not says


def gradfix(folder: pathlib.Path, *words: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": PATH, "NO_COLOR": "1", "COLUMNS": "100"}
    command = [sys.executable, "-m", "gradfix", "verify", *words, "--", forked.python(), "train.py"]
    return subprocess.run(command, capture_output=True, text=True, cwd=folder, env=environment, timeout=300)


def test_the_command_line(tmp_path: pathlib.Path, saved: pathlib.Path) -> None:
    """Exit status 1, one JSON object that follows the published schema, without the gradients' numbers."""
    (tmp_path / "train.py").write_text(VERDICTS["another loss"][0])
    done = gradfix(tmp_path, "--against", str(saved), "--format", "json", "--steps", "2")
    told = json.loads(done.stdout)
    jsonschema.validate(told, schema_of("verification"))
    assert (done.returncode, told["verdict"], told["comparison"]["differing"]) == (1, "red", 4)
    assert told["comparison"]["worst"][0]["error"] == pytest.approx(2.0, rel=1e-3)
    assert "values" not in told["processes"][0]["first"][0]["gradients"][0]


@pytest.mark.slow
def test_the_text(tmp_path: pathlib.Path, saved: pathlib.Path) -> None:
    """Which parameters differ most, what it costs, the modules; no colour in a pipe."""
    (tmp_path / "train.py").write_text(VERDICTS["another loss"][0])
    said = gradfix(tmp_path, "--against", str(saved), "--steps", "2").stdout
    assert "off by 2 of its size" in said
    assert " price       memory " in said
    assert "Sequential.0       2      2      0      0  █" in said
    assert "\x1b" not in said


def test_a_report_without_gradients_is_refused(tmp_path: pathlib.Path, saved: pathlib.Path) -> None:
    """The JSON of standard output leaves them out, and the error says how to keep them."""
    told = json.loads(saved.read_text())
    for one in told["processes"][0]["first"][0]["gradients"]:
        del one["values"], one["projections"]
    (tmp_path / "printed.json").write_text(json.dumps(told))
    with pytest.raises(UnreadableInput, match="holds no gradients; write it with `gradfix verify --save`"):
        read_verification(str(tmp_path / "printed.json"))


@pytest.mark.parametrize("text", ["", "[]", '{"schema": "gradfix.report/1"}'], ids=["empty", "a list", "a report"])
def test_a_file_that_is_no_verification(tmp_path: pathlib.Path, text: str) -> None:
    """It is refused in one line."""
    (tmp_path / "other.json").write_text(text)
    with pytest.raises(UnreadableInput, match="not a verification"):
        read_verification(str(tmp_path / "other.json"))
