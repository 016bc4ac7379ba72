"""Logarithms of exponentials written by hand become the library's fused forms."""

from __future__ import annotations

import pytest

from tests.fix.rewriting import changed_lines, rewritten

HEAD = """import torch
import torch.nn.functional as F
from torch import nn
net = nn.Linear(4, 4)
x, y = torch.randn(8, 4), torch.rand(8, 4)
out = net(x)
"""

RIGHT = {
    "a fused form": "loss = -torch.log_softmax(out, -1).sum()",
    "a guarded probability": "loss = -torch.log(torch.softmax(out, -1) + 1e-8).sum()",
    "a logarithm of data": "loss = (out * torch.log(torch.softmax(x, -1))).sum()",
    "a logarithm of something else": "loss = torch.log(out.relu() + 1).sum()",
    "an exponential without logarithm": "loss = (out.exp() / 4).sum()",
    "a quotient of different exponentials": "loss = (out.exp() / y.exp().sum(-1, keepdim=True)).sum()",
    "logits that change in between": "p = torch.softmax(out, -1)\nout = out * 2\nloss = torch.log(p).sum()",
    "a probability of a second call": "p = torch.softmax(net(x), -1)\nloss = torch.log(p).sum()",
    "two exponentials added": "loss = torch.log(out.exp() + y.exp()).sum()",
}


@pytest.mark.parametrize("body", RIGHT.values(), ids=RIGHT)
def test_other_forms_stay(tmp_path, body: str) -> None:
    """What is stable, guarded, without gradient, or not the same function is left alone."""
    source = f"{HEAD}{body}\nloss.backward()\n"
    assert rewritten(tmp_path, "stable_form", source, "loss.backward()") == source


WRONG = {
    "a logarithm of a softmax": (
        "loss = -torch.log(torch.softmax(out, dim=1)).sum()",
        "loss = -torch.log_softmax(out, dim=1).sum()",
    ),
    "by methods": ("loss = -F.softmax(out, -1).log().sum()", "loss = -torch.log_softmax(out, -1).sum()"),
    "through a name": (
        "p = out.softmax(-1)\nloss = -(y * p.log()).sum()",
        "loss = -(y * torch.log_softmax(out, -1)).sum()",
    ),
    "binary cross entropy": (
        "p = torch.sigmoid(out)\nloss = -(y * torch.log(p) + (1 - y) * torch.log(1 - p)).mean()",
        "loss = -(y * F.logsigmoid(out) + (1 - y) * F.logsigmoid(-out)).mean()",
    ),
    "a logarithm of a sum of exponentials": (
        "loss = torch.log(torch.exp(out).sum(-1)).sum()",
        "loss = torch.logsumexp(out, -1).sum()",
    ),
    "with kept dimension": (
        "loss = (out - out.exp().sum(dim=-1, keepdim=True).log()).sum()",
        "loss = (out - torch.logsumexp(out, dim=-1, keepdim=True)).sum()",
    ),
    "a softplus": ("loss = torch.log(1 + torch.exp(out)).sum()", "loss = F.softplus(out).sum()"),
    "a softplus with log1p": ("loss = torch.log1p(out.exp()).sum()", "loss = F.softplus(out).sum()"),
    "a softmax": (
        "loss = (torch.exp(out) / torch.exp(out).sum(-1, keepdim=True)).sum()",
        "loss = torch.softmax(out, dim=-1).sum()",
    ),
    "a sigmoid": ("loss = (1 / (1 + torch.exp(-out))).sum()", "loss = torch.sigmoid(out).sum()"),
}


@pytest.mark.parametrize(("body", "wanted"), WRONG.values(), ids=WRONG)
def test_unstable_forms_are_fused(tmp_path, body: str, wanted: str) -> None:
    """All forms of a function are replaced together; a second time nothing is left to do."""
    source = f"{HEAD}{body}\nloss.backward()\n"
    after = rewritten(tmp_path, "stable_form", source, "loss.backward()")
    assert changed_lines(source, after) == [wanted]
    assert rewritten(tmp_path, "stable_form", after, "loss.backward()") == after


def test_every_form_of_a_function_goes(tmp_path) -> None:
    """A focal loss has its two logarithms on two lines: both are replaced in one edit."""
    source = (
        "import torch\nfrom torch import nn\n\n\nclass Focal(nn.Module):\n    def forward(self, logits, y):\n"
        "        p = torch.sigmoid(logits)\n        pos = (1 - p) ** 2 * torch.log(p) * y\n"
        "        neg = p ** 2 * torch.log(1 - p) * (1 - y)\n        return -(pos + neg).mean()\n"
    )
    after = rewritten(tmp_path, "stable_form", source)
    assert "nn.functional.logsigmoid(logits) * y" in after
    assert "nn.functional.logsigmoid(-logits) * (1 - y)" in after
