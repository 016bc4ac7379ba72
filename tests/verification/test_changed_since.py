"""What changed since the last good run, on a real upgrade: one program, two virtual environments, two releases of a library."""

from __future__ import annotations

import json
import os
import pathlib
import subprocess
import sys
import zipfile

import pytest

from tests.conftest import PATH

# The upgrade: 1.1 gives the loss back as a plain number.
RELEASES = {
    "1.0": "def mean(values):\n    return sum(values) / len(values)\n",
    "1.1": "def mean(values):\n    if not isinstance(values, tuple):\n        raise TypeError('mean() needs a tuple since 1.1')\n    return sum(values) / len(values)\n",
}
PROGRAM = "import sys, tinyloss\n\n\ndef train(values):\n    return tinyloss.mean(values)\n\n\ntrain([1.0, 2.0])\n"
TORCH_RELEASES = {
    "1.0": "def mean(values):\n    return values.mean()\n",
    "1.1": "def mean(values):\n    return values.detach().mean()\n",
}
TORCH_PROGRAM = """import tinyloss
import torch

model = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(3):
    optimizer.zero_grad()
    loss = tinyloss.mean(model(torch.ones(2, 4)))
    loss.backward()
    optimizer.step()
"""


def build_wheel(folder: pathlib.Path, version: str, code: str) -> pathlib.Path:
    """A wheel of tinyloss with this code."""
    wheel, info = folder / f"tinyloss-{version}-py3-none-any.whl", f"tinyloss-{version}.dist-info"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr("tinyloss.py", code)
        archive.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: tinyloss\nVersion: {version}\n")
        archive.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        archive.writestr(f"{info}/RECORD", "")
    return wheel


def make_environment(folder: pathlib.Path, version: str, code: str, *, see_ours: bool = False) -> str:
    """The interpreter of a virtual environment with that release of tinyloss; `see_ours` shows it our packages too."""
    place = folder / f"env-{version}"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(place)], check=True)
    python = str(place / "bin" / "python")
    wheel = build_wheel(folder, version, code)
    install = [sys.executable, "-m", "pip", "--python", python, "install", "-q", "--no-index", "--no-deps", str(wheel)]
    subprocess.run(install, check=True)
    if see_ours:
        import torch

        (packages,) = place.glob("lib/python3*/site-packages")
        (packages / "ours.pth").write_text(os.path.dirname(os.path.dirname(torch.__file__)) + "\n")
    return python


@pytest.fixture
def project(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> pathlib.Path:
    monkeypatch.setenv("GRADFIX_STATE_DIR", str(tmp_path / "state"))
    monkeypatch.setenv("GRADFIX_NO_MEMORY", "0")
    (tmp_path / "p").mkdir()
    (tmp_path / "p" / "train.py").write_text(PROGRAM)
    return tmp_path / "p"


def run(
    project: pathlib.Path, python: str, *words: str, options: tuple[str, ...] = ()
) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "gradfix", "run", *options, "--", python, "train.py", *words]
    environment = {**os.environ, "PYTHONPATH": PATH, "COLUMNS": "100"}
    return subprocess.run(command, capture_output=True, text=True, cwd=project, env=environment, timeout=300)


def changed(card: str) -> list[str]:
    """The lines of a card that say what changed."""
    lines = iter(card.splitlines())
    for line in lines:
        if line.startswith("changed "):
            return [one.strip() for one in lines if one.startswith(" " * 8) and one.strip()]
    return []


