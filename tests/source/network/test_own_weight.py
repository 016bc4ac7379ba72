"""Weights that a module writes in its own forward, without grad."""

from __future__ import annotations

import pathlib

import pytest

from explainer.source.network.own_weight import rewritten_in_forward
from tests.fix.rewriting import write

FORWARD = """import torch
from torch import nn

class Layer(nn.Linear):
    def forward(self, x):
        with torch.no_grad():
            self.weight.div_(self.weight.norm(dim=1, keepdim=True))
        return super().forward(x)
"""
METHOD = """import torch
from torch import nn

class Critic(nn.Module):
    @torch.no_grad()
    def bound(self):
        for name, p in self.layers.named_parameters():
            p.mul_(0.9).clamp_(-1, 1)

    def forward(self, x):
        self.bound()
        return self.layers(x)
"""
HOOK = """import torch
from torch import nn

@torch.no_grad()
def project(layer, args):
    layer.weight.clamp_(min=0)

net = nn.Linear(2, 2)
net.register_forward_pre_hook(project)
"""
FOUND = {"in forward": (FORWARD, 7), "in a method": (METHOD, 8), "in a hook": (HOOK, 6)}
OTHERS = {
    "with grad": FORWARD.replace("torch.no_grad()", "nullcontext()"),
    "another method": METHOD.replace("        self.bound()\n", ""),
    "a buffer": HOOK.replace("layer.weight.clamp_", "layer.mask.clamp_"),
    "a gradient's hook": HOOK.replace("register_forward_pre_hook", "register_full_backward_hook"),
    "of another network": METHOD.replace(
        "for name, p in self.layers.named_parameters():\n            p.mul_(0.9).clamp_(-1, 1)",
        "for p, q in zip(self.layers.parameters(), self.fast.parameters()):\n            p.mul_(0.9).add_(q)",
    ),
}


@pytest.mark.parametrize(("source", "line"), FOUND.values(), ids=FOUND)
def test_where_a_weight_is_written(source: str, line: int, tmp_path: pathlib.Path) -> None:
    assert [one.lineno for _, one in rewritten_in_forward(write(tmp_path, {"net.py": source}))] == [line]


@pytest.mark.parametrize("source", OTHERS.values(), ids=OTHERS)
def test_other_writes(source: str, tmp_path: pathlib.Path) -> None:
    assert rewritten_in_forward(write(tmp_path, {"net.py": source})) == ()
