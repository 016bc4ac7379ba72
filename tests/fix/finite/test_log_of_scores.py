"""Logarithms of exponentials that were given names are computed from their scores, with the same values and gradients."""

from __future__ import annotations

import pathlib

import pytest

from tests.fix.rewriting import diff_lines, rewritten

HEAD = """import torch
import torch.nn.functional as F
from torch import nn
torch.manual_seed(0)
net = nn.Linear(4, 4)
x, y = torch.randn(8, 4), torch.randint(0, 4, (8,))
mask = torch.ones(8, 8).tril(-1) + torch.ones(8, 8).triu(1)
out = net(x)
"""
RIGHT = {
    "no exponential": "p = out.relu() + 1\nloss = torch.log(p / p.sum(1, keepdim=True)).mean()",
    "of data": "e = torch.exp(x)\nloss = (out * torch.log(e / e.sum(1, keepdim=True))).mean()",
    "scores that change in between": "e = torch.exp(out)\nout = out * 2\nloss = (out + torch.log(F.softmax(out, 1) - e)).mean()",
    "a difference": "e = torch.exp(out)\nloss = torch.log(e.sum(1) - e.min()).mean()",
    "a mean over all": "e = torch.exp(out)\nloss = torch.log(e.mean())",
    "a mean over two dimensions": "e = torch.exp(out)\nloss = torch.log(e.mean((0, 1)))",
    "a sum over nothing that is named": "e = torch.exp(out)\nloss = torch.log(e.sum())",
    "a clamped probability": "p = F.softmax(out, 1)\nloss = torch.log(p.clamp_min(0.1)).mean()",
    "a guarded softmax": "p = F.softmax(out, 1)\nloss = -(p * torch.log(p + 1e-8)).sum()",
    "a factor that trains": "e = torch.exp(out)\nloss = torch.log((e * out.sum()).sum(1)).mean()",
}
WRONG = {
    "a picked score and a sum": (
        "e = torch.exp(out)\nloss = -torch.log(e[torch.arange(8), y] / e.sum(dim=1)).mean()",
        ["-e = torch.exp(out)", "-loss = -torch.log(e[torch.arange(8), y] / e.sum(dim=1)).mean()",
         "+loss = -(out[torch.arange(8), y] - out.logsumexp(dim=1)).mean()"],
    ),
    "scores without a name, all but the diagonal": (
        "e = torch.exp(out @ out.t() / 2)\npos = e.diag()\nloss = -torch.log(pos / (e.sum(dim=1) - e.diag())).mean()",
        ["-e = torch.exp(out @ out.t() / 2)", "-pos = e.diag()", "-loss = -torch.log(pos / (e.sum(dim=1) - e.diag())).mean()",
         "+log_e = out @ out.t() / 2",
         '+loss = -(log_e.diag() - log_e.masked_fill(torch.eye(len(log_e), dtype=torch.bool, device=log_e.device), float("-inf")).logsumexp(dim=1)).mean()'],
    ),
    "a mask": (
        "e = torch.exp(out @ out.t())\nloss = -(e.gather(1, y[:, None]).squeeze(1) / (e * mask).sum(1)).log().mean()\nprint(e.max())",
        ["-e = torch.exp(out @ out.t())", "-loss = -(e.gather(1, y[:, None]).squeeze(1) / (e * mask).sum(1)).log().mean()",
         "+log_e = out @ out.t()", "+e = torch.exp(log_e)",
         "+loss = -(log_e.gather(1, y[:, None]).squeeze(1) - (log_e + mask.log()).logsumexp(1)).mean()"],
    ),
    "an epsilon": (
        "e = out.exp()\np = e / e.sum(1, keepdim=True)\nloss = -torch.log(p[range(8), y] + 1e-12).mean()",
        ["-e = out.exp()", "-p = e / e.sum(1, keepdim=True)", "-loss = -torch.log(p[range(8), y] + 1e-12).mean()",
         "+loss = -(out - out.logsumexp(1, keepdim=True))[range(8), y].mean()"],
    ),
    "a softmax that is read elsewhere": (
        "probs = F.softmax(out, dim=-1)\nloss = -torch.log(probs[torch.arange(8), y]).mean()\nprint(probs.argmax())",
        ["-loss = -torch.log(probs[torch.arange(8), y]).mean()",
         "+loss = -torch.log_softmax(out, dim=-1)[torch.arange(8), y].mean()"],
    ),
    "a mean along one dimension": (
        "w = out.exp()\nloss = -w.mean(0).log().mean()",
        ["-w = out.exp()", "-loss = -w.mean(0).log().mean()", "+loss = -(out.logsumexp(0) - out.new_tensor(out.shape[0]).log()).mean()"],
    ),
    "a mean beside `math`": (
        "import math\nw = out.exp()\nloss = -torch.log(w.mean(dim=1)).mean()",
        ["-w = out.exp()", "-loss = -torch.log(w.mean(dim=1)).mean()", "+loss = -(out.logsumexp(dim=1) - math.log(out.shape[1])).mean()"],
    ),
    "two sums": (
        "a, b = out[:4], out[4:]\nea = torch.exp(a)\neb = torch.exp(b)\nloss = torch.log(ea.sum(1) + eb.sum(1)).mean()",
        ["-ea = torch.exp(a)", "-eb = torch.exp(b)", "-loss = torch.log(ea.sum(1) + eb.sum(1)).mean()",
         "+loss = torch.logaddexp(a.logsumexp(1), b.logsumexp(1)).mean()"],
    ),
    "a power and a masked fill": (
        "e = torch.exp(out @ out.t())\nloss = torch.log(e.masked_fill(mask == 0, 0).sum(1) ** 2).mean()",
        ["-e = torch.exp(out @ out.t())", "-loss = torch.log(e.masked_fill(mask == 0, 0).sum(1) ** 2).mean()",
         "+log_e = out @ out.t()", '+loss = (2 * log_e.masked_fill(mask == 0, float("-inf")).logsumexp(1)).mean()'],
    ),
}  # fmt: skip


