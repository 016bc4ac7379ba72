"""An optimizer that a scaler could not step: frozen, without a part in the loss, or of another model."""

from __future__ import annotations

import pytest

from explainer.model.incident import IDLE_OPTIMIZER

pytestmark = pytest.mark.torch


@pytest.fixture(autouse=True)
def _torch():
    pytest.importorskip("torch")


def seen(net, optimizer, use, steps_of=None) -> str | None:
    """What the live objects say of an optimizer whose step fails."""
    import torch

    from explainer.live.crash import look
    from explainer.verification.live_report import facts_of

    scaler = torch.amp.GradScaler("cpu")
    scaler.scale(use(net)).backward()
    with pytest.raises(AssertionError) as failed:
        scaler.step(optimizer)
    return dict(facts_of(look(failed.value, steps_of=steps_of))).get(IDLE_OPTIMIZER)


def whole(net):
    """A loss of both parts."""
    import torch

    return net["head"](net["body"](torch.ones(2, 3))).sum()


def test_a_frozen_part() -> None:
    """None of its parameters requires grad; its steps are those that were counted."""
    import torch

    net = torch.nn.ModuleDict({"body": torch.nn.Linear(3, 3), "head": torch.nn.Linear(3, 1)})
    optimizer = torch.optim.SGD(net["body"].parameters(), lr=0.1)
    net["body"].requires_grad_(False)
    assert seen(net, optimizer, whole, lambda _: 5) == "SGD: frozen, 5 steps before"


def test_an_unused_part() -> None:
    """Others of its module have gradients. Where nobody counted, what it keeps of its steps speaks for one."""
    import torch

    net = torch.nn.ModuleDict({"body": torch.nn.Linear(3, 3), "head": torch.nn.Linear(3, 1)})
    optimizer = torch.optim.Adam(net["head"].parameters())
    assert seen(net, optimizer, lambda net: net["body"](torch.ones(2, 3)).sum()) == "Adam: unused, 0 steps before"
    whole(net).backward()
    optimizer.step()
    net.zero_grad()
    assert seen(net, optimizer, lambda net: net["body"](torch.ones(2, 3)).sum()) == "Adam: unused, 1 steps before"


def test_parameters_of_another_model() -> None:
    """A model that was copied behind its optimizer."""
    import copy

    import torch

    net = torch.nn.ModuleDict({"body": torch.nn.Linear(3, 3), "head": torch.nn.Linear(3, 1)})
    optimizer = torch.optim.SGD(net["body"].parameters(), lr=0.1)
    net = copy.deepcopy(net)
    assert seen(net, optimizer, whole, lambda _: 0) == "SGD: elsewhere, 0 steps before"


def test_a_part_that_is_cut_off() -> None:
    """A model of which nothing has a gradient says nothing of its optimizer."""
    import torch

    net = torch.nn.ModuleDict({"body": torch.nn.Linear(3, 3)})
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    told = seen(net, optimizer, lambda _: torch.ones(2, requires_grad=True).sum(), lambda _: 3)
    assert told == "SGD: elsewhere, 3 steps before"
