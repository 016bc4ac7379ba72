"""Numbers that a loss is given as terms, of several readings or under a schedule: trace and source show them together."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from types import SimpleNamespace

import pytest

pytestmark = pytest.mark.torch
torch = pytest.importorskip("torch")

from tests.live.tracing import lines  # noqa: E402

Loss = Callable[[torch.nn.Linear, torch.Tensor], torch.Tensor]
ROUNDS = itertools.count(1)
LOG: list[float] = []
KEPT = SimpleNamespace(mean=0.0)


def rate() -> float:
    """Warmed up from step to step."""
    return min(1.0, 0.01 * next(ROUNDS))


def trained(loss_of: Loss) -> Callable[[], None]:
    layer = torch.nn.Linear(3, 2)
    optimizer = torch.optim.SGD(layer.parameters(), lr=0.1)

    def train() -> None:
        for _ in range(4):
            loss = loss_of(layer, torch.randn(4, 3))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()

    return train


def sizes(layer: torch.nn.Linear, x: torch.Tensor) -> list[torch.Tensor]:
    return [layer(x).square().mean(), layer.weight.norm()]


def numbers(layer: torch.nn.Linear, x: torch.Tensor) -> tuple[torch.Tensor, list[float]]:
    return layer(x).mean(), [one.item() for one in sizes(layer, x)]


def weighed(fit: torch.Tensor, parts: list[float], beta: float) -> torch.Tensor:
    return fit + beta * sum(parts)


def of_a_comprehension(layer: torch.nn.Linear, x: torch.Tensor) -> torch.Tensor:
    levels = [one.clamp(min=0.0).item() for one in sizes(layer, x)]
    for number in levels:
        LOG.append(float(number))
    return layer(x).mean() + rate() * sum(levels)


def of_a_mean(layer: torch.nn.Linear, x: torch.Tensor) -> torch.Tensor:
    levels = []
    for one in sizes(layer, x):
        levels.append(float(one))
    penalty = sum(levels) / max(len(levels), 1)
    return layer(x).mean() + rate() * penalty


def of_a_running_sum(layer: torch.nn.Linear, x: torch.Tensor) -> torch.Tensor:
    beta, total = rate(), 0.0
    for one in sizes(layer, x):
        total += one.item()
    LOG.append(total)
    return total * beta + layer(x).mean()


def of_a_schedule(layer: torch.nn.Linear, x: torch.Tensor) -> torch.Tensor:
    size = layer(x).square().mean().item()
    LOG.append(size)
    return layer(x).mean() + rate() * size


def of_a_table(layer: torch.nn.Linear, x: torch.Tensor) -> torch.Tensor:
    fit, size = layer(x).mean(), layer(x).square().mean()
    log = {"fit": fit.item(), "size": size.item()}
    return fit + rate() * log["size"]


def of_a_loop(layer: torch.nn.Linear, x: torch.Tensor) -> torch.Tensor:
    loss, beta = layer(x).mean(), rate()
    levels = [one.item() for one in sizes(layer, x)]
    for weight, level in zip((0.5, 0.25), levels, strict=True):
        loss = loss + weight * beta * level
    return loss


def of_a_list(layer: torch.nn.Linear, x: torch.Tensor) -> torch.Tensor:
    values = torch.stack(sizes(layer, x)).tolist()
    return layer(x).mean() + rate() * sum(values)


def of_a_helper(layer: torch.nn.Linear, x: torch.Tensor) -> torch.Tensor:
    fit, parts = numbers(layer, x)
    return fit + rate() * sum(parts)


def checked(fit: torch.Tensor, extra: float) -> torch.Tensor:
    return fit + extra


def of_an_argument_of_two_calls(layer: torch.nn.Linear, x: torch.Tensor) -> torch.Tensor:
    """The other call is of an evaluation, which reads its numbers elsewhere."""
    with torch.no_grad():
        LOG.append(checked(layer(x).mean(), LOG[-1] if LOG else 0.0).item())
    return checked(layer(x).mean(), rate() * layer(x).square().mean().item())


def of_an_argument(layer: torch.nn.Linear, x: torch.Tensor) -> torch.Tensor:
    levels = [one.item() for one in sizes(layer, x)]
    return weighed(layer(x).mean(), levels, rate())


class Balance:
    """What the routers of a step saw, by layer."""

    def __init__(self) -> None:
        self.seen, self.told = {}, {}

    def update(self, key: int, shares: torch.Tensor) -> None:
        self.told[key] = shares.max().item()
        self.seen[key] = shares.mean(0).square().sum().item()

    def penalty(self) -> float:
        return sum(self.seen.values()) / len(self.seen)


BALANCE = Balance()


def of_an_object(layer: torch.nn.Linear, x: torch.Tensor) -> torch.Tensor:
    """Read of what the rest of the loss goes through as well, and is no term of it."""
    shares = layer(x).softmax(-1)
    for key in range(2):
        BALANCE.update(key, shares)
    balance = BALANCE.penalty()
    return (shares * x[:, :2]).sum() + 0.1 * balance


TERMS = [
    of_an_object,
    of_a_comprehension, of_a_mean, of_a_running_sum, of_a_schedule, of_a_table, of_a_loop, of_a_list, of_a_helper,
    of_an_argument, of_an_argument_of_two_calls,
]  # fmt: skip


def adaptive(layer: torch.nn.Linear, x: torch.Tensor) -> torch.Tensor:
    first, second = sizes(layer, x)
    return first + rate() * (first.item() / second.item()) * second


def balanced(layer: torch.nn.Linear, x: torch.Tensor) -> torch.Tensor:
    """Each term by its share."""
    terms = sizes(layer, x)
    shares = [one.item() for one in terms]
    return sum(one * share / sum(shares) for one, share in zip(terms, shares, strict=True)) + rate()


def baseline(layer: torch.nn.Linear, x: torch.Tensor) -> torch.Tensor:
    first, second = sizes(layer, x)
    value = second.item()
    return first - rate() * value


def difference(layer: torch.nn.Linear, x: torch.Tensor) -> torch.Tensor:
    """A surrogate that is printed as what it stands for."""
    first, second = sizes(layer, x)
    gap = second.item() - first.item()
    return first + gap


def with_its_own_backward(layer: torch.nn.Linear, x: torch.Tensor) -> torch.Tensor:
    """Each part goes backward at once, to save memory; the sum is told."""
    told = []
    for one in sizes(layer, x):
        one.backward()
        told.append(one.item())
    return layer(x).mean() + rate() * sum(told)


def stabilised(layer: torch.nn.Linear, x: torch.Tensor) -> torch.Tensor:
    """The largest is taken off before `exp`, and added again."""
    scores = layer(x).flatten()
    largest = [scores.max().item()]
    return (scores - largest[0]).exp().sum().log() + sum(largest)


def of_all_steps(layer: torch.nn.Linear, x: torch.Tensor) -> torch.Tensor:
    LOG.append(layer(x).square().mean().item())
    return layer(x).mean() + rate() * sum(LOG[-3:])


def normalised(layer: torch.nn.Linear, x: torch.Tensor) -> torch.Tensor:
    KEPT.mean = 0.9 * KEPT.mean + 0.1 * layer(x).square().mean().item()
    return layer(x).mean() / (1.0 + KEPT.mean) + rate() * KEPT.mean


def flooded(layer: torch.nn.Linear, x: torch.Tensor) -> torch.Tensor:
    loss, flood = layer(x).square().mean(), rate()
    LOG.append(loss.item() + layer.weight.norm().item())
    return (loss - flood).abs() + flood


def of_its_own_value(layer: torch.nn.Linear, x: torch.Tensor) -> torch.Tensor:
    loss = layer(x).square().mean()
    offset = rate() * loss.item()
    return loss + offset


def of_a_curve(layer: torch.nn.Linear, x: torch.Tensor) -> torch.Tensor:
    """A constant that a schedule makes of a number."""
    size = layer.weight.norm().item() * 2.0
    return layer(x).mean() + rate() * math.exp(-size)


def of_no_graph(layer: torch.nn.Linear, x: torch.Tensor) -> torch.Tensor:
    with torch.no_grad():
        levels = [one.item() for one in sizes(layer, x)]
    return layer(x).mean() + rate() * sum(levels)


def stopped_early(layer: torch.nn.Linear, x: torch.Tensor) -> torch.Tensor:
    distance = layer(x).square().mean().item()
    bonus = rate()
    if distance > 100.0:
        bonus = 0.5
    return layer(x).mean() + bonus


TEMPERATURE = torch.nn.Parameter(torch.tensor(0.1))


def tempered(layer: torch.nn.Linear, x: torch.Tensor) -> torch.Tensor:
    """A temperature is no term; what it trains by is computed anew."""
    (TEMPERATURE.exp() * rate()).backward()
    with torch.no_grad():
        TEMPERATURE.sub_(0.1)
    warm = TEMPERATURE.exp().item()
    return layer(x).mean() * warm + rate() * warm


def of_a_part(layer: torch.nn.Linear, x: torch.Tensor) -> torch.Tensor:
    first, second = sizes(layer, x)
    log = {"first": first.item(), "second": second.item()}
    return first + second + rate() * (log["first"] + log["second"])


def told_by_an_object(layer: torch.nn.Linear, x: torch.Tensor) -> torch.Tensor:
    """What the object keeps is for a log; what is added is a schedule's."""
    shares = layer(x).softmax(-1)
    BALANCE.update(0, shares)
    LOG.append(BALANCE.penalty())
    return (shares * x[:, :2]).sum() + rate()


