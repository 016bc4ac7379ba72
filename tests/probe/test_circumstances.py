"""What a run was made with: read from its words, its files, git and the environment, without secrets and without code."""

from __future__ import annotations

import os
import pathlib
import shutil
import subprocess
import sys

import pytest

from explainer.probe.circumstances import read_circumstances
from explainer.probe.command import find_python, read_command
from explainer.render.mask import mask_value

COMMANDS = {
    "a script": ("python train.py --lr 1", ("train.py", ("--lr", "1"))),
    "a launcher": ("torchrun --nproc-per-node 2 train.py --lr 1", ("train.py", ("--nproc-per-node", "2", "--lr", "1"))),
    "a module": ("python -m pkg.train --lr 1", ("-m pkg.train", ("--lr", "1"))),
    "a launcher's module": ("python -m torch.distributed.run train.py", ("train.py", ("-m", "torch.distributed.run"))),
    "a script of the shell": ("bash run.sh 3", ("run.sh", ("3",))),
    "a program": ("llamafactory-cli train a.yaml", ("llamafactory-cli", ("train", "a.yaml"))),
    "an option -c of a program": ("python train.py -c a.yaml", ("train.py", ("-c", "a.yaml"))),
    "a path in the project": ("python train.py ROOT/a.yaml", ("train.py", ("a.yaml",))),
    "an absolute script": ("python ROOT/sub/train.py", ("sub/train.py", ())),
    "nothing": ("", ("", ())),
}


