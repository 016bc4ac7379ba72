"""Tensors are made, registered or moved where the model is."""

from __future__ import annotations

import pytest

from tests.fix.rewriting import best, changed_lines, failed, line_of, rewritten, write

HEAD = """import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.f = nn.Linear(4, 4)
"""
TABLE = (
    "import torch\nfrom torch import nn\n\n\ndef curve(n):\n    t = torch.linspace(0, 1, n + 1)\n    f = torch.cos(t) ** 2\n    return (1 - f[1:] / f[:-1]).clamp(max=0.9)\n\n\n"
    "def waves(n):\n    t = torch.arange(n)\n    return t.cos(), t.sin()\n\n\nclass Schedule(nn.Module):\n    def __init__(self, steps):\n        super().__init__()\n"
    '        betas = curve(steps)\n        self.register_buffer("betas", betas)\n'
)
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
    "computed of a layer": (
        HEAD
        + "        self.w = torch.exp(self.f.weight)\n        self.v = torch.cat([self.f(torch.ones(4)), torch.ones(4)])\n\n    def forward(self, x):\n        return self.f(x) * self.w\n",
        "return self.f",
        {"tensors": {"self.w": "[4, 4] float32", "self.v": "[8] float32"}},
    ),
    "a tensor that is trained": (
        HEAD
        + "        self.w = torch.ones(4, requires_grad=True)\n\n    def forward(self, x):\n        return self.f(x) * self.w\n",
        "return self.f",
        {"tensors": {"self.w": "[4] float32"}},
    ),
    "of an object that is no module": (
        HEAD.replace("(nn.Module)", "")
        + "        self.m = torch.ones(4)\n\n    def apply(self, x):\n        return self.f(x) * self.m\n",
        "return self.f",
        {"tensors": {"self.m": "[4] float32"}},
    ),
    "what is on the GPU": (
        HEAD
        + "        self.kept = LIBRARY.table(9)\n\n    def forward(self, x, t):\n        return self.f(x) * self.kept[t]\n",
        "return self.f",
        {"tensors": {"self.kept": "[9] float32 on cuda", "t": "[4] int64"}},
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
    "a constant of a function": (
        TABLE
        + "        self.kept = torch.cumprod(1.0 - betas, dim=0)\n        self.cos, self.sin = waves(steps)\n\n    def noisy(self, x, t):\n        return x * self.kept[t]\n",
        "return x *",
        {},
        ['self.register_buffer("kept", torch.cumprod(1.0 - betas, dim=0))'],
    ),
    "a constant of a method that makes it": (
        TABLE
        + "        self._fill(steps)\n\n    def _fill(self, steps):\n        self.kept = torch.exp(-curve(steps))\n\n    def noisy(self, x, t):\n        return x * self.kept[t]\n",
        "return x *",
        {},
        ['self.register_buffer("kept", torch.exp(-curve(steps)))'],
    ),
    "a tensor that was seen": (
        HEAD
        + "        self.kept = LIBRARY.table(9)\n\n    def forward(self, x, t):\n        return self.f(x) * self.kept[t]\n",
        "return self.f",
        {"tensors": {"self.kept": "[9] float32", "t": "[4] int64 on cuda"}},
        ['self.register_buffer("kept", LIBRARY.table(9))'],
    ),
    "set anew in forward": (
        HEAD
        + "        self.h = torch.zeros(4)\n\n    def forward(self, x):\n        self.h = self.f(x) + self.h\n        return self.h\n",
        "self.h = self.f(x)",
        {"tensors": {"self.h": "[4] float32"}},
        ['self.register_buffer("h", torch.zeros(4))'],
    ),
    "declared before it is made": (
        HEAD
        + "        self.m = None\n        self.m = torch.ones(4)\n\n    def forward(self, x):\n        return self.f(x) * self.m\n",
        "return self.f",
        {},
        ['self.register_buffer("m", None)', 'self.register_buffer("m", torch.ones(4))'],
    ),
    "where a state dict is loaded": (
        HEAD
        + "        self.m = torch.ones(4).tril()\n\n    def forward(self, x):\n        return self.f(x) * self.m\n\n\ndef start(net, path):\n    net.load_state_dict(torch.load(path))\n",
        "return self.f",
        {},
        ['self.register_buffer("m", torch.ones(4).tril(), persistent=False)'],
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


def test_leads_before_an_index_on_the_cpu(tmp_path) -> None:
    """What the failing line reads of its module is believed more than a copy of the index, behind which the rest would fail."""
    source = WRONG["a constant of a function"][0]
    program = write(tmp_path, {"train.py": source})
    tensors = {"self.kept": "[9] float32", "t": "[4] int64 on cuda", "x": "[4] float32 on cuda"}
    incident = failed(
        {"train.py": line_of(source, "return x *")},
        "indices should be either on cpu or on the same device",
        tensors=tensors,
    )
    buffer, index = (best(name, program, incident=incident) for name in ("make_on_input_device", "move_operand"))
    assert buffer is not None
    assert index is not None
    assert buffer.belief - 0.4 > index.belief - 0.8
