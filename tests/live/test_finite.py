"""What is not finite where a failure speaks of NaN: data, parameters, or neither; nothing is said elsewhere."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import pytest

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402

from explainer.live.crash import look  # noqa: E402
from explainer.verification.live_report import facts_of  # noqa: E402

NAMES = ("live_bad_data", "live_bad_parameters", "live_all_finite")


def told(call: Callable[[], object]) -> dict[str, str]:
    with pytest.raises((ArithmeticError, RuntimeError, ValueError, AssertionError)) as failed:
        call()
    return {name: value for name, value in facts_of(look(failed.value)) if name in NAMES}


def with_nan(*shape: int) -> torch.Tensor:
    rows = torch.ones(*shape)
    rows.view(-1)[-1] = math.nan
    return rows


@dataclass
class Batch:
    images: torch.Tensor
    labels: torch.Tensor


def refuse(loss: torch.Tensor) -> None:
    if not torch.isfinite(loss):
        raise FloatingPointError(f"loss is {loss.item()} in epoch 0")


def train_on(images: torch.Tensor) -> None:
    net = nn.Linear(3, 2)
    refuse(net(images).square().mean())


def train_in(kind: type) -> None:
    net = nn.Linear(3, 2)
    images = with_nan(4, 3)
    batch = (
        Batch(images, torch.zeros(4)) if kind is Batch else kind({"images": images}) if kind is dict else kind([images])
    )
    del images
    given = batch.images if kind is Batch else batch["images"] if kind is dict else batch[0]
    refuse(net(given).mean())


def bad_weight() -> None:
    net = nn.Sequential(nn.Linear(3, 2), nn.BatchNorm1d(2))
    with torch.no_grad():
        net[0].weight[1, 1] = math.inf
    images = torch.ones(4, 3)
    refuse(net(images).mean())


def bare_assert() -> None:
    net, images = nn.Linear(3, 2), with_nan(4, 3)
    assert torch.isfinite(net(images)).all()


def masked() -> None:
    net, mask = nn.Linear(3, 2), torch.full((4, 2), -math.inf)
    refuse((net(torch.ones(4, 3)) + mask).softmax(-1).mean())


def in_evaluation() -> None:
    net, images = nn.Linear(3, 2), torch.ones(4, 3)
    with torch.no_grad():
        scores = net(images).log().sub(math.inf).add(math.inf)
        refuse(scores.mean())


def of_shapes() -> None:
    net, images = nn.Linear(3, 2), with_nan(4, 4)
    net(images)


def behind_the_device() -> None:
    net, images = nn.Linear(3, 2), with_nan(4, 3)
    del net
    raise RuntimeError(f"CUDA error: device-side assert triggered, loss nan of {len(images)}")


def test_data_by_the_name_that_holds_it() -> None:
    """The parameters are finite: what the failing function was given is named, of all frames the innermost first."""
    assert told(lambda: train_on(with_nan(4, 3))) == {"live_bad_data": "images in train_on"}


@pytest.mark.parametrize(("kind", "name"), [(dict, "batch['images']"), (tuple, "batch[0]"), (Batch, "batch.images")])
def test_data_in_a_batch(kind: type, name: str) -> None:
    """A dictionary, a tuple or a data class."""
    assert f"{name} in train_in" in told(lambda: train_in(kind))["live_bad_data"]


def test_a_bare_assertion() -> None:
    """The line asks for what is finite, though the exception says nothing."""
    assert told(bare_assert) == {"live_bad_data": "images in bare_assert"}


def test_parameters_and_not_the_data_behind_them() -> None:
    """A weight that is infinite; what it makes of the data is not data."""
    assert told(bad_weight) == {"live_bad_parameters": "Sequential.0.weight"}


@pytest.mark.parametrize(("seen", "is_told"), [({"made_steps": 0}, True), ({"made_steps": 3}, False), ({}, False)])
def test_parameters_before_any_step(seen: dict, is_told: bool) -> None:  # noqa: FBT001
    """Where the optimizers are known to have made none, the weights came so."""
    facts = dict(facts_of({"grad_enabled": True, "bad_parameters": "conv.weight", **seen}))
    assert (facts.get("live_untouched_parameters") == "conv.weight") == is_told


def test_all_is_finite() -> None:
    """An operation made it."""

    def sink() -> None:
        net, images = nn.Linear(3, 2), torch.zeros(4, 3)
        refuse(net(images).mean() * math.inf)

    assert told(sink) == {"live_all_finite": "2 parameters, images in sink"}


@pytest.mark.parametrize("call", [masked, in_evaluation, of_shapes, behind_the_device])
def test_nothing_is_said(call: Callable[[], object]) -> None:
    """A mask of infinities; gradients off, where a result looks as data does; a failure of shapes; a device that failed."""
    assert told(call) == {}


def test_infinite_data_is_no_fault_and_no_proof() -> None:
    """The best value so far starts at infinity: nothing is said of it, nor that all is finite."""

    def search() -> None:
        net, best = nn.Linear(3, 2), torch.full((4,), math.inf)
        refuse(net(torch.ones(4, 3)).mean() * best.max())

    assert told(search) == {}


def test_a_result_of_the_model_is_not_data() -> None:
    """What needs a gradient is the model's."""

    def sink() -> None:
        net, images = nn.Linear(3, 2), torch.ones(4, 3)
        scores = net(images) * math.inf - math.inf
        refuse(scores.mean())

    assert "live_bad_data" not in told(sink)


def test_looking_changes_nothing() -> None:
    """Neither versions of tensors nor the generator."""
    images = with_nan(4, 3)
    version, state = images._version, torch.get_rng_state()  # noqa: SLF001
    told(lambda: train_on(images))
    torch.set_rng_state(state)
    nn.Linear(3, 2)
    after = torch.rand(1)
    torch.set_rng_state(state)
    told(lambda: train_on(images))
    assert images._version == version  # noqa: SLF001
    assert torch.equal(torch.rand(1), after)
