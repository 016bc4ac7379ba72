"""A checkpointed segment without a graph is told where layers in it were to train, also if torch's warning is filtered."""

from __future__ import annotations

import pathlib
import subprocess
import sys

import pytest

from explainer.model.verification import RED
from explainer.verification.verify import Watch, verify_command
from tests import forked
from tests.conftest import PATH
from tests.gate import some_at_gate
from tests.live.test_unowned import run

pytestmark = pytest.mark.torch
pytest.importorskip("torch")

PROGRAM = """import warnings
import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

warnings.filterwarnings("ignore")


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem, self.trunk, self.head = nn.Linear(3, 4), nn.Linear(4, 4), nn.Linear(4, 2)
        self.spare = nn.Linear(4, 1)

    def forward(self, x):
        h = self.stem(x)
        h = checkpoint(CALL, h, use_reentrant=True)
        return self.head(torch.tanh(h))


torch.manual_seed(0)
net = Net()
net.stem.requires_grad_(False)
opt = torch.optim.SGD([one for one in net.parameters() if one.requires_grad], lr=0.1)
for _ in range(4):
    loss = net(torch.randn(8, 3)).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
"""
CAUSE = "no-graph/checkpoint-inputs-need-grad"
SEEN = {
    "a layer": PROGRAM.replace("CALL", "self.trunk"),
    "a function that closes over it": PROGRAM.replace("CALL", "lambda h: self.trunk(h)"),
    "a list that is handed in": PROGRAM.replace("CALL, h", "run, [self.trunk], h").replace("class Net", "def run(layers, h):\n    for one in layers:\n        h = one(h)\n    return h\n\n\nclass Net"),
}  # fmt: skip
MEANT = {
    "a segment that is frozen": SEEN["a layer"].replace("net.stem.", "net.trunk.requires_grad_(False)\nnet.stem."),
    "an evaluation beside training": SEEN["a layer"].replace("net.stem.requires_grad_(False)\n", "").replace(
        "    opt.step()", "    opt.step()\n    with torch.no_grad():\n        net(torch.randn(8, 3))"
    ),
    "a spare layer in a segment that is evaluated": PROGRAM.replace("CALL", "lambda h: (self.trunk(h), self.spare)[0]").replace(
        "net.stem.requires_grad_(False)\n", ""
    ).replace("    opt.step()", "    opt.step()\n    with torch.no_grad():\n        net(torch.randn(8, 3))"),
    "inputs that require grad": SEEN["a layer"].replace("h = self.stem(x)", "h = self.stem(x).requires_grad_()"),
}  # fmt: skip

# The function of each segment holds all layers, those of the last segment too, which train.
STACK = """import torch
from torch import nn
from torch.utils.checkpoint import checkpoint, checkpoint_sequential


class Part(nn.Module):
    def __init__(self, first, last):
        super().__init__()
        self.lift = nn.Linear(first, last)

    def forward(self, x):
        return torch.tanh(self.lift(x))


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.parts = nn.Sequential(*[Part(4, 4) for _ in range(4)])
        self.head = nn.Linear(4, 2)

    def some(self, first, last):
        def forward(h):
            for part in self.parts[first:last]:
                h = part(h)
            return h
        return forward

    def forward(self, x):
        h = RUN
        return self.head(h)


torch.manual_seed(0)
net = Net()
opt = torch.optim.SGD(net.parameters(), lr=0.1)
for _ in range(4):
    loss = net(torch.randn(8, 4)).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
"""
SEQUENTIAL = STACK.replace("RUN", "checkpoint_sequential(self.parts, 2, x, use_reentrant=True)")
BY_HAND = STACK.replace("RUN", "self.some(2, 4)(checkpoint(self.some(0, 2), x, use_reentrant=True))")
SEEN |= {
    "the first segment of a sequence": SEQUENTIAL,
    "three segments, the last of one layer": SEQUENTIAL.replace(", 2, x", ", 3, x"),
    "a stretch of the layers": BY_HAND,
    "a method of a model, some of whose layers run outside": BY_HAND.replace("self.some(0, 2), x", "self.early, x").replace(
        "    def forward(self, x):\n        h =", "    def early(self, h):\n        return self.parts[1](self.parts[0](h))\n\n    def forward(self, x):\n        h ="
    ),
    "layers chosen by a lambda": BY_HAND.replace("self.some(0, 2), x", "lambda h: self.parts[:2](h), x"),
}  # fmt: skip
MEANT |= {
    "a sequence whose input requires grad": SEQUENTIAL.replace("2, x,", "2, x.requires_grad_(),"),
    "a sequence without reentrance": SEQUENTIAL.replace("use_reentrant=True", "use_reentrant=False"),
    "a sequence whose first segment is frozen": SEQUENTIAL.replace("opt =", "net.parts[:2].requires_grad_(False)\nopt ="),
    "a sequence of one segment": SEQUENTIAL.replace(", 2, x", ", 1, x"),
    "a sequence behind a layer that trains": SEQUENTIAL.replace("2, x,", "2, self.parts[0](x),"),
    "a layer that was dropped in training and runs in the evaluation": BY_HAND.replace(
        "checkpoint(self.some(0, 2), x,", "checkpoint(self.some(1, 1) if self.training else self.some(0, 1), x,"
    ).replace("    opt.step()", "    opt.step()\n    with torch.no_grad():\n        net.eval()(torch.randn(8, 4))\n    net.train()"),
}  # fmt: skip


@pytest.fixture(autouse=True)
def _here(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", PATH)


@pytest.mark.parametrize("source", some_at_gate(SEEN, ["a list that is handed in", "the first segment of a sequence"]))
def test_a_segment_that_was_to_train(tmp_path: pathlib.Path, source: str) -> None:
    """However the segment's layers are given to `checkpoint`."""
    status, _, cause = run(tmp_path, source)
    assert (status, cause) == (0, CAUSE)


@pytest.mark.parametrize("source", some_at_gate(MEANT, ["a segment that is frozen"]))
def test_a_segment_that_is_right(tmp_path: pathlib.Path, source: str) -> None:
    """Frozen layers, an evaluation, and inputs that require grad: nothing is said, though a spare layer has no gradient."""
    assert run(tmp_path, source) == (0, [], None)


@pytest.mark.slow
def test_where_torch_warns(tmp_path: pathlib.Path) -> None:
    """The warning names the file of torch, as it does without us."""
    (tmp_path / "train.py").write_text(SEQUENTIAL)
    command = [sys.executable, "-m", "gradfix", "run", "--", sys.executable, "train.py"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    warned = [one for one in done.stderr.splitlines() if "UserWarning: None of the inputs" in one]
    assert "/torch/utils/checkpoint.py:" in warned[0]


@pytest.mark.slow
def test_a_verification_sees_it_as_well(tmp_path: pathlib.Path) -> None:
    """A cure that leaves the segment without a graph is none."""
    (tmp_path / "train.py").write_text(SEEN["a layer"])
    found = verify_command((forked.python(), "train.py"), str(tmp_path), Watch(steps=3))
    assert found.verdict == RED
    assert "none of its inputs requires grad" in found.reasons[0]
