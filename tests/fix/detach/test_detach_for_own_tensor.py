"""A loss for a tensor alone takes what a network has made as data."""

from __future__ import annotations

import pathlib

import pytest

from tests.fix.rewriting import changed_lines, rewritten

SOURCE = """import torch
from torch import nn

torch.manual_seed(0)
actor = nn.Linear(4, 1)
log_alpha = torch.zeros(1, requires_grad=True)
opt_a = torch.optim.SGD(actor.parameters(), 0.1)
opt_t = torch.optim.SGD([log_alpha], 0.1)
logp = actor(torch.randn(8, 4)).sigmoid()
loss = (log_alpha.exp() * logp).mean()
opt_a.zero_grad()
loss.backward()
opt_a.step()
second = -(log_alpha.exp() * (logp + 1.0)).mean()
opt_t.zero_grad()
second.backward()
opt_t.step()
"""
RIGHT = {
    "detached": SOURCE.replace("(logp + 1.0)", "(logp.detach() + 1.0)"),
    "a module is trained too": SOURCE.replace("SGD([log_alpha]", "SGD([*actor.parameters(), log_alpha]"),
    "the tensor lies behind what is shared": SOURCE.replace(".sigmoid()", ".sigmoid() * log_alpha.exp()"),
    "a network of its own": SOURCE.replace("SGD([log_alpha]", "SGD(other.parameters()").replace(
        "log_alpha =", "other = nn.Linear(1, 1)\nlog_alpha ="
    ),
}


@pytest.mark.torch
def test_what_the_network_made_is_data(tmp_path: pathlib.Path) -> None:
    """The tensor has the gradient that it would have had."""
    torch = pytest.importorskip("torch")
    with pytest.raises(RuntimeError, match="second time"):
        exec(SOURCE, {})
    after = rewritten(tmp_path, "detach_for_own_tensor", SOURCE, "second.backward")
    assert changed_lines(SOURCE, after) == ["second = -(log_alpha.exp() * (logp.detach() + 1.0)).mean()"]
    done: dict = {}
    exec(after, done)
    assert torch.allclose(done["log_alpha"].grad, -(done["logp"] + 1).mean())


@pytest.mark.parametrize("source", RIGHT.values(), ids=RIGHT)
def test_left_alone(source: str, tmp_path: pathlib.Path) -> None:
    assert rewritten(tmp_path, "detach_for_own_tensor", source, "second.backward") == source


TOGETHER = (
    SOURCE.replace("opt_a.zero_grad()\nloss.backward()\nopt_a.step()\n", "")
    .replace(
        "opt_t.zero_grad()\nsecond.backward()\nopt_t.step()\n",
        "opt_a.zero_grad()\nopt_t.zero_grad()\nloss.backward()\nsecond.backward()\nopt_a.step()\nopt_t.step()\n",
    )
    .replace("loss = (log_alpha.exp() * logp)", "loss = (log_alpha.exp().detach() * logp)")
)


def test_both_step_behind_both(tmp_path: pathlib.Path) -> None:
    """The sum of the losses would push the network by the tensor's own as well."""
    assert changed_lines(TOGETHER, rewritten(tmp_path, "detach_for_own_tensor", TOGETHER, "second.backward")) == [
        "second = -(log_alpha.exp() * (logp.detach() + 1.0)).mean()"
    ]
    assert rewritten(tmp_path, "sum_losses", TOGETHER, "second.backward") == TOGETHER


def test_a_network_of_its_own_beside_the_tensor(tmp_path: pathlib.Path) -> None:
    """Two losses of networks are added up."""
    source = (
        TOGETHER.replace("log_alpha =", "head = nn.Linear(1, 1)\nlog_alpha =")
        .replace("(logp + 1.0)", "head(logp)")
        .replace("SGD([log_alpha]", "SGD([*head.parameters(), log_alpha]")
    )
    assert rewritten(tmp_path, "detach_for_own_tensor", source, "second.backward") == source


HELD = """import torch
from torch import nn
class Temperature(nn.Module):
    def __init__(self):
        super().__init__()
        self.log_alpha = nn.Parameter(torch.zeros(()))
    def loss(self, log_prob):
        return -(self.log_alpha * (log_prob + 1.0)).mean()
policy, temperature = nn.Linear(3, 2), Temperature()
opt_policy = torch.optim.Adam(policy.parameters())
opt_temp = torch.optim.Adam(temperature.parameters())
for _ in range(2):
    log_prob = policy(torch.randn(4, 3)).log_softmax(-1)[:, 0]
    policy_loss = log_prob.exp().mean()
    temp_loss = temperature.loss(log_prob)
    opt_policy.zero_grad()
    opt_temp.zero_grad()
    policy_loss.backward()
    temp_loss.backward()
    opt_policy.step()
    opt_temp.step()
"""


@pytest.mark.parametrize(
    ("part", "is_cut"),
    [("nn.Parameter(torch.zeros(()))", True), ("nn.Linear(1, 1)", False)],
    ids=["a tensor", "a layer"],
)
def test_a_module_that_holds_a_tensor(part: str, is_cut: bool, tmp_path: pathlib.Path) -> None:
    """A temperature in a module of its own is trained alone, as one that is a tensor is; a network may be meant to teach both."""
    source = HELD.replace("nn.Parameter(torch.zeros(()))", part)
    after = rewritten(tmp_path, "detach_for_own_tensor", source, "temp_loss.backward")
    assert ("temperature.loss(log_prob.detach())" in after) is is_cut
