"""A probe's loss does not go back into the network that it watches."""

from __future__ import annotations

import pytest

from tests.fix.rewriting import changed_lines, rewritten

SOURCE = """import torch
from torch import nn
import torch.nn.functional as F

net, NAME = nn.Linear(4, 3), nn.Linear(3, 2)
opt, opt_p = torch.optim.SGD(net.parameters(), 0.1), torch.optim.SGD(NAME.parameters(), 0.1)
for x, y in batches:
    features = net(x)
    loss = features.square().mean()
    watched = F.cross_entropy(NAME(GIVEN), y)
    loss.backward()
    watched.backward()
    opt.step()
    opt_p.step()
"""


def program(name: str, given: str = "features") -> str:
    return SOURCE.replace("NAME", name).replace("GIVEN", given)


@pytest.mark.parametrize("name", ["probe", "linear_probe", "probe_head", "online_classifier"])
def test_a_probe_takes_data(tmp_path, name: str) -> None:
    """By what it is called; a second time nothing is left to do."""
    after = rewritten(tmp_path, "detach_for_probe", program(name), "watched.backward")
    assert changed_lines(program(name), after) == [f"watched = F.cross_entropy({name}(features.detach()), y)"]
    assert rewritten(tmp_path, "detach_for_probe", after, "watched.backward") == after


@pytest.mark.parametrize(("name", "given"), [("head", "features"), ("probe", "x"), ("probed", "features")])
def test_other_heads_stay(tmp_path, name: str, given: str) -> None:
    """A head trains the network, and data have no graph."""
    assert rewritten(tmp_path, "detach_for_probe", program(name, given), "watched.backward") == program(name, given)