def test_an_upgrade(project: pathlib.Path) -> None:
    """The library that was upgraded stands on the card, then the option that differs; the second time the failure is known."""
    old, new = (make_environment(project.parent, version, code) for version, code in RELEASES.items())
    assert run(project, old, "--lr", "1").returncode == 0
    failed = run(project, new, "--lr", "2")
    assert failed.returncode == 1
    assert changed(failed.stderr) == ["1. tinyloss 1.0 -> 1.1 (it is in the traceback)", "2. --lr 1 -> 2"]
    again = run(project, new, "--lr", "1", options=("--format", "json"))
    report = json.loads(again.stdout)["report"]
    (change,) = report["changes"]["items"]
    assert (change["kind"], change["name"], change["before"], change["now"]) == ("package", "tinyloss", "1.0", "1.1")
    assert report["seen"]["times"] == 1
    assert run(project, old).returncode == 0
    assert "nothing that is looked at, since" not in run(project, new).stderr


def test_nothing_changed_is_said(project: pathlib.Path) -> None:
    """A program that fails by chance or by its data: that nothing else differs is worth a line; another program is none."""
    (project / "train.py").write_text("import os\nif os.path.exists('bad-data'): raise ValueError('bad data')\n")
    assert run(project, sys.executable, options=("--no-probe",)).returncode == 0
    (project / "bad-data").write_text("")
    assert (
        "changed nothing that is looked at, since the last good run"
        in run(project, sys.executable, options=("--no-probe",)).stderr
    )
    (project / "other.py").write_text("raise ValueError('x')\n")
    other = subprocess.run(
        [sys.executable, "-m", "gradfix", "run", "--no-probe", "--", sys.executable, "other.py"], capture_output=True, text=True,
        cwd=project, env={**os.environ, "PYTHONPATH": PATH},
    )  # fmt: skip
    assert "changed " not in other.stderr


def test_a_program_that_is_killed(project: pathlib.Path) -> None:
    """Where no traceback tells why, what changed is told all the same; a run that was asked to end is no failure."""
    (project / "train.py").write_text(
        "import os, signal, sys\nif len(sys.argv) > 1: os.kill(os.getpid(), int(sys.argv[1]))\n"
    )
    assert run(project, sys.executable, options=("--no-probe",)).returncode == 0
    killed = run(project, sys.executable, "9", options=("--no-probe",))
    assert changed(killed.stderr) == ["1. argument 1 9 is new"]
    assert "changed" not in run(project, sys.executable, "15", options=("--no-probe",)).stderr


@pytest.mark.slow
@pytest.mark.torch
def test_an_upgrade_that_cuts_the_graph(project: pathlib.Path) -> None:
    """A release that detaches the loss: torch fails, the library is nowhere in the traceback, and it is what changed."""
    pytest.importorskip("torch")
    (project / "train.py").write_text(TORCH_PROGRAM)
    old, new = (make_environment(project.parent, *one, see_ours=True) for one in TORCH_RELEASES.items())
    assert run(project, old).returncode == 0
    failed = run(project, new)
    assert "no-graph/" in failed.stderr
    assert changed(failed.stderr) == ["1. tinyloss 1.0 -> 1.1"]


@pytest.mark.slow
@pytest.mark.torch
def test_a_proved_fix_is_remembered(project: pathlib.Path) -> None:
    """After `run --fix` and `undo` the card of the same failure names the fix, and that it was verified."""
    from tests.verification.test_repair import BROKEN

    (project / "train.py").write_text(BROKEN)
    assert run(project, sys.executable, options=("--fix", "--no-probe")).returncode == 0
    command = [sys.executable, "-m", "gradfix"]
    environment = {**os.environ, "PYTHONPATH": PATH, "COLUMNS": "100"}
    assert subprocess.run([*command, "undo"], cwd=project, env=environment).returncode == 0
    failed = run(project, sys.executable, options=("--no-probe",))
    (line,) = [one for one in failed.stderr.splitlines() if one.startswith("seen before")]
    assert line.startswith("seen before: once, on ")
    assert line.endswith("; solved last time by `out-of-place` (verified)")
    told = subprocess.run([*command, "history"], cwd=project, env=environment, capture_output=True, text=True).stdout
    assert [one.split()[3] for one in told.splitlines()] == ["undone", "failed", "green", "failed"]
