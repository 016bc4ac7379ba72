"""An evaluation between a forward and its backward moves behind the backward."""

from __future__ import annotations

import pathlib

import pytest

from tests.fix.rewriting import rewritten

HEAD = """import torch
from torch import nn
net = nn.Sequential(nn.Linear(4, 4), nn.Dropout(0.1))
opt = torch.optim.SGD(net.parameters(), lr=0.1)


def score(model, x):
    model.eval()
    with torch.no_grad():
        return model(x).mean()


def restored(model, x):
    was = model.training
    model.eval()
    y = model(x)
    model.train(was)
    return y


"""
STEP = """for x in torch.randn(3, 2, 4):
    net.train()
    loss = net(x).sum()
{between}
    loss.backward()
    opt.step()
    print(loss.item())
"""


def program(*between: str) -> str:
    return HEAD + STEP.format(between="\n".join(f"    {line}" for line in between))


RIGHT = {
    "set back in the function": program("y = restored(net, x)"),
    "set back in the loop": program("y = score(net, x)", "net.train()"),
    "the backward reads it": program("loss = loss * score(net, x)"),
    "it leaves the round": program("if score(net, x) > 1:", "    continue"),
    "no mode": program("y = net(x).detach()"),
    "before the forward": program("opt.zero_grad()").replace("    net.train()", "    y = score(net, x)"),
    "before a forward without a loop": HEAD
    + "y = score(net, x)\nloss = net(torch.randn(2, 4)).sum()\nloss.backward()\n",
    "after the backward": program("opt.zero_grad()").replace("    opt.step()", "    y = score(net, x)\n    opt.step()"),
}
WRONG = {
    "without a loop": (
        HEAD + "loss = net(torch.randn(2, 4)).sum()\ny = score(net, torch.ones(2, 4))\nloss.backward()\n",
        ["y = score(net, torch.ones(2, 4))"],
    ),
    "a function": (program("y = score(net, x)  # without dropout"), ["y = score(net, x)  # without dropout"]),
    "in the loop itself": (
        program("opt.zero_grad()", "net.eval()", "with torch.no_grad():", "    y = net(x)"),
        ["net.eval()", "with torch.no_grad():", "y = net(x)"],
    ),
    "train(False)": (program("net.train(False)", "opt.zero_grad()"), ["net.train(False)"]),
}


@pytest.mark.parametrize("source", RIGHT.values(), ids=RIGHT)
def test_right_programs_stay(tmp_path: pathlib.Path, source: str) -> None:
    """What is in train mode by the backward, or what the backward needs, stays."""
    assert rewritten(tmp_path, "evaluate_after_backward", source, "loss.backward()") == source


@pytest.mark.parametrize(("source", "moved"), WRONG.values(), ids=WRONG)
def test_the_evaluation_moves(tmp_path: pathlib.Path, source: str, moved: list[str]) -> None:
    """It stands behind the backward, with its comment; a second time nothing is left to do."""
    after = rewritten(tmp_path, "evaluate_after_backward", source, "loss.backward()")
    loop = [line.strip() for line in after.removeprefix(HEAD).splitlines()]
    at = loop.index("loss.backward()") + 1
    assert loop[at : at + len(moved)] == moved
    assert sorted(after.splitlines()) == sorted(source.splitlines())
    assert rewritten(tmp_path, "evaluate_after_backward", after, "loss.backward()") == after
