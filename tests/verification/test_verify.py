"""A verification is green only by proof, and leaves the project as it was."""

from __future__ import annotations

import hashlib
import pathlib

import pytest

from explainer.verification.verify import Watch, verify_command
from tests import forked
from tests.gate import some_at_gate

pytestmark = pytest.mark.torch
LOOP = """
import torch
torch.manual_seed(0)
model = torch.nn.Linear(3, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for step in range(1000):
    optimizer.zero_grad()
    loss = {loss}
    loss.backward()
    optimizer.step()
    {after}
"""
LOSS = "model(torch.randn(4, 3)).square().mean()"
RED = {
    "an exception": (LOOP.format(loss="model(torch.randn(4, 2)).mean()", after=""), "it failed: RuntimeError"),
    "a loss that is not finite": (LOOP.format(loss=f"{LOSS} * float('nan')", after=""), "the loss of backward 1 is nan"),
    "gradients that are not finite": (LOOP.format(loss="(model(torch.randn(4, 3)) * 0).sqrt().mean()", after=""), "not finite"),
    "gradients that stay zero": (LOOP.format(loss=f"{LOSS} * 0.0", after=""), "are zero over 3 steps"),
    "nothing that trains": (
        LOOP.format(loss="torch.ones(1, requires_grad=True).sum()", after=""), "no parameter of the 1st optimizer (SGD) got a gradient",
    ),
    "a failure in the last step": (LOOP.format(loss=LOSS, after="assert step < 1"), "it failed: AssertionError"),
}  # fmt: skip


@pytest.fixture(autouse=True)
def _torch():
    pytest.importorskip("torch")


def verify(folder: pathlib.Path, text: str, **watch):
    (folder / "train.py").write_text(text)
    return verify_command((forked.python(), "train.py"), str(folder), Watch(**watch))


@pytest.mark.parametrize(
    ("text", "says"),
    some_at_gate(RED, ["gradients that are not finite", "gradients that stay zero", "a failure in the last step"]),
)
def test_red(tmp_path: pathlib.Path, text: str, says: str) -> None:
    """Red says why."""
    proof = verify(tmp_path, text)
    assert proof.verdict == "red"
    assert any(says in reason for reason in proof.reasons)


def test_green_after_enough_steps(tmp_path: pathlib.Path) -> None:
    """The program is stopped once its optimizer has made the steps; losses and gradients are told."""
    proof = verify(tmp_path, LOOP.format(loss=LOSS, after=""), steps=4)
    assert (proof.verdict, proof.status) == ("green", 0)
    (process,) = proof.processes
    assert process.is_stopped
    assert (len(process.rows), len(process.losses)) == (4, 4)
    assert all(one.given == 4 for one in process.parameters)


def test_past_the_failure(tmp_path: pathlib.Path) -> None:
    """Steps go past those that had been made when it failed."""
    proof = verify(tmp_path, LOOP.format(loss=LOSS, after=""), steps=2, past=(("0 SGD", 6),))
    assert dict(proof.processes[0].steps) == {"0 SGD": 7}


STRAIGHT = """
import torch
torch.manual_seed(0)
model = torch.nn.Linear(3, 1)
first, second = (torch.optim.SGD(model.parameters(), lr=0.1) for _ in range(2))
model(torch.ones(2, 3)).sum().backward()
first.step()
model(torch.ones(2, 3)).sum().backward()
second.step()
"""


@pytest.mark.slow
def test_a_program_without_loop_is_past_the_failure_at_its_end(tmp_path: pathlib.Path) -> None:
    """It failed after its optimizers' only steps; it now ends well, and no run of it makes more of them."""
    assert verify(tmp_path, STRAIGHT, past=(("0 SGD", 1), ("1 SGD", 1))).verdict == "green"
    assert verify(tmp_path, STRAIGHT, past=(("0 SGD", 2),)).verdict == "inconclusive"


