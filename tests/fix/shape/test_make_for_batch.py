"""What is made once for a full batch is made for the batch that came; each program runs, fails, is mended and runs."""

from __future__ import annotations

import pathlib

import pytest

pytestmark = pytest.mark.torch
torch = pytest.importorskip("torch")

from tests.fix.mending import mended, run  # noqa: E402

SOURCE = """import torch
from torch import nn
from torch.nn import functional as F


class Contrast(nn.Module):
    def __init__(self, batch_size, temperature=0.5):
        super().__init__()
        self.temperature = temperature
        n = 2 * batch_size
        self.register_buffer("pairs", torch.eye(n, dtype=torch.bool))
        self.partner = torch.arange(n).roll(batch_size)

    def forward(self, a, b):
        \"\"\"The loss of two views.\"\"\"
        z = torch.cat([a, b])
        scores = (z @ z.t() / self.temperature).masked_fill(self.pairs, -1e4)
        return F.cross_entropy(scores, self.partner)


torch.manual_seed(0)
rows = torch.randn(7, 3)
loss = Contrast(4)
full = loss(rows[:4], rows[:4] + 1)
out = loss(rows[4:], rows[4:] + 1)
"""
MENDED = """    def __init__(self, batch_size, temperature=0.5):
        super().__init__()
        self.temperature = temperature

    def forward(self, a, b):
        \"\"\"The loss of two views.\"\"\"
        batch_size = a.size(0)
        n = 2 * batch_size
        pairs = torch.eye(n, dtype=torch.bool, device=a.device)
        partner = torch.arange(n).roll(batch_size).to(a.device)
        z = torch.cat([a, b])
        scores = (z @ z.t() / self.temperature).masked_fill(pairs, -1e4)
        return F.cross_entropy(scores, partner)
"""
COUNTED = """import torch


class Index(torch.nn.Module):
    def __init__(self, size):
        super().__init__()
        self.size = size

    def forward(self, x):
        return x + torch.zeros(self.size, 1)


batch_size = 4
index = Index(batch_size)
out = index(torch.ones(3, 2)).sum()
"""
RIGHT = {
    "read by another method": SOURCE.replace(
        "    def forward", "    def shown(self):\n        return self.pairs\n\n    def forward"
    ),
    "used for something else": SOURCE.replace(
        "super().__init__()", "super().__init__()\n        assert batch_size > 1"
    ),
    "a state that lasts": SOURCE.replace(
        "        return F.cross", "        self.partner = self.partner.roll(1)\n        return F.cross"
    ),
    "a state that is written": SOURCE.replace(
        "        z = torch.cat", "        self.pairs[0] = True\n        z = torch.cat"
    ),
    "a parameter": SOURCE.replace("torch.arange(n).roll(batch_size)", "nn.Parameter(torch.ones(n).softmax(0))").replace(
        "F.cross_entropy(scores, self.partner)", "(scores.mean(1) * self.partner).sum()"
    ),
    "a draw": SOURCE.replace("torch.arange(n).roll(batch_size)", "torch.randperm(n)"),
    "no size of a batch": SOURCE.replace("batch_size", "width"),
    "a name that is taken": SOURCE.replace("z = torch.cat([a, b])", "n = torch.cat([a, b])\n        z = n"),
}


def test_it_follows_the_batch(tmp_path: pathlib.Path) -> None:
    """A full batch gives what it gave; what the constructor has no use for any more is gone."""
    after = mended("make_for_batch", SOURCE, tmp_path)
    assert MENDED in after
    before = SOURCE.rpartition("out = ")[0]
    told = run(after, tmp_path / "after.py")
    assert torch.equal(told["full"], run(before, tmp_path / "before.py")["full"])
    assert torch.isfinite(told["out"])


def test_a_size_that_is_kept(tmp_path: pathlib.Path) -> None:
    """The size itself is that of the batch."""
    after = mended("make_for_batch", COUNTED, tmp_path)
    assert "        size = x.size(0)\n        return x + torch.zeros(size, 1)\n" in after
    assert run(after, tmp_path / "after.py")["out"] == 6


@pytest.mark.parametrize("source", RIGHT.values(), ids=RIGHT)
def test_what_has_another_use_stays(source: str, tmp_path: pathlib.Path) -> None:
    assert mended("make_for_batch", source, tmp_path) == source
