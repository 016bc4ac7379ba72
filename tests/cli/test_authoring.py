"""`gradfix rules new | check | record`, as the author of a cause uses them."""

from __future__ import annotations

import pathlib
import subprocess
import sys

import pytest

from tests.conftest import ROOT


def gradfix(*words: str, cwd: pathlib.Path = ROOT) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-m", "gradfix", *words], capture_output=True, text=True, cwd=cwd)


def test_new_then_check(tmp_path: pathlib.Path) -> None:
    """A new folder is laid out whole; the checker asks for what is still to be written, by file and line."""
    made = gradfix("rules", "new", "mine/spin-lost", "--knowledge", str(tmp_path))
    assert made.returncode == 0
    assert {pathlib.Path(line).name for line in made.stdout.splitlines()} == {
        "cause.toml", "README.md", "broken.py", "fixed.py",
    }  # fmt: skip
    checked = gradfix("rules", "check", str(tmp_path))
    assert checked.returncode == 1
    assert "mine/spin-lost/README.md:3: 'What happens' says nothing yet" in checked.stdout


REFUSED = {
    "an id in capitals": ("new", "Mine/Spin-Lost"),
    "a slug of one word": ("new", "mine/spin"),
    "a path that leads out": ("new", "../mine/spin-lost"),
    "a folder that is not there": ("check", "/no/such/folder"),
    "a cause that is not there": ("record", "mine/never-written"),
    "a shape that is not there": ("record", "inplace/leaf-requires-grad", "--shape", "none"),
    "an interpreter that is none": ("record", "inplace/leaf-requires-grad", "--print", "--python", "/dev/null"),
}


@pytest.mark.parametrize("words", REFUSED.values(), ids=REFUSED.keys())
def test_refused(words: tuple[str, ...], tmp_path: pathlib.Path) -> None:
    """What cannot be done is one line on standard error and status 2; nothing is written."""
    before = {path for path in (ROOT / "knowledge").rglob("*") if "bundle" not in path.name}
    own = ("--knowledge", str(tmp_path)) if words[0] == "new" else ()
    run = gradfix("rules", *words, *own)
    assert run.returncode == 2
    assert run.stdout == ""
    assert len(run.stderr.strip().splitlines()) == 1
    assert run.stderr.startswith("gradfix: ")
    assert list(tmp_path.rglob("*")) == []
    assert {path for path in (ROOT / "knowledge").rglob("*") if "bundle" not in path.name} == before


def test_new_refuses_what_is_there(tmp_path: pathlib.Path) -> None:
    """A cause is never overwritten."""
    for _ in range(2):
        run = gradfix("rules", "new", "mine/spin-lost", "--knowledge", str(tmp_path))
    assert run.returncode == 2
    assert "is there already" in run.stderr


SHAPES = {
    "a program that does not parse": ("broken.py", "def f(:\n", "plain/broken.py:1: does not parse"),
    "a recording without header": (
        "printed/2.13.0.txt",
        "Traceback\n",
        "printed/2.13.0.txt:1: the first line is no header",
    ),
}


@pytest.mark.parametrize(("name", "text", "says"), SHAPES.values(), ids=SHAPES.keys())
def test_shapes_are_checked(tmp_path: pathlib.Path, name: str, text: str, says: str) -> None:
    """A shape needs programs that parse, and recordings that say where they come from."""
    gradfix("rules", "new", "mine/spin-lost", "--knowledge", str(tmp_path))
    path = tmp_path / "mine" / "spin-lost" / "plain" / name
    path.parent.mkdir(exist_ok=True)
    path.write_text(text)
    assert says in gradfix("rules", "check", str(tmp_path)).stdout


@pytest.mark.torch
def test_record(tmp_path: pathlib.Path) -> None:
    """A recording holds the releases, neutral paths and what the program printed."""
    pytest.importorskip("torch")
    gradfix("rules", "new", "mine/spin-lost", "--knowledge", str(tmp_path))
    broken = tmp_path / "mine" / "spin-lost" / "plain" / "broken.py"
    broken.write_text("import torch\ntorch.ones(2, requires_grad=True).add_(1)\n")
    run = gradfix("rules", "record", "mine/spin-lost", "--knowledge", str(tmp_path), "--python", sys.executable)
    import torch

    text = pathlib.Path(run.stdout.strip()).read_text()
    version = torch.__version__.partition("+")[0]
    assert text.startswith("# origin=recorded python=3.")
    assert f"torch={version}" in text.splitlines()[0]
    assert 'File "/home/user/project/broken.py", line 2, in <module>' in text
    assert "explained as inplace/leaf-requires-grad (certain)" in run.stderr
    assert str(tmp_path) not in text
