"""A softmax in steps subtracts the largest score first."""

from __future__ import annotations

import pathlib

import pytest

from tests.fix.rewriting import changed_lines, rewritten

HEAD = """import torch
from torch import nn
net = nn.Linear(4, 4)
x, mask = torch.randn(8, 4), torch.ones(8, 4)
to = torch.randint(0, 3, (8,))
e = net(x)
s = net(x)[:, 0]
"""
TAIL = "loss = a.pow(2).sum()\nloss.backward()\n"
RIGHT = {
    "a quotient by something else": "w = torch.exp(e)\na = w / mask.sum(1, keepdim=True)",
    "without the kept dimension": "w = torch.exp(e)\na = w / w.sum(1)",
    "a sum of all": "w = torch.exp(e)\na = w / w.sum()",
    "used elsewhere": "w = torch.exp(e)\nprint(w)\na = w / w.sum(1, keepdim=True)",
    "data": "w = torch.exp(x)\na = e * (w / w.sum(1, keepdim=True))",
    "no exponential": "w = torch.relu(e)\na = w / w.sum(1, keepdim=True)",
    "by another index": "w = torch.exp(s)\nn = torch.zeros(3).index_add_(0, to, w)\na = w / n[to.flip(0)]",
    "of another tensor": "w = torch.exp(s)\nn = torch.zeros(3).index_add_(0, to, mask[:, 0])\na = w / n[to]",
    "an expression": "w = torch.exp(e - 1)\na = w / w.sum(1, keepdim=True)",
}
HELPER = """def total(src, index, n):
    return torch.zeros(n, *src.shape[1:], dtype=src.dtype).index_add(0, index, src)
def filled(values, where):
    out = torch.zeros(3)
    out.scatter_add_(0, where, values)
    return out
"""
RIGHT["a helper by another index"] = HELPER + "w = s.exp()\na = w / total(w, to, 3)[to.flip(0)]"
RIGHT["a helper of something else"] = HELPER + "w = s.exp()\na = w / total(mask[:, 0], to, 3)[to]"
WRONG = {
    "by a helper": (
        HELPER + "w = s.exp()\na = w / total(w, to, 3)[to]",
        'w = (s - torch.zeros(3, *s.shape[1:], dtype=s.dtype).index_reduce(0, to, s.detach(), "amax", include_self=False)[to]).exp()',
    ),
    "by a helper that fills": (
        HELPER + "w = torch.exp(s)\nn = filled(w, to)\na = w / n[to]",
        'w = torch.exp(s - torch.zeros(3).scatter_reduce(0, to, s.detach(), "amax", include_self=False)[to])',
    ),
    "in steps": (
        "w = torch.exp(e)\na = w / w.sum(1, keepdim=True)",
        "w = torch.exp(e - e.detach().amax(1, keepdim=True))",
    ),
    "a method, a mask, a small constant": (
        "w = e.exp()\nw = w * mask\nn = torch.sum(w, dim=-1, keepdim=True)\na = w / (n + 1e-8)",
        "w = (e - e.detach().amax(-1, keepdim=True)).exp()",
    ),
    "of each node": (
        "w = torch.exp(s)\nn = torch.zeros(3).index_add_(0, to, w)\na = w / n[to]",
        'w = torch.exp(s - torch.zeros(3).index_reduce(0, to, s.detach(), "amax", include_self=False)[to])',
    ),
    "scattered": (
        "w = torch.exp(s)\na = w / (torch.zeros(3).scatter_add_(0, to, w)[to] + 1e-16)",
        'w = torch.exp(s - torch.zeros(3).scatter_reduce(0, to, s.detach(), "amax", include_self=False)[to])',
    ),
}


@pytest.mark.parametrize("body", RIGHT.values(), ids=RIGHT)
def test_other_quotients_stay(tmp_path: pathlib.Path, body: str) -> None:
    """Where a shift would not cancel, or is seen elsewhere, nothing changes."""
    source = f"{HEAD}{body}\n{TAIL}"
    assert rewritten(tmp_path, "shift_exponent", source, "loss.backward()") == source


@pytest.mark.parametrize(("body", "wanted"), WRONG.values(), ids=WRONG)
def test_the_largest_score_is_subtracted(tmp_path: pathlib.Path, body: str, wanted: str) -> None:
    """The exponential gets it; a second time nothing is left to do."""
    after = rewritten(tmp_path, "shift_exponent", f"{HEAD}{body}\n{TAIL}", "loss.backward()")
    assert changed_lines(f"{HEAD}{body}\n{TAIL}", after) == [wanted]
    assert rewritten(tmp_path, "shift_exponent", after, "loss.backward()") == after


@pytest.mark.torch
@pytest.mark.parametrize(("body", "wanted"), WRONG.values(), ids=WRONG)
def test_it_is_the_same_function(tmp_path: pathlib.Path, body: str, wanted: str) -> None:
    """The loss and the gradients are those of the program as it was, where that does not overflow."""
    torch = pytest.importorskip("torch")
    source = f"{HEAD}{body}\n{TAIL}".replace("import torch\n", "import torch\ntorch.manual_seed(0)\n", 1)
    seen = []
    for text in (source, rewritten(tmp_path, "shift_exponent", source, "loss.backward()")):
        space: dict = {}
        exec(text, space)  # noqa: S102 - the programs above
        seen.append((space["loss"].detach(), space["net"].weight.grad))
    assert wanted in text
    torch.testing.assert_close(seen[0], seen[1])
