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
CASES = {
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