QUIET = [
    told_by_an_object,
    adaptive, balanced, baseline, difference, with_its_own_backward, stabilised, of_all_steps, normalised, flooded,
    of_its_own_value, of_a_curve, of_no_graph, stopped_early,
    tempered, of_a_part,
]  # fmt: skip


@pytest.mark.parametrize("loss_of", QUIET, ids=lambda one: one.__name__)
def test_numbers_that_are_no_terms(loss_of: Loss) -> None:
    assert lines(trained(loss_of), fails=False) == ()


def test_a_number_of_the_step_before() -> None:
    """It is read behind the backward, and so between the same two backwards as the sum that is given it."""
    layer = torch.nn.Linear(3, 2)

    def train() -> None:
        before, seen = 0.0, []
        for _ in range(4):
            x = torch.randn(4, 3)
            loss = layer(x).mean() + rate() * before + rate() * sum(seen)
            loss.backward()
            before = layer(x).square().mean().item()
            seen.append(layer.weight.norm().item())

    assert lines(train, fails=False) == ()


def test_a_term_that_trains_later() -> None:
    layer = torch.nn.Linear(3, 2)

    def train() -> None:
        for _ in range(4):
            terms = sizes(layer, torch.randn(4, 3))
            told = [one.item() for one in terms]
            (layer(torch.ones(1, 3)).mean() + rate() * sum(told)).backward()
            for one in terms:
                one.backward()

    assert lines(train, fails=False) == ()


@pytest.mark.parametrize("loss_of", TERMS, ids=lambda one: one.__name__)
def test_numbers_that_are_terms(loss_of: Loss) -> None:
    """The sum is told, and the line that read it."""
    assert {one.kind for one in lines(trained(loss_of), fails=False)} == {"added", "dead-term"}
