"""What a fix lays open is mended in its turn, also where the program only warns of it, or says nothing."""

from __future__ import annotations

import json
import pathlib

import pytest

from tests import forked
from tests.verification.programs import gradfix

pytestmark = pytest.mark.torch
SERIES = """import torch
from torch import nn

torch.manual_seed(0)
x = torch.linspace(-3, 3, 10)
y = torch.sin(x)
model = nn.Sequential(nn.Linear(1, 8), nn.Tanh(), nn.Linear(8, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for _ in range(6):
    loss = nn.functional.mse_loss(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""
HEADS = """import torch
from torch import nn


class Prices(nn.Module):
    def __init__(self):
        super().__init__()
        self.trunk = nn.Linear(3, 8)
        self.heads = {"price": nn.Linear(8, 1)}

    def forward(self, x):
        return self.heads["price"](self.trunk(x))


torch.manual_seed(0)
model = Prices()
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for _ in range(6):
    x = torch.randn(4, 3)
    loss = nn.functional.mse_loss(model(x), x.sum(1))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""
EXPANDED = """import torch
from torch import nn

torch.manual_seed(0)


def holes(images):
    mask = torch.ones(1, 8).expand(len(images), 8)
    for at in range(len(images)):
        mask[at, at] = 0
    return images * mask


def jitter(images):
    gain = torch.rand(len(images), 1).expand_as(images)
    gain.mul_(0.4).add_(0.8)
    return images * gain


model = nn.Linear(8, 3)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for _ in range(6):
    loss = nn.functional.cross_entropy(model(jitter(holes(torch.randn(4, 8)))), torch.tensor([0, 1, 2, 0]))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""
CASES = {
    "an edit that alone was not enough": (
        EXPANDED,
        [
            (".expand(len(images), 8)", ".expand(len(images), 8).clone()"),
            ("expand_as(images)", "expand_as(images).clone()"),
        ],
    ),
    "a failure, then a warning": (SERIES, [("model(x)", "model(x.unsqueeze(-1)).squeeze(-1)")]),
    "two silent faults": (
        HEADS,
        [
            ('{"price": nn.Linear(8, 1)}', 'nn.ModuleDict({"price": nn.Linear(8, 1)})'),
            ("model(x), x", "model(x).squeeze(-1), x"),
        ],
    ),
}


@pytest.mark.parametrize(("source", "edits"), CASES.values(), ids=CASES)
def test_both_faults_are_mended(
    source: str, edits: list[tuple[str, str]], tmp_path: pathlib.Path, tmp_path_factory, monkeypatch
) -> None:
    pytest.importorskip("torch")
    monkeypatch.setenv("GRADFIX_STATE_DIR", str(tmp_path_factory.mktemp("state")))
    (tmp_path / "train.py").write_text(source)
    words = ("run", "--fix", "--unsafe-fixes", "--format", "json", "--no-probe")
    told = json.loads(gradfix(tmp_path, *words, "--", forked.python(), "train.py").stdout)
    wanted = source
    for old, new in edits:
        wanted = wanted.replace(old, new)
    assert told["status"] == "verified", told["rounds"]
    assert (tmp_path / "train.py").read_text() == wanted
