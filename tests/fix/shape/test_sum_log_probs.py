"""The log-probability of an action of several numbers is their sum."""

from __future__ import annotations

import pathlib

import pytest

pytestmark = pytest.mark.torch
torch = pytest.importorskip("torch")

from tests.fix.mending import mended, run  # noqa: E402
from tests.fix.rewriting import changed_lines  # noqa: E402

PPO = """import torch
from torch import nn
from torch.distributions import Normal

torch.manual_seed(0)
net, log_std = nn.Linear(3, 2), nn.Parameter(torch.zeros(2))
s, gain = torch.randn(8, 3), torch.randn(8)


def policy(x):
    return Normal(net(x), log_std.exp())


with torch.no_grad():
    action = policy(s).sample()
    old = policy(s).log_prob(action)
ratio = (policy(s).log_prob(action) - old).exp()
loss = -torch.min(ratio * gain, ratio.clamp(0.8, 1.2) * gain).mean()
loss.backward()
"""
SUMMED = ["old = policy(s).log_prob(action).sum(-1)", "ratio = (policy(s).log_prob(action).sum(-1) - old).exp()"]


def test_the_numbers_of_an_action_are_summed_up(tmp_path: pathlib.Path) -> None:
    """Both the old and the new one; the gradients are those of the joint density."""
    after = mended("sum_log_probs", PPO, tmp_path)
    assert [one.strip() for one in changed_lines(PPO, after)] == SUMMED
    joint = PPO.replace(
        "Normal(net(x), log_std.exp())", "torch.distributions.Independent(Normal(net(x), log_std.exp()), 1)"
    )
    wanted, got = run(joint, tmp_path / "wanted.py"), run(after, tmp_path / "after.py")
    assert torch.allclose(got["net"].weight.grad, wanted["net"].weight.grad)


def test_an_advantage_is_not_repeated_for_each_number(tmp_path: pathlib.Path) -> None:
    """That would train the ratio of each number by itself."""
    assert mended("axes_of_operand", PPO, tmp_path) == PPO


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (
            "Normal(net(x), log_std.exp())",
            "torch.distributions.Categorical(logits=net(x).unsqueeze(1).expand(-1, 2, -1))",
        ),
        ("policy(s).log_prob(action)", "net(s)"),
    ],
)
def test_others_stay(old: str, new: str, tmp_path: pathlib.Path) -> None:
    """A distribution of another kind, and operands that are no log-probabilities."""
    source = PPO.replace(old, new)
    assert mended("sum_log_probs", source, tmp_path) == source
