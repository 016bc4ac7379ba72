"""A failure is noted where it is raised and explained with live facts, whatever drives the training."""

from __future__ import annotations

import importlib.util
import os
import pathlib
import subprocess
import sys

import pytest

from explainer.verification.reach import why_unwatched
from tests.conftest import PATH
from tests.gate import some_at_gate
from tests.live.test_noting import run

pytestmark = pytest.mark.torch
STEP = """
    model = torch.nn.Linear(2, 1)
    loss = model(torch.ones(1, 2)).detach().sum()
    loss.backward()
"""
TYPER = f"""
import torch, typer
app = typer.Typer()
@app.command()
def train(lr: float = 0.1):{STEP}
app()
"""
HYDRA = f"""
import hydra, torch
@hydra.main(version_base=None, config_path=None)
def train(config):{STEP}
train()
"""
TRAINER = """
import torch
from transformers import LlamaConfig, LlamaForCausalLM, Trainer, TrainingArguments
config = LlamaConfig(
    vocab_size=32, hidden_size=16, intermediate_size=16, num_hidden_layers=1, num_attention_heads=2, num_key_value_heads=2
)
model = LlamaForCausalLM(config).requires_grad_(False)
data = [{"input_ids": torch.arange(8), "labels": torch.arange(8)} for _ in range(8)]
arguments = TrainingArguments("out", report_to=[], use_cpu=True, max_steps=2)
Trainer(model=model, args=arguments, train_dataset=data).train()
"""
LIGHTNING = """
import lightning, torch
class Net(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.fc = torch.nn.Linear(2, 1)
    def training_step(self, batch, index):
        return self.fc(batch).detach().sum()
    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.1)
trainer = lightning.Trainer(max_steps=2, accelerator="cpu", logger=False, enable_checkpointing=False)
trainer.fit(Net(), torch.utils.data.DataLoader(torch.ones(8, 2)))
"""
ACCELERATE = """
import accelerate, torch
accelerator = accelerate.Accelerator(cpu=True)
model = torch.nn.Linear(2, 1)
model, optimizer = accelerator.prepare(model, torch.optim.SGD(model.parameters(), lr=0.1))
accelerator.backward(model(torch.ones(1, 2)).detach().sum())
"""
SPAWN = f"""
import multiprocessing, sys
def main():
    import torch{STEP}
if __name__ == "__main__":
    process = multiprocessing.get_context("spawn").Process(target=main)
    process.start()
    process.join()
    sys.exit(process.exitcode)
"""
SWALLOWED = f"""
import sys, torch
def main():{STEP}
try:
    main()
except RuntimeError as error:
    print(error)
    sys.exit(1)
"""
RANKS = """
import torch
import torch.distributed as dist
dist.init_process_group("gloo")
model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(2, 1))
for step in range(2):
    loss = model(torch.ones(1, 2)).sum()
    if dist.get_rank() == 1 and step == 1:
        loss = loss.detach()
    loss.backward()
"""
PROGRAMS = {
    "typer": (TYPER, ("typer",)),
    "hydra": (HYDRA, ("hydra",)),
    "transformers Trainer": (TRAINER, ("transformers", "accelerate")),
    "lightning": (LIGHTNING, ("lightning",)),
    "accelerate": (ACCELERATE, ("accelerate",)),
    "multiprocessing spawn": (SPAWN, ()),
    "caught, and only its message printed": (SWALLOWED, ()),
}


@pytest.fixture(autouse=True)
def _torch(monkeypatch):
    pytest.importorskip("torch")
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setenv("OMP_NUM_THREADS", "1")


def noted(done, message: str = "element 0 of tensors does not require grad") -> list[dict[str, str]]:
    """The facts of each failure with such a message."""
    failures = [failure for one in done.processes for failure in one.failures]
    return [dict(one.facts) for one in failures if one.message.startswith(message)]


@pytest.mark.parametrize(
    ("text", "needs"),
    some_at_gate(
        PROGRAMS, ["transformers Trainer", "lightning", "multiprocessing spawn", "caught, and only its message printed"]
    ),
)
def test_the_failure_is_noted(tmp_path: pathlib.Path, text: str, needs: tuple[str, ...]) -> None:
    """One failure, with what the loss and the parameters were; a cause is found; nothing of ours is in what was printed."""
    for name in needs:
        if importlib.util.find_spec(name) is None:
            pytest.skip(f"{name} is not installed")
    (tmp_path / "train.py").write_text(text)
    done, output = run(tmp_path, "train.py")
    (facts,) = noted(done)
    assert (done.status, facts["live_loss_requires_grad"], facts["live_reached"]) == (1, "no", "0")
    assert done.report is not None
    assert done.report.findings[0].cause.startswith("no-graph/")
    assert "explainer/live" not in output


