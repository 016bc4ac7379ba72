"""A graph that is mended halfway trains: layers of the optimizer that stay cut off are the next round."""

from __future__ import annotations

import json
import pathlib

import pytest

from tests import forked
from tests.verification.programs import gradfix

pytestmark = pytest.mark.torch
PROGRAM = """import torch
from torch import nn


class Probe(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder, self.norm, self.head = nn.Linear(8, 8), nn.LayerNorm(8), nn.Linear(8, 3)

    def forward(self, x):
        with torch.no_grad():
            features = self.encoder(x)
            features = self.norm(features)
            logits = self.head(features)
        return logits


torch.manual_seed(0)
model = Probe()
optimizer = torch.optim.SGD([{owned}], lr=0.1)
for _ in range(8):
    optimizer.zero_grad()
    nn.functional.cross_entropy(model(torch.randn(4, 8)), torch.tensor([0, 1, 2, 0])).backward()
    optimizer.step()
"""
HEAD = "            logits = self.head(features)\n"
NORM = "            features = self.norm(features)\n"


@pytest.fixture(autouse=True)
def _torch(tmp_path_factory, monkeypatch):
    pytest.importorskip("torch")
    monkeypatch.setenv("GRADFIX_STATE_DIR", str(tmp_path_factory.mktemp("state")))


@pytest.mark.parametrize(
    ("owned", "moved"),
    [
        pytest.param("*model.norm.parameters(), *model.head.parameters()", (NORM, HEAD), id="the norm learns as well"),
        pytest.param("*model.head.parameters()", (HEAD,), id="the head alone", marks=pytest.mark.slow),
    ],
)
def test_what_the_optimizer_owns_leaves_the_block(owned: str, moved: tuple[str, ...], tmp_path: pathlib.Path) -> None:
    """And nothing else does."""
    text = PROGRAM.replace("{owned}", owned)
    (tmp_path / "train.py").write_text(text)
    command = (forked.python(), "train.py")
    done = gradfix(tmp_path, "run", "--fix", "--unsafe-fixes", "--format", "json", "--no-probe", "--", *command)
    assert json.loads(done.stdout)["status"] == "verified"
    for line in moved:
        text = text.replace(line, line[4:])
    assert (tmp_path / "train.py").read_text() == text
