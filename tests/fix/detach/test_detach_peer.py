"""What another network predicts is a target of mutual learning; other losses' targets are left alone."""

from __future__ import annotations

import pathlib

import pytest

from tests.fix.mending import mended, run
from tests.fix.rewriting import changed_lines, rewritten

TOP = "import torch\nimport torch.nn.functional as F\nfrom torch import nn\n"
MUTUAL = f"""{TOP}
torch.manual_seed(0)
x, y = torch.randn(8, 4), torch.randint(0, 3, (8,))
nets = [nn.Sequential(nn.Linear(4, 5), nn.Tanh(), nn.Linear(5, 3)) for _ in range(2)]
optimizers = [torch.optim.SGD(one.parameters(), lr=0.1) for one in nets]
scores = [one(x) for one in nets]
losses = []
for i in range(2):
    own, other = F.log_softmax(scores[i], 1), F.softmax(scores[1 - i], 1)
    losses.append(F.cross_entropy(scores[i], y) + F.kl_div(own, other, reduction="batchmean"))
used = []
for net, optimizer, loss in zip(nets, optimizers, losses):
    optimizer.zero_grad()
    loss.backward(retain_graph=True)
    used.append(net[0].weight.grad.clone())
    optimizer.step()
"""
LINE = '    losses.append(F.cross_entropy(scores[i], y) + F.kl_div(own, other.detach(), reduction="batchmean"))'


@pytest.mark.torch
def test_each_network_learns_from_its_own_loss(tmp_path: pathlib.Path) -> None:
    """The gradients are those of each loss by its own network, at the weights of before any step."""
    torch = pytest.importorskip("torch")
    after = mended("detach_peer", MUTUAL, tmp_path)
    assert changed_lines(MUTUAL, after) == [LINE.strip()]
    wanted = (
        MUTUAL.split("used = []")[0]
        + "used = [torch.autograd.grad(b, a[0].weight, retain_graph=True)[0] for a, b in zip(nets, losses)]"
    )
    for got, expected in zip(run(after, tmp_path / "after.py")["used"], run(wanted, tmp_path / "wanted.py")["used"]):
        torch.testing.assert_close(got, expected)


BOTH_WAYS = """import torch
from torch.nn import functional as F
def f(a, b, x, opt_a, opt_b):
    p, q = a(x), b(x)
    loss_a = F.mse_loss(p, q)
    loss_b = F.mse_loss(q, p)
    loss_a.backward()
    opt_a.step()
    loss_b.backward()
"""


def test_a_distance_in_both_directions(tmp_path: pathlib.Path) -> None:
    """Each of two losses trains what it names first."""
    after = rewritten(tmp_path, "detach_peer", BOTH_WAYS, "loss_b.backward()")
    assert changed_lines(BOTH_WAYS, after) == [
        "loss_a = F.mse_loss(p, q.detach())",
        "loss_b = F.mse_loss(q, p.detach())",
    ]


BETWEEN = "    opt_a.step()\n    loss.backward()\n"
LEFT_ALONE = {
    "a target of the data": "def f(net, x, y, opt_a):\n    loss = F.kl_div(F.log_softmax(net(x), 1), y)\n",
    "detached where it is made": "def f(net, other, x, opt_a):\n    q = F.softmax(other(x).detach(), 1)\n    loss = F.kl_div(F.log_softmax(net(x), 1), q)\n",
    "detached where it is used": "def f(net, other, x, opt_a):\n    loss = F.kl_div(F.log_softmax(net(x), 1), F.softmax(other(x), 1).detach())\n",
    "without grad": "def f(net, other, x, opt_a):\n    with torch.no_grad():\n        q = F.softmax(other(x), 1)\n    loss = F.kl_div(F.log_softmax(net(x), 1), q)\n",
    "a distance, of which either side may learn": "def f(net, other, x, opt_a):\n    loss = F.mse_loss(net(x), other(x))\n",
    "classes": "def f(net, x, y, opt_a):\n    loss = F.cross_entropy(net(x), y)\n",
}


@pytest.mark.parametrize("body", LEFT_ALONE.values(), ids=LEFT_ALONE)
def test_left_alone(body: str, tmp_path: pathlib.Path) -> None:
    """What has no graph needs no cut."""
    source = TOP + body + BETWEEN
    assert rewritten(tmp_path, "detach_peer", source, "loss.backward()") == source
