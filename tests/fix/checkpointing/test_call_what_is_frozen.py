"""A segment that records no graph on purpose is called plainly."""

from __future__ import annotations

import pathlib

import pytest

from tests.fix.rewriting import diff_lines, rewritten

BRANCHES = """import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

class Branches(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem, self.online, self.target = nn.Linear(4, 4), nn.Linear(4, 2), nn.Linear(4, 2)
        self.target.requires_grad_(False)

    @torch.no_grad()
    def look(self, h):
        return self.target(h)

    def predict(self, h):
        return self.online(h)

    def forward(self, x):
        h = self.stem(x)
        p = checkpoint(self.predict, h, use_reentrant=True)
        t = checkpoint(self.look, h, use_reentrant=True)
        return (p - t).square().mean()

loss = Branches()(torch.ones(3, 4))
loss.backward()
"""
SAID = "none of output has requires_grad=True, this checkpoint() is not necessary"
STAYS = {
    "it trains": BRANCHES.replace("        self.target.requires_grad_(False)\n", ""),
    "it records a graph": BRANCHES.replace("    @torch.no_grad()\n", ""),
    "it runs more": BRANCHES.replace("return self.target(h)", "return self.target(h) + self.online(h)"),
}


def test_the_target_is_called_plainly(tmp_path: pathlib.Path) -> None:
    """The other segment keeps its checkpoint, and the import."""
    after = rewritten(tmp_path, "call_what_is_frozen", BRANCHES, "loss.backward()", message=SAID)
    assert diff_lines(BRANCHES, after) == [
        "-        t = checkpoint(self.look, h, use_reentrant=True)",
        "+        t = self.look(h)",
    ]


@pytest.mark.parametrize("name", STAYS)
def test_what_would_train_stays(tmp_path: pathlib.Path, name: str) -> None:
    assert rewritten(tmp_path, "call_what_is_frozen", STAYS[name], "loss.backward()", message=SAID) == STAYS[name]


def test_another_failure(tmp_path: pathlib.Path) -> None:
    assert rewritten(tmp_path, "call_what_is_frozen", BRANCHES, "loss.backward()") == BRANCHES
