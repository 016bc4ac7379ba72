"""A loss whose sample trains by its probability, and beside that goes into a term through which nothing trains."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

torch = pytest.importorskip("torch")
from torch import nn  # noqa: E402
from torch.distributions import Categorical, Independent, Normal  # noqa: E402

from tests.live.tracing import lines, shown  # noqa: E402

pytestmark = pytest.mark.torch
FOUND = [("drawn", "normal", "act")]


class Agent:
    """An actor and a critic, each with its own optimizer."""

    way = "sample"

    def __init__(self) -> None:
        torch.manual_seed(0)
        self.actor, self.critic = nn.Linear(3, 2), nn.Sequential(nn.Linear(5, 4), nn.ReLU(), nn.Linear(4, 1))
        self.of_actor = torch.optim.Adam(self.actor.parameters(), lr=1e-3)
        self.of_critic = torch.optim.Adam(self.critic.parameters(), lr=1e-3)

    def act(self, state: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        policy = Independent(Normal(self.actor(state), 0.5), 1)
        action = getattr(policy, self.way)()
        return torch.tanh(action), policy.log_prob(action) - (1 - torch.tanh(action) ** 2 + 1e-6).log().sum(-1)

    def value(self, state: torch.Tensor, action: torch.Tensor) -> torch.Tensor:
        return self.critic(torch.cat([state, action], -1)).squeeze(-1)

    def loss(self, state: torch.Tensor) -> torch.Tensor:
        action, log_prob = self.act(state)
        return (0.1 * log_prob - self.value(state, action)).mean()

    def train_actor(self) -> None:
        self.of_actor.zero_grad()
        self.loss(torch.randn(8, 3)).backward()
        self.of_actor.step()

    def train_critic(self) -> None:
        state, action = torch.randn(8, 3), torch.rand(8, 2)
        loss = (self.value(state, action) - state.sum(-1)).square().mean()
        self.clear_critic()
        loss.backward()
        self.of_critic.step()

    def clear_critic(self) -> None:
        self.of_critic.zero_grad()

    def step(self) -> None:
        self.train_critic()
        self.train_actor()


class ActorFirst(Agent):
    def step(self) -> None:
        self.train_actor()
        self.train_critic()


class ClearedToZeros(Agent):
    def clear_critic(self) -> None:
        self.of_critic.zero_grad(set_to_none=False)


class ClearedAtOnce(Agent):
    def train_actor(self) -> None:
        self.of_actor.zero_grad()
        self.loss(torch.randn(8, 3)).backward()
        self.critic.zero_grad()
        self.of_actor.step()


class FrozenCritic(Agent):
    def train_actor(self) -> None:
        self.critic.requires_grad_(False)
        super().train_actor()
        self.critic.requires_grad_(True)


class TwoTerms(Agent):
    def loss(self, state: torch.Tensor) -> torch.Tensor:
        action, log_prob = self.act(state)
        return 0.1 * log_prob.mean() + -torch.min(self.value(state, action), 2 * self.value(state, action)).mean()


def steps(agent: Agent) -> Callable[[], None]:
    def train() -> None:
        for _ in range(4):
            agent.step()

    return train


WRONG = [Agent, ActorFirst, ClearedToZeros, ClearedAtOnce, FrozenCritic, TwoTerms]


@pytest.mark.parametrize("kind", WRONG)
def test_a_value_that_does_not_train_the_actor(kind: type[Agent]) -> None:
    """The draw is named; drawn with its gradient, nothing is."""
    assert shown(lines(steps(kind()), fails=False)) == FOUND
    agent = kind()
    agent.way = "rsample"
    assert lines(steps(agent), fails=False) == ()


class ByScore(Agent):
    """The value is a weight of the probability."""

    def loss(self, state: torch.Tensor) -> torch.Tensor:
        action, log_prob = self.act(state)
        return -(log_prob * (self.value(state, action) - 0.1 * log_prob.detach())).mean()


class CutOff(Agent):
    """The program says that the action is data."""

    def loss(self, state: torch.Tensor) -> torch.Tensor:
        action, log_prob = self.act(state)
        return (log_prob * torch.randn(8)).mean() - self.value(state, action.detach()).mean()


class Together(Agent):
    """One loss for both, and a step of each optimizer with it."""

    def step(self) -> None:
        state = torch.randn(8, 3)
        action, log_prob = self.act(state)
        value = self.value(state, action)
        loss = (value - 1.0).square().mean() - (log_prob * value.detach()).mean() - value.mean()
        self.of_actor.zero_grad()
        self.of_critic.zero_grad()
        loss.backward()
        self.of_actor.step()
        self.of_critic.step()


class CriticLater(Agent):
    """The critic steps with what the actor's loss has left in it."""

    def train_critic(self) -> None:
        self.of_critic.step()
        self.of_critic.zero_grad()

    def step(self) -> None:
        self.train_actor()
        self.train_critic()


class WithoutWeight(Agent):
    """A weight of zero so far."""

    def loss(self, state: torch.Tensor) -> torch.Tensor:
        action, log_prob = self.act(state)
        return (log_prob * torch.randn(8)).mean() - 0.0 * self.value(state, action).mean()


class SharedBody(Agent):
    """The value trains a part of what the action is drawn from."""

    def value(self, state: torch.Tensor, action: torch.Tensor) -> torch.Tensor:
        return self.critic(torch.cat([self.actor(state), state], -1)).squeeze(-1) * action.sum(-1)


class Categories(Agent):
    """A category has no such gradient."""

    def act(self, state: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        policy = Categorical(logits=self.actor(state))
        action = policy.sample()
        return nn.functional.one_hot(action, 2).float(), policy.log_prob(action)


class Reference(Agent):
    """The probability under a frozen policy, as in a divergence that is a weight or a part of the reward."""

    def __init__(self) -> None:
        super().__init__()
        self.reference = nn.Linear(3, 2).requires_grad_(False)

    def loss(self, state: torch.Tensor) -> torch.Tensor:
        action, log_prob = self.act(state)
        other = Normal(self.reference(state), 0.5).log_prob(action).sum(-1)
        return (log_prob * torch.randn(8)).mean() + 0.1 * (log_prob - other).mean()


class Weighted(Agent):
    """A frozen critic's value as a weight."""

    def loss(self, state: torch.Tensor) -> torch.Tensor:
        action, log_prob = self.act(state)
        with torch.no_grad():
            value = self.value(state, action)
        return (log_prob * (0.5 - value)).mean()


class Offline(Agent):
    """Samples as data of the critic's loss, which nothing asks for their probability: the actor learns from the data's."""

    def train_critic(self) -> None:
        state, action = torch.randn(8, 3), torch.rand(8, 2)
        target = self.value(state, Normal(self.actor(state), 0.5).sample()).detach()
        loss = (self.value(state, action) - 1.0 - 0.9 * target).square().mean()
        loss = loss + self.value(state, Normal(self.actor(state), 0.5).sample()).mean()
        self.clear_critic()
        loss.backward()
        self.of_critic.step()

    def loss(self, state: torch.Tensor) -> torch.Tensor:
        return -Normal(self.actor(state), 0.5).log_prob(torch.rand(8, 2)).mean()


RIGHT = [ByScore, CutOff, Together, CriticLater, WithoutWeight, SharedBody, Categories, Reference, Weighted, Offline]


@pytest.mark.parametrize("kind", RIGHT)
def test_samples_that_are_meant_as_data(kind: type[Agent]) -> None:
    """No line."""
    assert lines(steps(kind()), fails=False) == ()
