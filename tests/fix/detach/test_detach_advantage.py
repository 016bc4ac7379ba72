"""A policy's loss takes the advantage as a constant; what is no advantage keeps its graph."""

from __future__ import annotations

import pathlib

import pytest

from tests.fix.rewriting import diff_lines, rewritten

TOP = "import torch\nimport torch.nn.functional as F\nfrom torch.distributions import Categorical\n"
WRONG = {
    "two losses of one method": (
        """class Agent:
    def losses(self, obs, actions, returns):
        dist = Categorical(logits=self.actor(obs))
        advantage = returns - self.critic(obs).squeeze(-1)
        policy = -(dist.log_prob(actions) * advantage).mean()
        return policy, advantage.pow(2).mean()
""",
        ["-        policy = -(dist.log_prob(actions) * advantage).mean()", "+        policy = -(dist.log_prob(actions) * advantage.detach()).mean()"],
    ),
    "a difference in brackets": (
        """def update(policy, value_net, states, actions, targets):
    values = value_net(states).squeeze(-1)
    log_probs = Categorical(logits=policy(states)).log_prob(actions)
    actor_loss = -((targets - values) * log_probs).mean()
    critic_loss = F.mse_loss(values, targets)
    return actor_loss, critic_loss
""",
        ["-    actor_loss = -((targets - values) * log_probs).mean()", "+    actor_loss = -((targets - values).detach() * log_probs).mean()"],
    ),
    "a loop over what was collected": (
        """def finish(log_probs, values, returns):
    policy_losses, value_losses = [], []
    for log_prob, value, R in zip(log_probs, values, returns):
        advantage = R - value
        policy_losses.append(-log_prob * advantage)
        value_losses.append(F.smooth_l1_loss(value, R))
    return sum(policy_losses), sum(value_losses)
""",
        ["-        policy_losses.append(-log_prob * advantage)", "+        policy_losses.append(-log_prob * advantage.detach())"],
    ),
    "a ratio": (
        """def ppo(actor, critic, s, a, old, ret):
    v = critic(s)
    ratio = (Categorical(logits=actor(s)).log_prob(a) - old).exp()
    adv = ret - v
    return -(ratio * adv).mean(), (ret - v).square().mean()
""",
        ["-    return -(ratio * adv).mean(), (ret - v).square().mean()", "+    return -(ratio * adv.detach()).mean(), (ret - v).square().mean()"],
    ),
}  # fmt: skip
RIGHT = {
    "detached where it is made": "def f(pi, critic, s, a, ret):\n    adv = ret - critic(s).detach()\n    value_loss = (ret - critic(s)).pow(2)\n    return -(pi(s).log_prob(a) * adv).mean(), value_loss\n",
    "detached where it is used": "def f(pi, critic, s, a, ret):\n    adv = ret - critic(s)\n    return -(pi(s).log_prob(a) * adv.detach()).mean(), adv.pow(2)\n",
    "a number": "def f(pi, critic, s, a, ret):\n    value = critic(s)\n    adv = ret - value.item()\n    return -(pi(s).log_prob(a) * adv).mean(), (value - ret) ** 2\n",
    "no critic": "def f(pi, s, a, returns):\n    return -(pi(s).log_prob(a) * returns).mean()\n",
    "under no_grad": "def f(pi, critic, s, a, ret):\n    with torch.no_grad():\n        adv = ret - critic(s)\n    return -(pi(s).log_prob(a) * adv).mean(), (critic(s) - ret) ** 2\n",
    "no log-probability": "def f(net, critic, s, w):\n    value = critic(s)\n    return (net(s) * value).mean(), value.pow(2).mean()\n",
    "the temperature of SAC": "def f(pi, q, s, alpha):\n    a, log_prob = pi(s)\n    return (alpha * log_prob - q(s, a)).mean(), q(s, a).pow(2)\n",
}


@pytest.mark.parametrize(("body", "changes"), WRONG.values(), ids=WRONG)
def test_the_weight_is_detached(body: str, changes: list[str], tmp_path: pathlib.Path) -> None:
    """Where the policy's loss weighs a log-probability; a second time nothing is left to do."""
    after = rewritten(tmp_path, "detach_advantage", TOP + body)
    assert diff_lines(TOP + body, after) == changes
    assert rewritten(tmp_path, "detach_advantage", after) == after


@pytest.mark.parametrize("body", RIGHT.values(), ids=RIGHT)
def test_right_programs_stay(body: str, tmp_path: pathlib.Path) -> None:
    """Constants already, and products that are no policy gradient."""
    assert rewritten(tmp_path, "detach_advantage", TOP + body) == TOP + body


COLLECTED = (
    TOP
    + """actor, critic = torch.nn.Linear(3, 2), torch.nn.Linear(3, 1)
class Rollout:
    def __init__(self):
        self.values, self.log_probs, self.rewards = [], [], []
    def add(self, reward, value, log_prob):
        self.rewards.append(reward)
        self.values.append(value)
        self.log_probs.append(log_prob)
    def finish(self):
        returns, values = torch.stack(self.rewards), torch.stack(self.values)
        advantages = returns - values
        return {"returns": returns, "values": values, "advantages": advantages / 2, "log_probs": torch.stack(self.log_probs)}
def collect():
    rollout = Rollout()
    for _ in range(4):
        obs = torch.randn(3)
        dist = Categorical(logits=actor(obs))
        action = dist.sample()
        rollout.add(torch.rand(()), critic(obs).squeeze(-1), dist.log_prob(action))
    return rollout.finish()
def update(batch):
    critic_loss = F.mse_loss(batch["values"], batch["returns"])
    policy_loss = -(batch["log_probs"] * batch["advantages"]).mean()
    critic_loss.backward()
    policy_loss.backward()
update(collect())
"""
)


def test_an_advantage_that_is_read_of_a_batch(tmp_path: pathlib.Path) -> None:
    """It was computed elsewhere, of values that have their graph."""
    assert diff_lines(COLLECTED, rewritten(tmp_path, "detach_advantage", COLLECTED)) == [
        '-    policy_loss = -(batch["log_probs"] * batch["advantages"]).mean()',
        '+    policy_loss = -(batch["log_probs"] * batch["advantages"].detach()).mean()',
    ]
    for right in (
        COLLECTED.replace("self.values.append(value)", "self.values.append(value.detach())"),
        COLLECTED.replace("returns - values\n", "returns - values.detach()\n"),
        COLLECTED.replace("critic(obs).squeeze(-1)", "torch.rand(())"),
        COLLECTED.replace('batch["advantages"])', 'batch["weights"])').replace('"advantages":', '"weights":'),
    ):
        assert rewritten(tmp_path, "detach_advantage", right) == right
