"""Tensors are made, registered or moved where the model is."""

from __future__ import annotations

import pytest

from tests.fix.rewriting import changed_lines, rewritten

HEAD = """import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.f = nn.Linear(4, 4)
"""
RIGHT = {
    "made on the device": (
        HEAD
        + "\n    def forward(self, x):\n        h = torch.zeros(x.shape[0], 4, device=x.device)\n        return self.f(x) + h\n",
        "return self.f",
        {},
    ),
    "moved at once": (
        HEAD
        + "\n    def forward(self, x):\n        h = torch.zeros(x.shape[0], 4).to(x)\n        return self.f(x) + h\n",
        "return self.f",
        {},
    ),
    "like the input": (
        HEAD + "\n    def forward(self, x):\n        return self.f(x) + torch.zeros_like(x)\n",
        "return self.f",
        {},
    ),
    "a function that is not named": (
        HEAD
        + "\n    def forward(self, x):\n        return self.f(x)\n\n\ndef other(x):\n    return x.sum() + torch.ones(3)\n",
        "return self.f",
        {},
    ),
    "a buffer": (
        HEAD
        + "        self.register_buffer('m', torch.ones(4))\n\n    def forward(self, x):\n        return self.f(x) * self.m\n",
        "return self.f",
        {},
    ),
    "a number": (
        HEAD + "        self.n = 3\n\n    def forward(self, x):\n        return self.f(x) * self.n\n",
        "return self.f",
        {},
    ),
}
WRONG = {
    "made in forward": (
        HEAD + "\n    def forward(self, x):\n        h = torch.zeros(x.shape[0], 4)\n        return self.f(x) + h\n",
        "return self.f",
        {},
        ["h = torch.zeros(x.shape[0], 4, device=x.device)"],
    ),
    "positions": (
        HEAD + "\n    def forward(self, ids):\n        p = torch.arange(ids.size(1))\n        return self.f(ids) + p\n",
        "return self.f",
        {},
        ["p = torch.arange(ids.size(1), device=ids.device)"],
    ),
    "made in a helper": (
        "import torch\n\n\ndef mask(x):\n    return x.masked_fill(torch.ones(4, 4).tril() == 0, 0)\n",
        "return x",
        {},
        ["return x.masked_fill(torch.ones(4, 4, device=x.device).tril() == 0, 0)"],
    ),
    "a plain attribute": (
        HEAD
        + "        self.m = torch.ones(4).tril()\n\n    def forward(self, x):\n        return self.f(x) * self.m\n",
        "return self.f",
        {},
        ['self.register_buffer("m", torch.ones(4).tril())'],
    ),
    "constants of each other": (
        HEAD
        + "        betas = torch.linspace(1e-4, 0.02, 9)\n        self.betas = betas\n        self.steps = len(betas)\n"
        "        self.kept = torch.cumprod(1 - betas, 0)\n        self.root = (1 - self.kept).sqrt()\n"
        "\n    def forward(self, x, t):\n        return self.f(x) * self.root[t]\n",
        "return self.f",
        {},
        [
            'self.register_buffer("betas", betas)',
            'self.register_buffer("kept", torch.cumprod(1 - betas, 0))',
            'self.register_buffer("root", (1 - self.kept).sqrt())',
        ],
    ),
    "a batch": (
        HEAD + "\n\nnet = Net().to(device)\nfor x in loader:\n    out = net(x)\n",
        "out =",
        {},
        ["out = net(x.to(device))"],
    ),
}


@pytest.mark.parametrize(("source", "at", "given"), RIGHT.values(), ids=RIGHT)
def test_right_programs_stay(tmp_path, source: str, at: str, given: dict) -> None:
    """Tensors with a device, buffers, and functions that the traceback does not name are left alone."""
    assert rewritten(tmp_path, "make_on_input_device", source, at or None, **given) == source


@pytest.mark.parametrize(("source", "at", "given", "wanted"), WRONG.values(), ids=WRONG)
def test_faults_are_cured(tmp_path, source: str, at: str, given: dict, wanted: list[str]) -> None:
    """One tensor moves at a time; a second time nothing is left to do."""
    after = rewritten(tmp_path, "make_on_input_device", source, at or None, **given)
    assert changed_lines(source, after) == wanted
    assert rewritten(tmp_path, "make_on_input_device", after, None if at not in after else at or None, **given) == after
