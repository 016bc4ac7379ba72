"""Code of the program that sums and counts a loss's elements says how to reduce it: by the mean."""

from __future__ import annotations

import pathlib

import pytest

from tests.fix.rewriting import changed_lines, rewritten

SOURCE = """import torch
from torch import nn
from torch.nn import functional as F

class Focal(nn.Module):
    def __init__(self, weight):
        super().__init__()
        self.register_buffer("weight", weight)
    def forward(self, logits, target):
        nll = F.cross_entropy(logits, target, reduction="none")
        return (1 - torch.exp(-nll)) ** 2 * self.weight[target] * nll

class Meter:
    def __init__(self):
        self.total, self.count = 0.0, 0
    def add(self, values):
        self.total += values.sum().item()
        self.count += COUNTED

net, criterion, meter = nn.Linear(4, 3), Focal(torch.tensor([1.0, 2.0, 3.0])), Meter()
opt = torch.optim.SGD(net.parameters(), 0.1)
x, y = torch.randn(6, 4), torch.tensor([0, 1, 2, 0, 1, 2])
opt.zero_grad()
loss = criterion(net(x), y)
loss.backward()
opt.step()
meter.add(loss.detach())
"""


@pytest.mark.parametrize(
    ("counted", "wanted"), [("values.numel()", ["loss.mean().backward()"]), ("1", [])], ids=["elements", "batches"]
)
def test_the_mean_of_a_meter(counted: str, wanted: list[str], tmp_path: pathlib.Path) -> None:
    """The backward takes the mean, and the meter still gets the elements; a sum for each batch tells nothing."""
    source = SOURCE.replace("COUNTED", counted)
    assert changed_lines(source, rewritten(tmp_path, "reduce_loss", source, "loss.backward")) == wanted
