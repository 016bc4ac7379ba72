"""Gradients that are thrown away before a step, backward after backward, and what clears gradients for good reason."""

from __future__ import annotations

from collections.abc import Callable

import pytest

torch = pytest.importorskip("torch")

from tests.live.tracing import lines, shown  # noqa: E402

pytestmark = pytest.mark.torch
Step = Callable[[torch.nn.Module, torch.optim.Optimizer, torch.Tensor], None]


def parts(net: torch.nn.Module, optimizer: torch.optim.Optimizer, x: torch.Tensor) -> None:
    for part in x.chunk(4):
        optimizer.zero_grad()
        (net(part).square().mean() / 4).backward()
    optimizer.step()


def kept(net: torch.nn.Module, optimizer: torch.optim.Optimizer, x: torch.Tensor) -> None:
    for part in x.chunk(4):
        optimizer.zero_grad(set_to_none=False)
        (net(part).square().mean() / 4).backward()
    optimizer.step()


def of_the_module(net: torch.nn.Module, optimizer: torch.optim.Optimizer, x: torch.Tensor) -> None:
    for part in x.chunk(4):
        net.zero_grad()
        (net(part).square().mean() / 4).backward()
    optimizer.step()


@pytest.mark.parametrize("step", [parts, kept, of_the_module])
def test_parts_of_a_batch_that_are_cleared(step: Step) -> None:
    """The line that clears, whichever way it does."""
    found = lines(trained(step), fails=False)
    assert shown(found) == [("cleared", "zero_grad", step.__name__)]
    assert "3 backwards before each step" in found[0].says


def trained(step: Step) -> Callable[[], None]:
    net = torch.nn.Linear(4, 1)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01)

    def train() -> None:
        for _ in range(4):
            step(net, optimizer, torch.randn(8, 4))

    return train


def accumulated(net: torch.nn.Module, optimizer: torch.optim.Optimizer, x: torch.Tensor) -> None:
    optimizer.zero_grad()
    for part in x.chunk(4):
        (net(part).square().mean() / 4).backward()
    optimizer.step()


def by_task(net: torch.nn.Module, optimizer: torch.optim.Optimizer, x: torch.Tensor) -> None:
    """Each task's gradient is read before it is cleared, and they step together."""
    read = []
    for part in x.chunk(2):
        optimizer.zero_grad()
        net(part).square().mean().backward()
        read.append([one.grad.clone() for one in net.parameters()])
    for one, *given in zip(net.parameters(), *read, strict=True):
        one.grad = sum(given)
    optimizer.step()


def with_attack(net: torch.nn.Module, optimizer: torch.optim.Optimizer, x: torch.Tensor) -> None:
    """The attack's backward leaves gradients that nobody wants."""
    x = x.clone().requires_grad_()
    net(x).sum().backward()
    optimizer.zero_grad()
    net(x.detach() + 0.1).square().mean().backward()
    optimizer.step()


def with_hooks(net: torch.nn.Module, optimizer: torch.optim.Optimizer, x: torch.Tensor) -> None:
    """What takes gradients up as they come has them already."""
    taken = []
    hooks = [one.register_post_accumulate_grad_hook(taken.append) for one in net.parameters()]
    parts(net, optimizer, x)
    assert taken
    with_hooks.hooks = hooks


RIGHT = {
    "accumulated": accumulated,
    "read before they are cleared": by_task,
    "of another line's backward": with_attack,
    "taken up by hooks": with_hooks,
}


@pytest.mark.parametrize("step", RIGHT.values(), ids=RIGHT)
def test_what_is_cleared_for_good_reason(step: Step) -> None:
    """Nothing is told."""
    assert lines(trained(step), fails=False) == ()


def test_a_closure_goes_backward_as_often_as_it_likes() -> None:
    """LBFGS evaluates it many times in one step."""
    net = torch.nn.Linear(4, 1)
    optimizer = torch.optim.LBFGS(net.parameters(), lr=0.1, max_iter=4)
    x = torch.randn(8, 4)

    def closure() -> torch.Tensor:
        optimizer.zero_grad()
        loss = net(x).square().mean()
        loss.backward()
        return loss

    def train() -> None:
        for _ in range(3):
            optimizer.step(closure)

    assert lines(train, fails=False) == ()


def test_two_networks_that_share_a_helper() -> None:
    """The generator's loss leaves gradients in the discriminator, by the same helper's line: the lines above it differ."""
    first, second = torch.nn.Linear(4, 4), torch.nn.Linear(4, 1)
    one, two = (torch.optim.SGD(net.parameters(), lr=0.01) for net in (first, second))

    def back(loss: torch.Tensor) -> None:
        loss.backward()

    def train() -> None:
        for _ in range(4):
            x = torch.randn(8, 4)
            one.zero_grad()
            back(second(first(x)).mean())
            one.step()
            two.zero_grad()
            back(second(first(x).detach()).square().mean())
            two.step()

    assert lines(train, fails=False) == ()


def test_networks_in_turn_of_which_one_judges_the_other() -> None:
    """One line goes back for both: what the actor's loss leaves in the critic has stepped the actor, and is no loss."""
    critic, actor = torch.nn.Linear(4, 1), torch.nn.Linear(3, 1)
    optimizers = [torch.optim.SGD(one.parameters(), lr=0.1) for one in (critic, actor)]

    def loss(index: int, x: torch.Tensor) -> torch.Tensor:
        action = actor(x) if index else torch.ones(5, 1)
        return critic(torch.cat([x, action], 1)).square().mean()

    def train() -> None:
        for _ in range(4):
            x = torch.randn(5, 3)
            for index, optimizer in enumerate(optimizers):
                optimizer.zero_grad()
                loss(index, x).backward()
                optimizer.step()

    assert lines(train, fails=False) == ()


def test_steps_that_a_scaler_leaves_out() -> None:
    """A scale that is too large throws gradients away by design."""
    net = torch.nn.Linear(4, 1)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
    scaler = torch.amp.GradScaler("cpu", init_scale=2.0**127)

    def train() -> None:
        for _ in range(12):
            optimizer.zero_grad()
            scaler.scale(net(torch.randn(8, 4)).square().mean() * 1e3).backward()
            scaler.step(optimizer)
            scaler.update()

    assert lines(train, fails=False) == ()
