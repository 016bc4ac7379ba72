"""`gradfix run --fix --dry-run`: the repair happens in a copy."""

from __future__ import annotations

import json
import os
import pathlib
import subprocess
import sys

import pytest

from explainer import rehearsal
from explainer.catalog.bundle import load_catalog
from explainer.errors import UsageError
from explainer.rehearsal import rehearsed
from explainer.run import Job
from tests import forked

TRAIN = """import torch
open("seen.txt", "w").write("written")
x = torch.load("../data/x.pt") if __import__("os").path.exists("../data/x.pt") else torch.ones(2, 3)
net = torch.nn.Linear(3, 3)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
for _ in range(3):
    h = torch.sigmoid(net(x))
    h += 1
    loss = h.sum()
    opt.zero_grad()
    loss.backward()
    opt.step()
"""


def job(root: pathlib.Path, *command: str) -> Job:
    return Job(command=command, root=os.path.realpath(root), catalog=load_catalog(None))


@pytest.fixture
def project(tmp_path: pathlib.Path) -> pathlib.Path:
    """A project with an interpreter and a history in it, data beside it, and a link that leads nowhere."""
    root = tmp_path / "project"
    for folder in ("src", ".git", "env/bin", "__pycache__"):
        (root / folder).mkdir(parents=True)
    (root / "env" / "pyvenv.cfg").write_text("")
    (root / "train.py").write_text("print()\n")
    (root / "pyproject.toml").write_text("")
    (root / "gone").symlink_to("nowhere")
    (tmp_path / "data").mkdir()
    return root


def test_what_is_copied_and_what_is_linked(project: pathlib.Path) -> None:
    """Files are copies, interpreters and histories links; what lies beside is there; afterwards all is gone."""
    with rehearsed(job(project, "python", "train.py")) as copied:
        root = pathlib.Path(copied.root)
        assert root != project
        assert (root / "train.py").read_text() == "print()\n"
        assert not (root / "train.py").samefile(project / "train.py")
        assert (root / ".git").samefile(project / ".git")
        assert (root / "env").samefile(project / "env")
        assert not (root / "__pycache__").exists()
        assert (root / ".." / "data").samefile(project.parent / "data")
    assert not root.exists()


@pytest.mark.parametrize(
    ("word", "inner"),
    [("train.py", None), ("{}/train.py", "train.py"), ("--config={}/run.yaml", "run.yaml"), ("{}", "."), ("--root={}", "."),
     ("{}/env/bin/python", None), ("{}2/train.py", None), ("/usr/bin/python", None), ("a=b", None)],
)  # fmt: skip
def test_paths_of_the_command(project: pathlib.Path, word: str, inner: str | None) -> None:
    """Those of the project lead into the copy, those of its interpreter and all others stay."""
    given = word.format(os.path.realpath(project))
    with rehearsed(job(project, given)) as copied:
        (found,) = copied.command
    if inner is None:
        assert found == given
    else:
        path = os.path.normpath(os.path.join(copied.root, inner))
        assert found == (f"{word.partition('=')[0]}={path}" if "=" in word else path)


def test_the_environment_comes_back(project: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Modules of the project come from the copy while it is there, and nothing is remembered."""
    real = os.path.realpath(project)
    monkeypatch.setenv("PYTHONPATH", f"{real}/src:/elsewhere")
    monkeypatch.delenv("GRADFIX_STATE_DIR", raising=False)
    with rehearsed(job(project, "python")) as copied:
        own = f"{copied.root}/src:/elsewhere:{copied.root}/src:{copied.root}"
        assert os.environ["PYTHONPATH"] == own
        assert os.environ["GRADFIX_STATE_DIR"].startswith(os.path.dirname(os.path.dirname(copied.root)))
    assert os.environ["PYTHONPATH"] == f"{real}/src:/elsewhere"
    assert "GRADFIX_STATE_DIR" not in os.environ


def test_a_project_that_is_too_large(project: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is refused before anything is copied; what is only linked does not count."""
    monkeypatch.setattr(rehearsal, "MAX_FILES", 3)
    for number in range(9):
        (project / "env" / "bin" / str(number)).write_text("")
    with rehearsed(job(project, "python")):
        pass
    (project / "more").write_text("")
    with pytest.raises(UsageError, match="too large to be copied"), rehearsed(job(project, "python")):
        pass


def test_without_fix_there_is_nothing_to_rehearse(tmp_path: pathlib.Path) -> None:
    """One line, and status 2."""
    done = subprocess.run(
        [sys.executable, "-m", "gradfix", "run", "--dry-run", "--", "python", "train.py"],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 2
    assert done.stderr.startswith("gradfix: --dry-run is for --fix")


@pytest.mark.torch
def test_the_project_is_not_touched(tmp_path: pathlib.Path) -> None:
    """Verified in the copy, with the diff; here no file differs, none is new, and no patch is to be taken back."""
    pytest.importorskip("torch")
    root, state = tmp_path / "project", tmp_path / "state"
    root.mkdir()
    (root / "train.py").write_text(TRAIN)
    done = subprocess.run(
        [sys.executable, "-m", "gradfix", "run", "--fix", "--dry-run", "--no-probe", "--format", "json", "--", forked.python(), "train.py"],
        capture_output=True, text=True, cwd=root, env={**os.environ, "GRADFIX_STATE_DIR": str(state)},
    )  # fmt: skip
    told = json.loads(done.stdout)
    assert (done.returncode, told["status"], told["is_rehearsed"]) == (0, "verified", True)
    assert "+    h = h + 1" in told["applied"][0]["patch"]
    assert "gradfix-copy" not in done.stdout
    assert {one.name for one in root.iterdir()} == {"train.py"}
    assert (root / "train.py").read_text() == TRAIN
    assert not (state / "journal").exists()
