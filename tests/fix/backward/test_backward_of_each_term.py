"""A loss that a loop sums up goes back by itself in each round."""

from __future__ import annotations

import pathlib

import pytest

from tests.fix.mending import run
from tests.fix.rewriting import changed_lines, rewritten

LOOP = """import torch
torch.manual_seed(0)
net = torch.nn.Linear(3, 1)
total = START
for i, x in enumerate(torch.ones(4, 2, 3).unbind()):
    loss = net(x).square().mean() / 2
    SUM
    total.backward()
    if i % 2:
        last = net.weight.grad.clone()
        net.zero_grad()
        RESET
"""
RIGHT = {
    "a sum that starts with a loss": LOOP.replace("START", "net(torch.ones(3)).sum()").replace(
        "SUM", "total = total + loss"
    ),
    "a weighted term": LOOP.replace("START", "0.0").replace("SUM", "total = total + 0.5 * loss"),
    "two terms": LOOP.replace("START", "0.0").replace("SUM", "total = total + loss; total += loss"),
    "a mean of the rounds": LOOP.replace("START", "0.0").replace("SUM", "total = 0.9 * total + loss"),
}


@pytest.mark.torch
@pytest.mark.parametrize("sums", ["total = total + loss", "total += loss", "total = loss + total"])
@pytest.mark.parametrize("reset", ["total = 0.0", "pass"])
def test_each_round_goes_back_by_itself(sums: str, reset: str, tmp_path: pathlib.Path) -> None:
    """The gradients are those of all losses of a step, summed up."""
    torch = pytest.importorskip("torch")
    source = LOOP.replace("START", "0.0").replace("SUM", sums).replace("RESET", reset)
    with pytest.raises(RuntimeError, match="second time"):
        run(source, tmp_path / "before.py")
    after = rewritten(tmp_path, "backward_of_each_term", source, "total.backward")
    assert [one.strip() for one in changed_lines(source, after)] == [
        sums.replace("loss", "loss.detach()"), "loss.backward()",
    ]  # fmt: skip
    seen = run(after, tmp_path / "after.py")
    loss = seen["net"](torch.ones(2, 3)).square().mean()
    wanted = torch.autograd.grad(loss, seen["net"].weight)[0]
    assert torch.allclose(seen["last"], wanted)


@pytest.mark.parametrize("source", RIGHT.values(), ids=RIGHT)
def test_others_stay(source: str, tmp_path: pathlib.Path) -> None:
    """What each round adds is no plain loss, or the sum begins with something else."""
    source = source.replace("RESET", "pass")
    assert rewritten(tmp_path, "backward_of_each_term", source, "total.backward") == source
