"""What is merged into a weight is merged without a graph."""

from __future__ import annotations

import pathlib

import pytest

from tests.fix.rewriting import changed_lines, rewritten

SOURCE = """import torch
from torch import nn

torch.manual_seed(0)


class Adapted(nn.Linear):
    def __init__(self):
        super().__init__(3, 3)
        self.weight.requires_grad_(False)
        self.low = nn.Parameter(torch.ones(3, 1))

    def delta(self):
        return self.low @ self.low.T

    def merge(self):
        self.weight.add_(self.delta())

    def unmerge(self):
        self.weight -= self.delta()

    def forward(self, x):
        return super().forward(x) + x @ self.delta()


layer = Adapted()
opt = torch.optim.SGD([layer.low], 0.1)
for _ in range(3):
    loss = layer(torch.ones(2, 3)).square().mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
    layer.merge()
    layer.unmerge()
"""
RIGHT = {
    "decorated": SOURCE.replace("    def merge", "    @torch.no_grad()\n    def merge").replace(
        "    def unmerge", "    @torch.no_grad()\n    def unmerge"
    ),
    "no weight": SOURCE.replace("self.weight.add_", "self.total.add_").replace("self.weight -=", "self.total -="),
    "no module": SOURCE.replace("nn.Linear)", "Layer)"),
}


@pytest.mark.torch
def test_the_weight_has_no_graph(tmp_path: pathlib.Path) -> None:
    """The program trains, and the frozen weight stays a leaf."""
    torch = pytest.importorskip("torch")
    with pytest.raises((RuntimeError, ValueError)):
        exec(SOURCE, {})
    after = rewritten(tmp_path, "merge_without_grad", SOURCE, "loss.backward", message="a second time")
    assert changed_lines(SOURCE, after) == [
        "with torch.no_grad():", "self.weight.add_(self.delta())", "with torch.no_grad():", "self.weight -= self.delta()"
    ]  # fmt: skip
    done: dict = {}
    exec(after, done)
    assert done["layer"].weight.is_leaf
    assert torch.isfinite(done["loss"])


@pytest.mark.parametrize("source", RIGHT.values(), ids=RIGHT)
def test_other_writes_stay(source: str, tmp_path: pathlib.Path) -> None:
    assert rewritten(tmp_path, "merge_without_grad", source, "loss.backward", message="a second time") == source
