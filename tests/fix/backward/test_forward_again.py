"""What a network made before its step is made again behind it, where two optimizers share the network."""

from __future__ import annotations

import pathlib

import pytest

from tests.fix.rewriting import diff_lines, rewritten

SOURCE = """import torch
from torch import nn
from torch.nn import functional as F

enc = nn.Sequential(nn.Linear(8, 4), nn.Tanh(), nn.Linear(4, 2))
dec, critic = nn.Linear(2, 8), nn.Linear(2, 1)
opt_ae = torch.optim.Adam([*enc.parameters(), *dec.parameters()])
opt_gen = torch.optim.SGD(enc.parameters(), 0.1)
ones = torch.ones(4, 1)
for _ in range(3):
    x = torch.rand(4, 8)
    z = enc(x)
    recon = F.mse_loss(dec(z), x)
    opt_ae.zero_grad()
    recon.backward(retain_graph=True)
    opt_ae.step()
    fooled = F.binary_cross_entropy_with_logits(critic(z), ones)
    opt_gen.zero_grad()
    fooled.backward()
    opt_gen.step()
"""
RIGHT = {
    "no network in common": SOURCE.replace("SGD(enc.", "SGD(critic."),
    "made again already": SOURCE.replace("critic(z)", "critic(enc(x))"),
    "a draw": SOURCE.replace("z = enc(x)", "z = enc(torch.rand_like(x))"),
    "other data by then": SOURCE.replace("    fooled =", "    x = torch.rand(4, 8)\n    fooled ="),
}


def test_the_network_runs_again(tmp_path: pathlib.Path) -> None:
    """And its step does not move behind the other loss's backward."""
    after = rewritten(tmp_path, "forward_again", SOURCE, "fooled.backward")
    assert diff_lines(SOURCE, after)[1:] == ["+    fooled = F.binary_cross_entropy_with_logits(critic(enc(x)), ones)"]
    assert rewritten(tmp_path, "step_after_backward", SOURCE, "fooled.backward") == SOURCE


@pytest.mark.torch
def test_each_optimizer_gets_the_gradients_of_its_own_loss(tmp_path: pathlib.Path) -> None:
    """As if the encoder had been run for each of them."""
    torch = pytest.importorskip("torch")
    torch.manual_seed(0)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        exec(SOURCE, {})  # noqa: S102 - the program of this test
    exec(rewritten(tmp_path, "forward_again", SOURCE, "fooled.backward"), {})  # noqa: S102 - likewise


@pytest.mark.parametrize("source", RIGHT.values(), ids=RIGHT)
def test_others_stay(source: str, tmp_path: pathlib.Path) -> None:
    """Where optimizers share nothing, or the value would be another one."""
    assert rewritten(tmp_path, "forward_again", source, "fooled.backward") == source


APPLIED = (
    SOURCE.replace(
        "for _ in",
        """def apply(opt, loss, keep=False):
    opt.zero_grad()
    loss.backward(retain_graph=keep)
    opt.step()


for _ in""",
    )
    .replace(
        """    opt_ae.zero_grad()
    recon.backward(retain_graph=True)
    opt_ae.step()
""",
        "    apply(opt_ae, recon, keep=True)\n",
    )
    .replace(
        """    opt_gen.zero_grad()
    fooled.backward()
    opt_gen.step()
""",
        "    apply(opt_gen, fooled)\n",
    )
)


def test_a_function_that_steps_counts(tmp_path: pathlib.Path) -> None:
    """As the step that it makes; not where it has another network's optimizer."""
    after = rewritten(tmp_path, "forward_again", APPLIED, "apply(opt_gen")
    assert diff_lines(APPLIED, after)[1:] == ["+    fooled = F.binary_cross_entropy_with_logits(critic(enc(x)), ones)"]
    other = APPLIED.replace("SGD(enc.", "SGD(critic.")
    assert rewritten(tmp_path, "forward_again", other, "apply(opt_gen") == other


CLIMB = """import torch
from torch import nn
from torch.nn import functional as F

net = nn.Sequential(nn.Linear(8, 4), nn.Tanh(), nn.Linear(4, 2))
optimizer = SAM(net.parameters())
for x, y in loader:
    scores = net(x)
    loss = F.cross_entropy(scores, y)
    loss.backward()
    optimizer.first_step(zero_grad=True)
    F.cross_entropy(scores, y).backward()
    optimizer.second_step(zero_grad=True)
"""


def test_the_second_backward_of_a_climb_needs_a_forward_there(tmp_path: pathlib.Path) -> None:
    """Of the weights to which the first step climbed; the sum of both losses would be the first one twice."""
    at, options = "F.cross_entropy(scores, y).backward", {"options": {"climb": True}}
    after = rewritten(tmp_path, "forward_again", CLIMB, at, **options)
    assert diff_lines(CLIMB, after)[1:] == ["+    F.cross_entropy(net(x), y).backward()"]
    assert rewritten(tmp_path, "sum_losses", CLIMB, at) == CLIMB
    again = CLIMB.replace("    F.cross_entropy(scores, y).backward()\n", "    (0.5 * loss).backward()\n")
    after = rewritten(tmp_path, "forward_again", again, "(0.5 * loss)", **options)
    assert diff_lines(again, after)[1:] == ["+    (0.5 * F.cross_entropy(net(x), y)).backward()"]
    kept = CLIMB.replace("    scores = net(x)\n", "    scores = net(x)\n    overlap = 0.1 * net.overlap()\n").replace(
        "net = nn.Sequential(nn.Linear(8, 4), nn.Tanh(), nn.Linear(4, 2))",
        "class Net(nn.Module):\n    def forward(self, x):\n        return self.layer(x)\n"
        "    def overlap(self):\n        return self.layer.weight.square().sum()\nnet = Net()",
    )
    kept = kept.replace(
        "    F.cross_entropy(scores, y).backward()\n", "    (F.cross_entropy(net(x), y) + overlap).backward()\n"
    )
    after = rewritten(tmp_path, "forward_again", kept, "+ overlap)", **options)
    assert diff_lines(kept, after)[1:] == ["+    (F.cross_entropy(net(x), y) + 0.1 * net.overlap()).backward()"]
    kept = kept.replace("overlap = 0.1 * net.overlap()", "overlap = net.overlap() - 1").replace(
        "+ overlap)", "- overlap)"
    )
    after = rewritten(tmp_path, "forward_again", kept, "- overlap)", **options)
    assert diff_lines(kept, after)[1:] == ["+    (F.cross_entropy(net(x), y) - (net.overlap() - 1)).backward()"]
    other = CLIMB.replace("first_step", "log")
    assert rewritten(tmp_path, "forward_again", other, at, **options) == other
