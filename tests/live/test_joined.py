"""The tracer tells where a loss goes back into what another network has made, and been trained on: where to cut it is safe."""

from __future__ import annotations

import pytest

pytestmark = pytest.mark.torch
torch = pytest.importorskip("torch")

import gradfix  # noqa: E402
from explainer.model.trace import HELD, JOINED, TracedLine  # noqa: E402
from tests.live.tracing import lines, shown  # noqa: E402

Row = tuple[torch.nn.Linear, torch.optim.SGD]


def network(*shared: torch.nn.Parameter, before: int = 3) -> Row:
    net = torch.nn.Linear(before, 3)
    return net, torch.optim.SGD([*net.parameters(), *shared], 0.1)


def update(optimizer: torch.optim.SGD, loss: torch.Tensor, *, clears: str = "before", steps: bool = True) -> None:
    if clears == "before":
        optimizer.zero_grad()
    loss.backward()
    if steps:
        optimizer.step()
    if clears == "after":
        optimizer.zero_grad()


def take(states: dict[str, torch.Tensor]) -> torch.Tensor:
    return sum(one.square() for one in states.values()).sum()  # type: ignore[union-attr]


def two_losses(world: Row, policy: Row, **options: object) -> list[TracedLine]:
    """A world's loss and a policy's, which is computed of the states behind that; what was seen of both."""

    def step() -> None:
        states = {"h": world[0](torch.ones(3)).tanh(), "mask": torch.ones(3)}
        update(world[1], states["h"].square().sum(), **options)  # type: ignore[arg-type]
        update(policy[1], policy[0](states["h"]).sum() * take(states))

    return [one for one in lines(step) if one.kind in (JOINED, HELD)]


def test_a_policy_on_the_states_of_a_world() -> None:
    """The lines that take the freed graph up, and the name that holds it, from the line of the other backward on."""
    found = two_losses(network(), network())
    assert shown(tuple(found)) == [
        ("joined", "linear", "step"), ("joined", "square", "<genexpr>"), ("held", "states", "step"),
    ]  # fmt: skip
    held = found[-1]
    assert (held.node, held.is_guess, held.line) == ("dict[tensor]", False, two_losses.__code__.co_firstlineno + 5)
    # `linear` has weights of its own beside what it takes; `square` has that alone.
    assert [one.is_guess for one in found[:-1]] == [True, False]


@pytest.mark.parametrize("clears", ["after", "never"])
def test_an_optimizer_that_would_take_what_is_left_in_its_weights(clears: str) -> None:
    """It is not known then that nothing is meant to train the first network by the second loss."""
    assert two_losses(network(), network(), clears=clears)[-1].is_guess


def test_no_step_between_the_two() -> None:
    """Both losses may belong to one step."""
    assert not two_losses(network(), network(), steps=False)


def test_weights_that_both_optimizers_own() -> None:
    """The second loss is to train them."""
    world = network()
    assert not two_losses(world, network(world[0].weight))


def test_what_the_second_network_made() -> None:
    """As a generator's images for a discriminator, which is stepped first: the generator's loss needs that graph."""
    made, judge = network(), network()

    def step() -> None:
        fake = made[0](torch.ones(3)).tanh()
        update(judge[1], judge[0](fake).sum())
        update(made[1], -judge[0](fake).sum())

    assert [one.kind for one in lines(step)] == ["strayed", "freed"]


def test_one_optimizer_for_both() -> None:
    """Two losses of the same weights."""
    world = network()

    def step() -> None:
        states = world[0](torch.ones(3)).tanh()
        update(world[1], states.square().sum())
        update(world[1], states.sum())

    assert [one.kind for one in lines(step)] == ["freed"]


def test_losses_that_were_both_there_before() -> None:
    """The second was computed with the weights as they were: to cut it alone would not save it from the step."""
    world, policy = network(), network()

    def step() -> None:
        states = world[0](torch.ones(3)).tanh()
        second = policy[0](states).sum()
        update(world[1], states.square().sum())
        update(policy[1], second)

    assert [one.kind for one in lines(step)] == ["freed"]


def test_a_state_that_is_carried_is_told_as_that() -> None:
    """Behind the first round the line that kept it is the one to change."""
    cell, policy = network(), network()
    kept = [torch.zeros(3)]

    def step() -> None:
        for _ in range(2):
            state = cell[0](kept[0]).tanh()
            kept[0] = state
            update(cell[1], state.square().sum())
            update(policy[1], policy[0](torch.ones(3)).sum())

    assert {one.kind for one in lines(step)} & {JOINED, HELD} == set()


@pytest.mark.parametrize(("first", "operand"), [(False, "1"), (True, "0")])
def test_which_of_two_tensors_leads_into_the_freed_graph(first: bool, operand: str) -> None:
    """Feature matching: the real features are those of the critic's own pass, the others of this loss."""
    critic, generator = network(), network()

    def step() -> None:
        taps = [critic[0](torch.ones(3))]
        update(critic[1], taps[0].square().sum())
        mine = critic[0](generator[0](torch.ones(3)))
        pair = (taps[0], mine) if first else (mine, taps[0])
        update(generator[1], torch.nn.functional.l1_loss(*pair))

    (found,) = [one for one in lines(step) if one.kind == JOINED]
    assert (found.operation, found.saved, found.is_guess) == ("l1_loss", operand, False)


@pytest.mark.parametrize(("beside", "is_guess"), [((), False), ((torch.ones(3, requires_grad=True),), True)])
def test_steps_that_are_joined_behind_their_backward(beside: tuple[torch.Tensor, ...], is_guess: bool) -> None:
    """The whole of what is joined is the other network's, unless a weight stands among it."""
    world, policy = network(), network()

    def begin() -> torch.Tensor:
        rows = [world[0](torch.ones(3)).tanh() for _ in range(2)]
        update(world[1], rows[0].sum() + rows[1].sum())
        return torch.cat([*rows, *beside])

    def step() -> None:
        start = begin()
        update(policy[1], policy[0](start.view(-1, 3)).sum())

    found = [one for one in lines(step) if one.kind == JOINED]
    assert [(one.operation, one.is_guess, one.saved) for one in found] == [
        ("cat", is_guess, None if is_guess else "all")
    ]


def freed_in_round(step: object) -> str | None:
    """Which backward of the same round is told to have used the graph up."""
    assert callable(step)
    with pytest.raises(RuntimeError, match="second time") as failed, gradfix.trace():
        step()
    fact = gradfix.explain(failed.value).incident.fact("traced_freed_in_round")
    return str(fact.value) if fact is not None else None


def test_another_loss_of_the_same_round() -> None:
    """Two networks that learn from each other: the first backward went through both."""
    one, other = network(), network()

    def step() -> None:
        x = torch.ones(3)
        a, b = one[0](x).tanh(), other[0](x).tanh()
        update(one[1], (a - b).square().sum())
        update(other[1], (b - a).square().sum())

    assert (freed_in_round(step) or "").startswith("test_joined.py:")


def test_the_same_loss_or_another_round() -> None:
    """The same loss once more is no other's, and what a round before has used up is a state."""
    net = network()

    def twice() -> None:
        loss = net[0](torch.ones(3)).tanh().sum()
        loss.backward()
        loss.backward()

    def carried() -> None:
        state = torch.ones(3)
        for _ in range(2):
            state = net[0](state).tanh()
            state.sum().backward()

    assert freed_in_round(twice) is None
    assert freed_in_round(carried) is None
