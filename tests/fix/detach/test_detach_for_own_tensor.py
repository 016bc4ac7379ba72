"""A loss for a tensor alone takes what a network has made as data."""

from __future__ import annotations

import pathlib

import pytest

from tests.fix.rewriting import changed_lines, rewritten

SOURCE = """import torch
from torch import nn

torch.manual_seed(0)
actor = nn.Linear(4, 1)
log_alpha = torch.zeros(1, requires_grad=True)
opt_a = torch.optim.SGD(actor.parameters(), 0.1)
opt_t = torch.optim.SGD([log_alpha], 0.1)
logp = actor(torch.randn(8, 4)).sigmoid()
loss = (log_alpha.exp() * logp).mean()
opt_a.zero_grad()
loss.backward()
opt_a.step()
second = -(log_alpha.exp() * (logp + 1.0)).mean()
opt_t.zero_grad()
second.backward()
opt_t.step()
"""
RIGHT = {
    "detached": SOURCE.replace("(logp + 1.0)", "(logp.detach() + 1.0)"),
    "a module is trained too": SOURCE.replace("SGD([log_alpha]", "SGD([*actor.parameters(), log_alpha]"),
    "the tensor lies behind what is shared": SOURCE.replace(".sigmoid()", ".sigmoid() * log_alpha.exp()"),
    "a network of its own": SOURCE.replace("SGD([log_alpha]", "SGD(other.parameters()").replace(
        "log_alpha =", "other = nn.Linear(1, 1)\nlog_alpha ="
    ),
}


@pytest.mark.torch
def test_what_the_network_made_is_data(tmp_path: pathlib.Path) -> None:
    """The tensor has the gradient that it would have had."""
    torch = pytest.importorskip("torch")
    with pytest.raises(RuntimeError, match="second time"):
        exec(SOURCE, {})
    after = rewritten(tmp_path, "detach_for_own_tensor", SOURCE, "second.backward")
    assert changed_lines(SOURCE, after) == ["second = -(log_alpha.exp() * (logp.detach() + 1.0)).mean()"]
    done: dict = {}
    exec(after, done)
    assert torch.allclose(done["log_alpha"].grad, -(done["logp"] + 1).mean())


@pytest.mark.parametrize("source", RIGHT.values(), ids=RIGHT)
def test_left_alone(source: str, tmp_path: pathlib.Path) -> None:
    assert rewritten(tmp_path, "detach_for_own_tensor", source, "second.backward") == source