@pytest.mark.slow
def test_a_step_with_a_closure(tmp_path: pathlib.Path) -> None:
    """The gradients that a closure makes inside of the step are seen, and so are those that it does not make."""
    text = """
import torch
torch.manual_seed(0)
model = torch.nn.Linear(3, 1)
optimizer = torch.optim.LBFGS(model.parameters(), lr=0.1)
def closure():
    optimizer.zero_grad()
    loss = model(torch.ones(2, 3)).square().sum()
    loss.backward()
    return loss
for _ in range(2):
    optimizer.step(closure)
"""
    proof = verify(tmp_path, text)
    assert (proof.verdict, proof.processes[0].rows[0].given) == ("green", 2)
    assert verify(tmp_path, text.replace("    loss.backward()\n", "")).verdict == "red"


def test_not_past_the_failure_is_inconclusive(tmp_path: pathlib.Path) -> None:
    """A program that no longer trains ends well and proves nothing."""
    proof = verify(tmp_path, "import torch\nprint(torch.ones(2))\n", past=(("0 SGD", 6),))
    assert proof.verdict == "inconclusive"
    assert proof.reasons == ("the 1st optimizer (SGD) had made 6 steps when it failed, and made 0 now",)


def test_out_of_time_is_inconclusive(tmp_path: pathlib.Path) -> None:
    """A program that never steps is not green."""
    proof = verify(tmp_path, "import time, torch\ntime.sleep(60)\n", timeout=4)
    assert (proof.verdict, proof.reasons[0][:15]) == ("inconclusive", "it ran out of t")


def test_a_program_without_optimizer_runs_to_its_end(tmp_path: pathlib.Path) -> None:
    """Its end is the proof, and that nothing trained is noted."""
    proof = verify(tmp_path, "import torch\nprint(torch.ones(2))\n")
    assert proof.verdict == "green"
    assert "no optimizer step" in proof.notes[0]


SAVES = """
import os, torch
open("metrics.txt", "a").write("more")
os.makedirs("runs/1", exist_ok=True)
open("runs/1/events", "w").write("x")
os.remove("old.txt")
torch.save({"a": torch.ones(1)}, "model.pt")
torch.save({"a": torch.ones(1)}, "new.pt")
assert torch.load("new.pt")["a"] == 1
model = torch.nn.Linear(2, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(9):
    model(torch.ones(1, 2)).sum().backward()
    optimizer.step()
"""


READ_AGAIN = """
import os, tempfile, torch
from safetensors import safe_open
from safetensors.torch import load_file, save_file
model = torch.nn.Linear(2, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
with tempfile.TemporaryDirectory() as folder:
    for path in (os.path.join(folder, "a"), "checkpoints/new", "old"):
        os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
        assert path == "old" or not os.path.exists(path)
        save_file({"a": torch.ones(1)}, path)
        assert os.path.isfile(path) and load_file(path)["a"] == 1
        with safe_open(path, "pt") as file:
            assert file.get_tensor("a") == 1
for _ in range(9):
    model(torch.ones(1, 2)).sum().backward()
    optimizer.step()
"""


def test_what_is_saved_can_be_read_again(tmp_path: pathlib.Path) -> None:
    """By the library that wrote it and by its path, as `from_pretrained` does; the old file stays, the new one goes."""
    pytest.importorskip("safetensors")
    (tmp_path / "old").write_bytes(b"precious")
    before = snapshot(tmp_path)
    proof = verify(tmp_path, READ_AGAIN)
    assert proof.verdict == "green", proof.output
    (tmp_path / "train.py").unlink()
    assert snapshot(tmp_path) == before


def snapshot(folder: pathlib.Path) -> dict[str, tuple[str, int]]:
    files = [path for path in sorted(folder.rglob("*")) if path.is_file()]
    return {str(one): (hashlib.sha256(one.read_bytes()).hexdigest(), one.stat().st_mode) for one in files}


def test_nothing_is_harmed(tmp_path: pathlib.Path) -> None:
    """Files that the run adds, changes, removes or saves are as they were afterwards, and folders too."""
    (tmp_path / "train.py").write_text(SAVES)
    (tmp_path / "metrics.txt").write_text("kept\n")
    (tmp_path / "old.txt").write_text("old\n")
    (tmp_path / "model.pt").write_bytes(b"\x00" * (2 << 20))
    before = snapshot(tmp_path)
    proof = verify(tmp_path, SAVES)
    assert proof.verdict == "green"
    assert snapshot(tmp_path) == before
    assert not (tmp_path / "runs").exists()
