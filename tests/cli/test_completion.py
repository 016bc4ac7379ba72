"""Completion by the tab key: commands, causes, edits, patches, in the forms that the shells ask for; and in a real bash."""

from __future__ import annotations

import os
import pathlib
import shutil
import subprocess
import sys

import pytest

from tests.conftest import PATH

PROGRAM = "import torch\n\nw = torch.ones(4, requires_grad=True)\nx = torch.relu(w)\nx += 1\nloss = x.sum()\nloss.backward()\n"
LOG = """Traceback (most recent call last):
  File "train.py", line 7, in <module>
    loss.backward()
RuntimeError: one of the variables needed for gradient computation has been modified by an inplace operation: \
[torch.FloatTensor [4]], which is output 0 of ReluBackward0, is at version 1; expected version 0 instead.
"""
OFFERED = {
    "a command": ("gradfix ru", ["run", "rules"]),
    "a command of a group": ("gradfix rules se", ["search"]),
    "a cause": ("gradfix rules show nan/sq", ["nan/sqrt-at-zero"]),
    "a cause of an option": ("gradfix explain --cause nan/sqrt", ["nan/sqrt-at-zero"]),
    "a family": ("gradfix rules list opt", ["optimizer"]),
    "an edit of a log": ("gradfix fix train.log --fix ", ["out-of-place"]),
    "an edit of any": ("gradfix fix none.log --fix out-of-p", ["out-of-place"]),
    "a format": ("gradfix explain --format sa", ["sarif"]),
    "an option": ("gradfix run --keep", ["--keep-unproved"]),
    "no such cause": ("gradfix rules show nothing-such", []),
    "rules that cannot be read": ("gradfix rules show nan/ --knowledge none --web ", []),
}


@pytest.fixture
def project(tmp_path) -> pathlib.Path:
    """A program and its log."""
    (tmp_path / "train.py").write_text(PROGRAM)
    (tmp_path / "train.log").write_text(LOG)
    return tmp_path


def asked(shell: str, line: str) -> dict[str, str]:
    """What a shell puts into the environment to ask."""
    words = line.split(" ")
    given = (
        {"COMP_WORDS": line, "COMP_CWORD": str(len(words) - 1)} if shell == "bash" else {"_TYPER_COMPLETE_ARGS": line}
    )
    return {"_GRADFIX_COMPLETE": f"complete_{shell}", "_TYPER_COMPLETE_FISH_ACTION": "get-args", **given}


def complete(shell: str, line: str, folder: pathlib.Path, code: str = "") -> list[str]:
    """The lines that gradfix answers a shell with; `code` runs when it ends."""
    program = f"import atexit, sys\n{code}\nfrom explainer.cli.entry import main\nsys.exit(main([]))"
    environment = {
        **os.environ,
        **asked(shell, line),
        "PYTHONPATH": PATH,
        "GRADFIX_STATE_DIR": str(folder / "state"),
    }
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, env=environment, cwd=folder)
    assert done.stderr == ""
    return done.stdout.split("\n")[:-1]


@pytest.mark.parametrize(("line", "offered"), OFFERED.values(), ids=OFFERED)
def test_what_bash_is_offered(project, line: str, offered: list[str]) -> None:
    """The words that fit, and no errors where nothing does."""
    assert [one for one in complete("bash", line, project) if one] == offered


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_what_other_shells_are_offered(project, shell: str) -> None:
    """The same words, in the form of that shell."""
    told = "\n".join(complete(shell, "gradfix rules show nan/sq", project))
    assert "nan/sqrt-at-zero" in told
    assert "nan/pow-domain" not in told


def test_completing_loads_no_torch(project) -> None:
    """Nor what else of ours is slow to load: the shell waits."""
    code = "atexit.register(lambda: print(sorted({'torch', 'numpy', 'transformers', 'libcst', 'textual'} & set(sys.modules))))"
    assert complete("bash", "gradfix rules show nan/sq", project, code)[-1] == "[]"


def test_the_patches_that_can_be_undone(project, monkeypatch) -> None:
    """By their ids."""
    monkeypatch.setenv("GRADFIX_STATE_DIR", str(project / "state"))
    environment = {**os.environ, "PYTHONPATH": PATH}
    command = [sys.executable, "-m", "gradfix", "fix", "train.log", "--apply", "--no-probe"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=project, env=environment, check=True)
    name = done.stdout.rsplit("gradfix undo ", 1)[1].strip()
    assert complete("bash", "gradfix undo ", project) == [name]


SHELLS = {
    "bash": ["bash", "--norc", "-c", 'eval "$(gradfix --show-completion bash)"; COMP_WORDS=(gradfix rules show nan/sq); COMP_CWORD=3;'
             ' _gradfix_completion gradfix nan/sq show; printf "%s\\n" "${COMPREPLY[@]}"'],
    "zsh": ["zsh", "-f", "-c", 'autoload -U compinit; compinit -u; eval "$(gradfix --show-completion zsh)"; print $_comps[gradfix]'],
    "fish": ["fish", "--no-config", "-c", 'gradfix --show-completion fish | source; complete -C "gradfix rules show nan/sq"'],
}  # fmt: skip
SAID = {"bash": "nan/sqrt-at-zero", "zsh": "_gradfix_completion", "fish": "nan/sqrt-at-zero"}


@pytest.mark.parametrize("shell", SHELLS)
def test_in_the_shell_itself(project, shell: str) -> None:
    """The script that gradfix prints is taken by the shell, and completes in it."""
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not here")
    place = project / "bin"
    place.mkdir()
    (place / "gradfix").write_text(
        f"#!{sys.executable}\nimport sys\nfrom explainer.cli.entry import main\nsys.exit(main())\n"
    )
    (place / "gradfix").chmod(0o755)
    environment = {**os.environ, "PYTHONPATH": PATH, "PATH": f"{place}{os.pathsep}{os.environ['PATH']}"}
    environment.update(_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION="1")
    done = subprocess.run(SHELLS[shell], capture_output=True, text=True, env=environment, cwd=project)
    assert done.stdout.strip() == SAID[shell]
