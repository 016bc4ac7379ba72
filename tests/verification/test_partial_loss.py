"""A term that a program left out of its loss, since it caught the failure, changes the gradients when it comes back."""

from __future__ import annotations

import json
import pathlib

import pytest

from tests import forked
from tests.verification.programs import gradfix

ADVERSARIAL = """import torch
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed, self.head = nn.Embedding(9, 4), nn.Linear(4, 2)

    def classify(self, embedded):
        return self.head(embedded.mean(1).tanh())

    def forward(self, ids):
        return self.classify(self.embed(ids))


def adversary(model, embedded, clean, counts):
    try:
        (grad,) = torch.autograd.grad(clean, embedded, retain_graph=True)
    except RuntimeError:
        return 0.0
    counts.append(1)
    return model.classify(embedded + grad.sign()).square().mean()


torch.manual_seed(0)
model, counts = Model(), []
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(6):
    ids = torch.randint(0, 9, (4, 5))
    embedded = model.embed(ids)
    clean = model(ids).square().mean()
    loss = clean + adversary(model, embedded, clean, counts)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
if len(counts) < 6:
    raise ValueError(f"the adversary had a part in {len(counts)} of 6 steps")
"""


@pytest.mark.torch
def test_the_term_comes_back(tmp_path: pathlib.Path) -> None:
    """What trained without the term has other gradients with it, and that is no reason against the edit."""
    pytest.importorskip("torch")
    (tmp_path / "train.py").write_text(ADVERSARIAL)
    words = ("run", "--fix", "--unsafe-fixes", "--format", "json", "--no-probe", "--", forked.python(), "train.py")
    told = json.loads(gradfix(tmp_path, *words).stdout)
    assert told["status"] == "verified"
    assert "clean = model.classify(embedded).square().mean()" in (tmp_path / "train.py").read_text()
