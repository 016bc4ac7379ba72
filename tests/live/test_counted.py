"""Gradients of a report that the backward of the whole loss adds again, and what keeps a graph for good reason."""

from __future__ import annotations

from collections.abc import Callable

import pytest

torch = pytest.importorskip("torch")

from tests.live.tracing import lines, shown  # noqa: E402

pytestmark = pytest.mark.torch
Net = torch.nn.Module
Step = Callable[[Net, torch.optim.Optimizer, torch.Tensor], None]


def reported(net: Net, optimizer: torch.optim.Optimizer, x: torch.Tensor) -> None:
    optimizer.zero_grad()
    term = net(x).square().mean()
    term.backward(retain_graph=True)
    (term + net(x).abs().mean()).backward()
    optimizer.step()


def test_a_report_that_leaves_its_gradients() -> None:
    """Both lines, once for all steps."""
    found = lines(trained(reported), fails=False)
    assert shown(found) == [("counted", "backward", "reported"), ("again", "backward", "reported")]
    early, again = (one.line for one in found)
    assert again == early + 1
    assert f"that of line {again} adds the same ones" in found[0].says


def test_the_gradient_is_twice_the_right_one() -> None:
    """What the line claims, measured."""
    net, x = torch.nn.Linear(4, 1), torch.randn(8, 4)
    (once,) = torch.autograd.grad(net(x).square().mean(), net.weight)
    term = net(x).square().mean()
    term.backward(retain_graph=True)
    term.backward()
    assert torch.allclose(net.weight.grad, 2 * once)


def trained(step: Step) -> Callable[[], None]:
    net = torch.nn.Linear(4, 1)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01)

    def train() -> None:
        for _ in range(3):
            step(net, optimizer, torch.randn(8, 4))

    return train


def cleared(net: Net, optimizer: torch.optim.Optimizer, x: torch.Tensor) -> None:
    term = net(x).square().mean()
    term.backward(retain_graph=True)
    optimizer.zero_grad()
    (term + net(x).abs().mean()).backward()
    optimizer.step()


def cleared_by_hand(net: Net, optimizer: torch.optim.Optimizer, x: torch.Tensor) -> None:
    for one in net.parameters():
        one.grad = None
    term = net(x).square().mean()
    term.backward(retain_graph=True)
    for one in net.parameters():
        one.grad = None
    (term * 2).backward()
    optimizer.step()


def cleared_in_place(net: Net, optimizer: torch.optim.Optimizer, x: torch.Tensor) -> None:
    optimizer.zero_grad()
    term = net(x).square().mean()
    term.backward(retain_graph=True)
    for one in net.parameters():
        one.grad.zero_()
    (term * 2).backward()
    optimizer.step()


def used(net: Net, optimizer: torch.optim.Optimizer, x: torch.Tensor) -> None:
    """A step of its own for the first loss."""
    shared = x * 2
    optimizer.zero_grad()
    first = net(shared).square().mean()
    first.backward(retain_graph=True)
    optimizer.step()
    optimizer.zero_grad()
    net(shared).abs().mean().backward()
    optimizer.step()


def one_by_one(net: Net, optimizer: torch.optim.Optimizer, x: torch.Tensor) -> None:
    """Losses above one trunk: each has nodes of its own, and none is below another."""
    optimizer.zero_grad()
    trunk = net(x)
    trunk.square().mean().backward(retain_graph=True)
    trunk.abs().mean().backward()
    optimizer.step()


def measured(net: Net, optimizer: torch.optim.Optimizer, x: torch.Tensor) -> None:
    """The right way to report: nothing is left in `.grad`."""
    optimizer.zero_grad()
    term = net(x).square().mean()
    torch.autograd.grad(term, list(net.parameters()), retain_graph=True)
    (term * 2).backward()
    optimizer.step()


def into_others(net: Net, optimizer: torch.optim.Optimizer, x: torch.Tensor) -> None:
    """A backward into the input alone."""
    x = x.requires_grad_()
    optimizer.zero_grad()
    term = net(x).square().mean()
    term.backward(retain_graph=True, inputs=[x])
    (term * 2).backward()
    optimizer.step()


def differentiated(net: Net, optimizer: torch.optim.Optimizer, x: torch.Tensor) -> None:
    """A gradient that is differentiated itself."""
    optimizer.zero_grad()
    loss = net(x).pow(4).mean()
    loss.backward(create_graph=True)
    (loss + net.weight.grad.square().sum()).backward()
    optimizer.step()
    optimizer.zero_grad()


RIGHT = {
    "cleared": cleared,
    "cleared by hand": cleared_by_hand,
    "cleared in place": cleared_in_place,
    "used by a step": used,
    "losses above one trunk": one_by_one,
    "autograd.grad": measured,
    "into the input": into_others,
    "a gradient that is differentiated": differentiated,
}


@pytest.mark.parametrize("step", RIGHT.values(), ids=RIGHT)
@pytest.mark.filterwarnings("ignore:Using backward")
def test_a_graph_that_is_kept_for_good_reason(step: Step) -> None:
    """Nothing is told."""
    assert [one for one in shown(lines(trained(step), fails=False)) if one[0] in ("counted", "again")] == []


def test_an_adversarial_pair() -> None:
    """The discriminator's backward keeps the graph for the generator's."""
    made, judge = torch.nn.Linear(4, 4), torch.nn.Linear(4, 1)
    one, two = (torch.optim.SGD(net.parameters(), lr=0.01) for net in (made, judge))

    def train() -> None:
        for _ in range(3):
            fake = made(torch.randn(8, 4))
            two.zero_grad()
            judge(fake.detach()).square().mean().backward(retain_graph=True)
            two.step()
            one.zero_grad()
            judge(fake).mean().backward()
            one.step()

    assert lines(train, fails=False) == ()