@pytest.mark.parametrize("body", RIGHT.values(), ids=RIGHT)
def test_other_logarithms_stay(tmp_path: pathlib.Path, body: str) -> None:
    """What holds no exponential, is guarded on purpose, or has no such form is left alone."""
    source = f"{HEAD}{body}\nloss.backward()\n"
    assert rewritten(tmp_path, "log_of_scores", source, "loss.backward()") == source


@pytest.mark.parametrize(("body", "changes"), WRONG.values(), ids=WRONG)
def test_the_logarithm_is_of_the_scores(tmp_path: pathlib.Path, body: str, changes: list[str]) -> None:
    """What nothing reads any more goes; a second time nothing is left to do."""
    source = f"{HEAD}{body}\nloss.backward()\n"
    after = rewritten(tmp_path, "log_of_scores", source, "loss.backward()")
    assert sorted(diff_lines(source, after)) == sorted(changes)
    assert rewritten(tmp_path, "log_of_scores", after, "loss.backward()") == after


@pytest.mark.torch
@pytest.mark.parametrize("body", [body for body, _ in WRONG.values()], ids=WRONG)
def test_gradients_are_the_same(tmp_path: pathlib.Path, body: str) -> None:
    """On scores that no exponential overflows of."""
    torch = pytest.importorskip("torch")
    source = f"{HEAD}{body}\nloss.backward()\n"
    found = []
    for text in (source, rewritten(tmp_path, "log_of_scores", source, "loss.backward()")):
        space: dict = {}
        exec(compile(text, "train.py", "exec"), space)  # noqa: S102
        found.append((space["loss"], space["net"].weight.grad))
    (loss, gradient), (other_loss, other) = found
    assert torch.allclose(loss, other_loss, atol=1e-5)
    assert torch.allclose(gradient, other, atol=1e-5)
