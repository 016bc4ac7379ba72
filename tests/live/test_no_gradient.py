"""Parameters without a gradient are told where others of the module have theirs."""

from __future__ import annotations

import pytest

from explainer.live.no_gradient import without_gradient

pytestmark = pytest.mark.torch
torch = pytest.importorskip("torch")

NONE = AttributeError("'NoneType' object has no attribute 'data'")


def test_a_head_that_the_loss_does_not_use() -> None:
    """By name; not before any backward, of a module that is frozen, or for another failure."""
    net = torch.nn.ModuleDict({"body": torch.nn.Linear(2, 2), "head": torch.nn.Linear(2, 1)})
    assert without_gradient([net], NONE) is None
    net["body"](torch.ones(1, 2)).sum().backward()
    other = torch.nn.Linear(2, 2)
    assert without_gradient([other, net], NONE) == "ModuleDict: head.weight, head.bias"
    assert without_gradient([net], AttributeError("'Tensor' object has no attribute 'x'")) is None
    net["head"].requires_grad_(False)
    assert without_gradient([net], NONE) is None