def test_the_modes_are_those_of_the_moment(tmp_path: pathlib.Path) -> None:
    """Grad mode is off inside of the block that failed and on again where the exception ends the program."""
    text = "import torch\nw = torch.ones(2, requires_grad=True)\nwith torch.no_grad():\n    (w * 2).sum().backward()\n"
    (tmp_path / "train.py").write_text(text)
    done, _ = run(tmp_path, "train.py")
    (facts,) = noted(done)
    assert facts["live_grad_enabled"] == "no"
    assert done.report is not None
    assert (done.report.findings[0].cause, done.report.findings[0].confidence) == ("no-graph/grad-mode-off", "certain")


def test_one_of_two_ranks_fails(tmp_path: pathlib.Path) -> None:
    """Under torchrun the failed rank is noted as such, with its facts; the other rank's is a cascade."""
    if importlib.util.find_spec("torch.distributed.run") is None:
        pytest.skip("this torch has no torchrun")
    (tmp_path / "train.py").write_text(RANKS)
    done, _ = run(tmp_path, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", "train.py")
    ranks = {one.rank: one for one in done.processes}
    assert {"0", "1"} <= ranks.keys()
    (failure,) = ranks["1"].failures
    assert dict(failure.facts)["live_loss_requires_grad"] == "no"
    assert len(noted(done)) == 1
    assert done.report is not None
    assert done.report.findings[0].cause.startswith("no-graph/")


LAUNCHER = "import subprocess, sys\nsubprocess.run([sys.executable, 'train.py'], check=True)\n"


def test_what_no_rule_knows_is_not_blamed_on_the_launcher(tmp_path: pathlib.Path) -> None:
    """accelerate starts a script so: its own exception, whose cause is known, only repeats that the script has failed."""
    (tmp_path / "launch.py").write_text(LAUNCHER)
    (tmp_path / "train.py").write_text("raise ValueError('shard 7 has no labels')\n")
    done, _ = run(tmp_path, "launch.py")
    assert done.report is not None
    assert not done.report.findings
    assert done.report.unknown is not None
    assert done.report.unknown.why == "no rule recognises `ValueError: shard 7 has no labels`"


def test_an_interpreter_of_another_environment(tmp_path: pathlib.Path) -> None:
    """The program's interpreter need not be ours, nor know gradfix."""
    import torch

    subprocess.run(
        [sys.executable, "-m", "venv", "--without-pip", "--system-site-packages", tmp_path / "v"], check=True
    )
    (packages,) = (tmp_path / "v" / "lib").glob("python3*/site-packages")
    (packages / "torch.pth").write_text(str(pathlib.Path(torch.__file__).parent.parent))
    (tmp_path / "train.py").write_text(f"import torch\ndef main():{STEP}\nmain()\n")
    done, _ = run(tmp_path, "train.py", python=str(tmp_path / "v" / "bin" / "python"))
    (facts,) = noted(done)
    assert facts["live_trainable"] == "2"


WATCHED = {
    "plain": ["python", "train.py", "-I"],
    "options that do not matter": ["python3.11", "-u", "-X", "dev", "-Wignore", "train.py", "-S"],
    "a module": ["python", "-m", "train", "-I"],
    "a command": ["python", "-c", "pass", "-E"],
    "a value that looks like a flag": ["python", "-X", "-I", "train.py"],
    "a launcher": ["torchrun", "--nproc-per-node", "2", "train.py", "-I"],
    "nothing": [],
}
UNWATCHED = {
    "isolated": (["python", "-I", "train.py"], "`python -I` is isolated from PYTHONPATH"),
    "without site": (["/usr/bin/python3", "-S", "train.py"], "`python -S` starts without `site`"),
    "without environment": (["python3.12", "-uE", "-m", "train"], "`python -E` ignores PYTHONPATH"),
    "behind a launcher": (["env", "A=1", "nice", "python", "-Im", "train"], "`python -I` is isolated"),
    "another machine": (["ssh", "node7", "python", "train.py"], "`ssh` runs the program on another machine"),
    "a container": (["docker", "run", "image"], "`docker` runs the program in a container"),
}


@pytest.mark.parametrize("command", WATCHED.values(), ids=WATCHED.keys())
def test_nothing_is_said_of_what_can_be_watched(command: list[str]) -> None:
    """The program's own arguments are not the interpreter's."""
    assert why_unwatched(command) is None


@pytest.mark.parametrize(("command", "says"), UNWATCHED.values(), ids=UNWATCHED.keys())
def test_what_cannot_be_watched_is_named(command: list[str], says: str) -> None:
    """One line that names the option or the place."""
    told = why_unwatched(command)
    assert told is not None
    assert told.startswith(says)
    assert "\n" not in told


@pytest.mark.parametrize("option", ["-I", "-S"])
def test_the_line_follows_the_explanation(tmp_path: pathlib.Path, option: str) -> None:
    """The failure is explained from what was printed, and one line says why nothing more is known."""
    command = [
        sys.executable,
        "-m",
        "gradfix",
        "run",
        "--no-probe",
        "--",
        sys.executable,
        option,
        "-c",
        "raise ValueError",
    ]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, env={**os.environ, "PYTHONPATH": PATH})
    assert done.returncode == 1
    last = done.stderr.splitlines()[-1]
    assert last.startswith(f"gradfix: `python {option}`")
