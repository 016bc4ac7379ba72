"""Programs that fail before the edit train after it, with the gradients of a right program that is written otherwise."""

from __future__ import annotations

import contextlib
import io

import pytest

from tests.fix.rewriting import rewritten

HEAD = """import torch
import torch.nn.functional as F
from torch import nn
torch.manual_seed(0)
net = nn.Linear(4, 3)
x, y = torch.randn(8, 4), torch.rand(8, 3)
"""
TAIL = "\nloss.backward()\nnn.utils.clip_grad_norm_(net.parameters(), 1e6, error_if_nonfinite=True)\n"
ALL = {"options": {"kinds": ["root", "log", "quotient", "power", "arc"]}}

CASES = {
    "a distance that is 0 for one pair": (
        "guard_argument", ALL, "a, b = net(x), net(x.clone().roll(0, 0) + torch.arange(8)[:, None].clamp(max=1))\nloss = ((a - b) ** 2).sum(-1).sqrt().mean()",
        "a, b = net(x), net(x.clone() + torch.arange(8)[:, None].clamp(max=1))\nloss = torch.linalg.vector_norm(a - b, dim=-1).mean()",
    ),
    "a logarithm in a branch": (
        "safe_input_of_branch", {}, "p = net(x).relu()\np = p * (y > 0.5)\nloss = torch.where(p > 0.1, torch.log(p), 0.0).pow(2).sum()",
        "p = net(x).relu()\np = p * (y > 0.5)\nloss = torch.log(p[p > 0.1]).pow(2).sum()",
    ),
    "a quotient under a mask": (
        "safe_input_of_branch", {}, "m = (y > 0.5).float()\nd = m * 2\nloss = torch.where(d > 0, net(x) / d, 0.0).pow(2).sum()",
        "loss = (net(x)[y > 0.5] / 2).pow(2).sum()",
    ),
    "cross entropy of saturated probabilities": (
        "stable_form", {}, "logit = net(x * 1000)\np = torch.sigmoid(logit)\nt = (y > 0.5).float()\nloss = -(t * torch.log(p) + (1 - t) * torch.log(1 - p)).mean()",
        "loss = F.binary_cross_entropy_with_logits(net(x * 1000), (y > 0.5).float())",
    ),
    "an entropy of saturated probabilities": (
        "stable_form", {}, "logits = net(x * 500)\np = logits.softmax(-1)\nloss = -(p * p.log()).sum(-1).mean()",
        "loss = torch.distributions.Categorical(logits=net(x * 500)).entropy().mean()",
    ),
    "a sum of large exponentials": (
        "stable_form", {}, "out = net(x * 500)\nloss = torch.log(torch.exp(out).sum(-1)).mean()",
        "out = net(x * 500)\ntop = out.max(-1, keepdim=True).values.detach()\nloss = ((out - top).exp().sum(-1).log() + top.squeeze(-1)).mean()",
    ),
    "a row that is masked throughout": (
        "finite_mask", {}, "out = net(x)\nhidden = torch.zeros(8, 3, dtype=torch.bool)\nhidden[2] = True\nhidden[4, 1] = True\nscores = out.masked_fill(hidden, float('-inf'))\nloss = (torch.softmax(scores, -1) @ net.weight)[torch.arange(8) != 2].pow(2).sum()",
        "out = net(x)\nhidden = torch.zeros(8, 3, dtype=torch.bool)\nhidden[4, 1] = True\nkept = torch.arange(8) != 2\nloss = (torch.softmax(out[kept].masked_fill(hidden[kept], float('-inf')), -1) @ net.weight).pow(2).sum()",
    ),
    "a mean over nothing": (
        "guard_argument", ALL, "mask = (y > 0.5).float() * (torch.arange(8)[:, None] != 3)\nmeans = (net(x) * mask).sum(1) / mask.sum(1)\nloss = means[mask.sum(1) > 0].pow(2).sum()",
        "mask = (y > 0.5) & (torch.arange(8)[:, None] != 3)\nout = net(x)\nloss = sum(out[i][mask[i]].mean().pow(2) for i in range(8) if mask[i].any())",
    ),
}  # fmt: skip


def gradients(source: str):
    """The gradients that a program leaves in `net`."""
    scope: dict = {}
    with contextlib.redirect_stdout(io.StringIO()):
        exec(compile(source, "train.py", "exec"), scope)  # noqa: S102
    return [parameter.grad for parameter in scope["net"].parameters()]


@pytest.mark.torch
@pytest.mark.parametrize(("codemod", "given", "body", "right"), CASES.values(), ids=CASES)
def test_gradients_are_those_that_were_meant(tmp_path, codemod: str, given: dict, body: str, right: str) -> None:
    """Before the edit clipping finds NaN; after it the gradients are those of the reference."""
    torch = pytest.importorskip("torch")
    source = f"{HEAD}{body}{TAIL}"
    with pytest.raises(RuntimeError, match="non-finite"):
        gradients(source)
    after = rewritten(tmp_path, codemod, source, "nn.utils.clip_grad_norm_", **given)
    torch.testing.assert_close(gradients(after), gradients(f"{HEAD}{right}{TAIL}"), rtol=1e-4, atol=1e-5)
