"""Training programs on a GPU: the broken ones are mended and proved there, nothing is held against the others.

Run by hand where there is a GPU: `pytest -m gpu tests/gpu`. The first line of a program in `broken/` names its causes, the first of
them the right one; the lines below it that begin with `# mended:` are those that the repair writes. Without them no repair is
honest, and the program stays as it is.
"""

from __future__ import annotations

import json
import os
import pathlib
import subprocess
import sys

import pytest

from tests.conftest import ROOT

pytestmark = pytest.mark.gpu
HERE = pathlib.Path(__file__).resolve().parent
BROKEN, HEALTHY = (sorted((HERE / name).glob("*.py")) for name in ("broken", "healthy"))
MENDED = "# mended:"


def gradfix(folder: pathlib.Path, program: str, *words: str) -> tuple[int, dict]:
    """The exit status and the JSON of a command on a program that is written to a folder."""
    (folder / "train.py").write_text(program)
    environment = {
        **os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")]), "HF_HUB_OFFLINE": "1",
        "GRADFIX_NO_MEMORY": "1", "GRADFIX_STATE_DIR": str(folder / "state"), "TQDM_DISABLE": "1",
    }  # fmt: skip
    done = subprocess.run(
        [sys.executable, "-m", "gradfix", *words, "--format", "json", "--", sys.executable, "train.py"],
        capture_output=True, text=True, cwd=folder, env=environment, timeout=300,
    )  # fmt: skip
    return done.returncode, json.loads(done.stdout)


@pytest.fixture(autouse=True)
def _gpu(program: pathlib.Path) -> None:
    """A GPU, and what the program imports beside torch."""
    torch = pytest.importorskip("torch")
    if not torch.cuda.is_available():
        pytest.skip("no GPU")
    for name in ("transformers", "lightning"):
        if name in program.read_text():
            pytest.importorskip(name)


@pytest.mark.parametrize("program", BROKEN, ids=lambda one: one.stem)
def test_broken(program: pathlib.Path, tmp_path: pathlib.Path) -> None:
    """Named with its cause; mended with the lines that its head tells and proved on the GPU, or left as it was."""
    text = program.read_text()
    causes = text.partition("\n")[0].removeprefix("# ").split()
    told_lines = [line.removeprefix(MENDED).strip() for line in text.splitlines() if line.startswith(MENDED)]
    _, told = gradfix(tmp_path, text, "run", "--fix", "--unsafe-fixes")
    before = {line.strip() for line in text.splitlines()}
    changed = [line.strip() for line in (tmp_path / "train.py").read_text().splitlines() if line.strip() not in before]
    assert told["report"]["findings"][0]["cause"] in causes
    assert changed == [line for line in told_lines if line]
    assert told["status"] == ("verified" if told_lines else "unfixed")
    if told_lines:
        machine = told["verification"]["processes"][0]["machine"]
        assert (machine["device"], machine["memory_of"]) == ("cuda:0", "device")


@pytest.mark.parametrize("program", HEALTHY, ids=lambda one: one.stem)
def test_healthy(program: pathlib.Path, tmp_path: pathlib.Path) -> None:
    """Runs, traced too, without a word; the verification is green, and says what the GPU is and can."""
    status, told = gradfix(tmp_path, program.read_text(), "run", "--trace", "--no-probe")
    assert (status, told["status"], (told["report"] or {}).get("findings", [])) == (0, "passed", [])
    status, proof = gradfix(tmp_path, program.read_text(), "verify")
    assert (status, proof["verdict"], proof["notes"]) == (0, "green", [])
    machine = proof["processes"][0]["machine"]
    assert machine["device"] == "cuda:0"
    assert machine["memory"] > 0


@pytest.mark.parametrize("program", HEALTHY[:1], ids=lambda one: one.stem)
def test_hidden(program: pathlib.Path, tmp_path: pathlib.Path) -> None:
    """`--device cpu` hides the GPU: a program that demands one fails there, as on a machine that has none."""
    status, proof = gradfix(tmp_path, program.read_text(), "verify", "--device", "cpu")
    assert (status, proof.get("verdict", proof)) == (1, "red")