@pytest.fixture
def root(tmp_path: pathlib.Path) -> pathlib.Path:
    for name in ("train.py", "run.sh", "sub/train.py", "pkg/train.py"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("")
    return tmp_path


@pytest.mark.parametrize(("line", "ran"), COMMANDS.values(), ids=COMMANDS.keys())
def test_the_program_of_a_command(root: pathlib.Path, line: str, ran: tuple) -> None:
    """The script or module names the program; the other words are its arguments, paths relative to the project."""
    found = read_command(line.replace("ROOT", str(root)).split(), str(root))
    assert (found.program, found.arguments) == ran


def test_code_is_not_kept() -> None:
    """Of `python -c CODE` a digest names the program; another code is another program."""
    one, other = (read_command(["python", "-c", code, "3"], "/") for code in ("secret_code()", "other()"))
    assert one.program != other.program
    assert (one.arguments, "secret_code" in one.program) == (("3",), False)


SECRETS = {
    "an option": ["--password", "hunter2"],
    "an option with a sign": ["--hub-token=abc"],
    "camel case": ["--apiKey", "abc"],
    "an override": ["db.password=abc"],
    "a known form": ["hf_abcdefghijklmnopqrstuvwxyz"],
    "an address": ["postgres://ann:geheim@db/x"],
}
NO_SECRETS = [
    "--tokenizer",
    "gpt2",
    "--max-tokens",
    "8",
    "--pad_token",
    "<pad>",
    "--author",
    "ann",
    "--keep",
    "3",
    "key=2",
]


@pytest.mark.parametrize("words", SECRETS.values(), ids=SECRETS.keys())
def test_secrets_are_masked(words: list[str]) -> None:
    """A value whose name or form says that it is a secret is not kept."""
    kept = " ".join(read_command(["python", "train.py", *words], "/").arguments)
    assert "***" in kept
    assert not any(secret in kept for secret in ("hunter2", "abc", "geheim"))


def test_what_is_no_secret() -> None:
    """Tokenizers, counts of tokens and special tokens are none."""
    assert read_command(["python", "train.py", *NO_SECRETS], "/").arguments == tuple(NO_SECRETS)
    assert mask_value("lr", "0.001") == "0.001"


def test_the_interpreter(tmp_path: pathlib.Path) -> None:
    """Named in the command, or in the first line of a script of its environment."""
    script = tmp_path / "torchrun"
    script.write_text(f"#!{sys.executable}\n")
    script.chmod(0o755)
    assert find_python([sys.executable, "train.py"]) == sys.executable
    assert find_python(["env", "A=1", sys.executable, "train.py"]) == sys.executable
    assert find_python([str(script), "train.py"]) == sys.executable
    assert find_python(["no-such-program"]) is None


PROGRAM = 'import json, model\nconfig = json.load(open("config.json"))\n'


@pytest.fixture
def project(tmp_path: pathlib.Path) -> pathlib.Path:
    (tmp_path / "train.py").write_text(PROGRAM)
    (tmp_path / "model.py").write_text("x = 1\n")
    (tmp_path / "other.py").write_text("y = 1\n")
    (tmp_path / "config.json").write_text(
        '{"lr": 0.1, "hub": {"api_key": "hunter2"}, "prompt": "' + "long " * 40 + '"}'
    )
    (tmp_path / "unread.json").write_text('{"lr": 3}')
    return tmp_path


def seen(project: pathlib.Path, *words: str, **options):
    return read_circumstances([sys.executable, "train.py", *words], str(project), {}, is_probed=False, **options)


def test_the_files_of_a_program(project: pathlib.Path) -> None:
    """The script and what it imports are known by digests of their content; other files are not looked at."""
    before = dict(seen(project).files)
    (project / "model.py").write_text("x = 2\n")
    after = dict(seen(project).files)
    assert set(before) == set(after) == {"train.py", "model.py"}
    assert (before["train.py"] == after["train.py"], before["model.py"] == after["model.py"]) == (True, False)


def test_the_settings_of_a_program(project: pathlib.Path) -> None:
    """Values of the files that the program names, or its command line; secrets masked, long ones as digests."""
    settings = dict(seen(project).settings)
    assert (settings["config.json: lr"], settings["config.json: hub.api_key"]) == ("0.1", "***")
    assert settings["config.json: prompt"].startswith("202 characters, ")
    assert not any(name.startswith("unread") for name in settings)
    assert dict(seen(project, "--config", "unread.json").settings)["unread.json: lr"] == "3"


@pytest.mark.skipif(shutil.which("git") is None, reason="needs git")
def test_git(project: pathlib.Path) -> None:
    """The commit and the files that differ from it, of those that people write; one that was wanted is looked at too."""
    git = ["git", "-c", "user.email=a@b", "-c", "user.name=a"]
    for words in (["init", "-q"], ["add", "train.py", "model.py", "config.json"], ["commit", "-qm", "x"]):
        subprocess.run([*git, *words], cwd=project, check=True)
    (project / "weights.bin").write_text("")
    found = seen(project)
    assert len(found.commit) == 12
    assert set(dict(found.files)) == {"train.py", "model.py", "other.py", "unread.json"}
    below = project / "sub"
    below.mkdir()
    (below / "new.py").write_text("")
    subprocess.run(["git", "add", "sub"], cwd=project, check=True)
    inside = read_circumstances(["python", "x.py"], str(below), {}, is_probed=False, also=["gone.py"])
    assert (inside.commit, set(dict(inside.files))) == (found.commit, {"new.py"})


def test_variables(project: pathlib.Path) -> None:
    """Only those that steer torch are looked at."""
    given = {"OMP_NUM_THREADS": "4", "AWS_SECRET_ACCESS_KEY": "geheim", "HOME": "/root", "WANDB_API_KEY": "geheim"}
    assert read_circumstances(["python", "train.py"], str(project), given, is_probed=False).variables == (
        ("OMP_NUM_THREADS", "4"),
    )


def test_the_environment_is_probed(project: pathlib.Path) -> None:
    """All packages of the program's interpreter, whatever their name; none of it with `--no-probe`."""
    found = read_circumstances([sys.executable, "train.py"], str(project), dict(os.environ))
    assert {"pytest", "packaging"} <= set(dict(found.packages))
    assert found.python.startswith(f"3.{sys.version_info.minor}")
    assert (seen(project).packages, seen(project).machine, seen(project).python) == (None, None, None)
