"""An evaluation between a forward and its backward moves behind the backward."""

from __future__ import annotations

import pathlib

import pytest

from tests.fix.rewriting import diff_lines, rewritten

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


EPOCHS = """class Trainer:
    def predict(self, x):
        net.eval()
        with torch.no_grad():
            return net(x).argmax(-1)

    def log(self, x):
        print(self.predict(x).sum())

    def step(self, x):
        loss = net(x).sum()
        self.log(x)
        loss.backward()
        opt.step()

    def fit(self):
        for _ in range(2):
            net.train()
            for x in torch.randn(3, 2, 4):
                self.step(x)


Trainer().fit()
"""


@pytest.mark.torch
def test_the_mode_is_set_back_where_no_step_sets_it(tmp_path: pathlib.Path) -> None:
    """Moved behind the backward, the evaluation would leave the next step in eval mode."""
    pytest.importorskip("torch")
    after = rewritten(tmp_path, "evaluate_after_backward", HEAD + EPOCHS, "loss.backward()")
    assert [one for one in diff_lines(HEAD + EPOCHS, after) if one[0] == "+"] == [
        "+        training = net.training",
        "+            result = net(x).argmax(-1)",
        "+            net.train(training)",
        "+            return result",
    ]
    space: dict = {}
    exec(compile(after.replace("opt.step()", "opt.step(); assert net.training"), "after", "exec"), space)  # noqa: S102
    assert rewritten(tmp_path, "evaluate_after_backward", after, "loss.backward()") == after
    each = EPOCHS.replace("                self.step", "                net.train()\n                self.step")
    moved = rewritten(tmp_path, "evaluate_after_backward", HEAD + each, "loss.backward()")
    assert sorted(moved.splitlines()) == sorted((HEAD + each).splitlines())


def test_an_evaluation_in_the_step_itself(tmp_path: pathlib.Path) -> None:
    """It moves, and the mode of the next step is set behind it."""
    source = program("net.eval()", "y = net(x)").replace("    net.train()\n", "")
    after = rewritten(tmp_path, "evaluate_after_backward", source, "loss.backward()")
    assert after.splitlines()[-6:] == [
        "    loss.backward()",
        "    net.eval()",
        "    y = net(x)",
        "    net.train()",
        "    opt.step()",
        "    print(loss.item())",
    ]
