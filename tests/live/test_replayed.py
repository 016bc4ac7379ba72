"""Checkpointed segments whose replay computes something else: shapes agree, nothing is raised, and gradients are wrong."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest

torch = pytest.importorskip("torch")
checkpointing = pytest.importorskip("torch.utils.checkpoint")

from tests.live.tracing import lines, shown  # noqa: E402

pytestmark = pytest.mark.torch
Step = Callable[[], None]


def rounds(once: Step) -> Step:
    def train() -> None:
        for _ in range(2):
            once()

    return train


def loop_variable() -> Step:
    blocks, x = [torch.nn.Linear(4, 4) for _ in range(3)], torch.randn(2, 4)

    def once() -> None:
        h = x
        for block in blocks:
            h = checkpointing.checkpoint(lambda value: torch.tanh(block(value)), h, use_reentrant=False)
        h.sum().backward()

    return once


def index_of_a_loop() -> Step:
    blocks, x = [torch.nn.Linear(4, 4) for _ in range(3)], torch.randn(2, 4, requires_grad=True)

    def once() -> None:
        h = x
        for at in range(3):
            h = checkpointing.checkpoint(lambda value: blocks[at](value), h, use_reentrant=True)
        h.sum().backward()

    return once


def own_generator() -> Step:
    body, generator = torch.nn.Linear(4, 4), torch.Generator().manual_seed(0)

    def masked(x: torch.Tensor) -> torch.Tensor:
        hidden = body(x)
        mask = torch.rand(hidden.shape, generator=generator)
        return torch.tanh(hidden * mask)

    return lambda: checkpointing.checkpoint(masked, torch.randn(2, 4), use_reentrant=False).sum().backward()


def counted_scale() -> Step:
    body, scale = torch.nn.Linear(4, 4), torch.ones(1)  # one that no other operation saves

    def annealed(x: torch.Tensor) -> torch.Tensor:
        hidden = torch.tanh(body(x) * scale)
        scale.mul_(0.5)
        return hidden

    return lambda: checkpointing.checkpoint(annealed, torch.randn(2, 4), use_reentrant=False).sum().backward()


def stepped_between() -> Step:
    critic, actor = torch.nn.Linear(4, 4), torch.nn.Linear(4, 4)
    optimizer = torch.optim.SGD(critic.parameters(), lr=0.5)

    def score(x: torch.Tensor) -> torch.Tensor:
        return torch.tanh(critic(x))

    def once() -> None:
        made = actor(torch.randn(2, 4))
        value = checkpointing.checkpoint(score, made, use_reentrant=False)
        score(made.detach()).sum().backward()
        optimizer.step()
        value.sum().backward()

    return once


def written_behind_the_replay() -> Step:
    body, weight = torch.nn.Linear(4, 4), torch.ones(4, requires_grad=True)
    chance = random.Random(0)

    def scaled(x: torch.Tensor) -> torch.Tensor:
        return torch.tanh(body(x) * (weight * chance.uniform(0.5, 2.0)))

    def once() -> None:
        checkpointing.checkpoint(scaled, torch.randn(2, 4), use_reentrant=False).sum().backward()
        with torch.no_grad():
            weight.clamp_(max=0.9)  # not what made the replay another one

    return once


OTHER = {
    "a loop's variable": (loop_variable, ("replayed", "checkpoint", "once")),
    "a loop's index, by reentry": (index_of_a_loop, ("replayed", "checkpoint", "once")),
    "a generator of its own": (own_generator, ("replayed", "rand", "masked")),
    "state that the segment writes": (counted_scale, ("replayed", "mul_", "annealed")),
    "a number of Python's": (written_behind_the_replay, ("replayed", "mul", "scaled")),
    "parameters stepped in between": (stepped_between, ("hidden-write", "step", "once")),
}


@pytest.mark.parametrize(("made", "told"), OTHER.values(), ids=OTHER)
def test_other_values_are_told(made: Callable[[], Step], told: tuple[str, str, str]) -> None:
    """The line of the program that makes them other ones, once."""
    torch.manual_seed(0)
    assert shown(lines(rounds(made()), fails=False)) == [told]


def test_a_replay_that_saves_fewer_tensors() -> None:
    """Where torch refuses the replay, the variable is told all the same: no operation of it has another shape."""
    blocks = [torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.Tanh()), torch.nn.Linear(4, 4)]

    def once() -> None:
        x = torch.randn(2, 4)
        for block in blocks:
            x = checkpointing.checkpoint(lambda value: block(value), x, use_reentrant=False)
        x.sum().backward()

    assert shown(lines(once)) == [("replayed", "checkpoint", "once")]


@pytest.mark.parametrize("made", [one for one, _ in OTHER.values()], ids=OTHER)
def test_the_gradients_are_others(made: Callable[[], Step], monkeypatch: pytest.MonkeyPatch) -> None:
    """What the lines claim, measured: without checkpointing the step gives other gradients, or autograd sees the write."""
    found = []
    for call in (checkpointing.checkpoint, lambda function, *given, **_: function(*given)):
        monkeypatch.setattr(checkpointing, "checkpoint", call)
        torch.manual_seed(0)
        seen: list[torch.Tensor] = []
        hook = torch.nn.modules.module.register_module_full_backward_hook(
            lambda _, __, given, to=seen: to.append(given[0])
        )
        try:
            made()()
        except RuntimeError as error:
            assert "modified by an inplace operation" in str(error)
            return
        finally:
            hook.remove()
        found.append(seen)
    first, second = found
    assert not all(torch.allclose(one, other) for one, other in zip(first, second, strict=True))


class Noisy(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + 0.1 * torch.randn_like(x)


SAME = {
    "dropout": lambda: torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.Dropout(0.5)),
    "noise of torch's generator": lambda: torch.nn.Sequential(torch.nn.Linear(4, 4), Noisy(), torch.nn.Tanh()),
    "batch statistics": lambda: torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.BatchNorm1d(4)),
    "half precision": lambda: torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.LayerNorm(4)).bfloat16(),
}


@pytest.mark.parametrize("reentrant", [False, True])
@pytest.mark.parametrize("made", SAME.values(), ids=SAME)
def test_the_same_values(made: Callable[[], torch.nn.Module], reentrant: bool) -> None:  # noqa: FBT001
    """Nothing is told of replays that are right, with a step of the optimizer behind each backward."""
    model = made()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
    dtype = next(model.parameters()).dtype

    def once() -> None:
        x = torch.randn(8, 4, dtype=dtype, requires_grad=True)
        checkpointing.checkpoint(model, x, use_reentrant=reentrant).sum().backward()
        optimizer.step()

    assert lines(rounds(once), fails=False) == ()
