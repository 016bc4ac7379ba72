"""A network that another one computes the weights of runs on these, so that what computes them trains."""

from __future__ import annotations

import pathlib
from dataclasses import replace

import pytest

from explainer.fix.splice import splice
from tests.fix.rewriting import best, diff_lines, failed, write

TOP = """import torch
from torch import nn
torch.manual_seed(0)
net, hyper = nn.Linear(3, 1), nn.Linear(4, 4)
opt = torch.optim.SGD(hyper.parameters(), lr=0.1)
"""
HELPER = "def load(net, weights):\n    {}\n"
LOOP = """
def main():
    for _ in range(3):
        flat = hyper(torch.randn(4))
        weights = {"weight": flat[:3].view(1, 3), "bias": flat[3:]}
        LOAD
        loss = net(torch.randn(5, 3)).pow(2).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()

main()
grads = [one.grad for one in hyper.parameters()]
"""
CALLED = "+        loss = torch.func.functional_call(net, weights, (torch.randn(5, 3),)).pow(2).mean()"
LOADS = {
    "load_state_dict": ("", "net.load_state_dict(weights)"),
    "data": ("", "for name, p in net.named_parameters():\n            p.data = weights[name]"),
    "data.copy_": ("", "for name, p in net.named_parameters():\n            p.data.copy_(weights[name])"),
    "copy_ without grad": (
        "",
        "with torch.no_grad():\n            for name, p in net.named_parameters():\n                p.copy_(weights[name])",
    ),
    "under other names": (
        "",
        "for name, p in net.named_parameters():\n            p.data = weights[name.lower()]",
    ),
    "by name": ("", 'net.weight.data = weights["weight"]\n        net.bias.data = weights["bias"]'),
    "by name, under no_grad": (
        "",
        'with torch.no_grad():\n            net.weight.copy_(weights["weight"])\n            net.bias.copy_(weights["bias"])',
    ),
    "a helper": (
        'def load(target, given):\n    """Load."""\n    for key, one in target.named_parameters():\n        one.data = given[key]\n',
        "load(net, weights)",
    ),
}


@pytest.mark.torch
@pytest.mark.parametrize(("helper", "load"), LOADS.values(), ids=LOADS)
def test_what_computes_the_weights_trains(helper: str, load: str, tmp_path: pathlib.Path) -> None:
    """No gradient before, all after; only the load and the call change."""
    torch = pytest.importorskip("torch")
    import gradfix

    text = TOP + helper + LOOP.replace("LOAD", load)
    (tmp_path / "train.py").write_text(text)
    space: dict = {}
    with gradfix.trace() as seen:
        exec(compile(text, str(tmp_path / "train.py"), "exec"), space)  # noqa: S102
    assert space["grads"] == [None, None]
    program = write(tmp_path, {"train.py": text})
    proposal = best("run_with_values", program, incident=replace(failed(), traced=seen.lines))
    assert proposal is not None
    after = splice(text, proposal.edits)
    each = '{"weight": weights["weight"], "bias": weights["bias"]}'
    of_each = "{name: weights[name.lower()] for name, _ in net.named_parameters()}"
    given = each if "net.bias" in load else of_each if "lower" in load else "weights"
    called = CALLED.replace("weights", given)
    assert [one for one in diff_lines(text, after) if one[0] == "+"] == [called]
    exec(compile(after, "after", "exec"), space)  # noqa: S102
    assert all(one is not None and torch.isfinite(one).all() for one in space["grads"])


USED = """
        scores.append(evaluate(net))
"""
CHANGED = """
        net = nn.Linear(3, 1)
        net(torch.randn(5, 3))
"""


@pytest.mark.torch
@pytest.mark.parametrize(
    ("more", "is_loaded"), [(USED, True), (CHANGED, None)], ids=["used elsewhere", "another network"]
)
def test_what_else_uses_the_network(more: str, is_loaded: bool | None, tmp_path: pathlib.Path) -> None:
    """It is still given the weights; a name that means another network by then is left alone."""
    pytest.importorskip("torch")
    import gradfix

    text = TOP + LOOP.replace("LOAD", LOADS["load_state_dict"][1]).replace(
        "        opt.step()\n", f"        opt.step(){more}"
    )
    text = text.replace(
        "def main():",
        "scores = []\ndef evaluate(one):\n    return one(torch.ones(1, 3)).item()\ndef main():\n    global net",
    )
    with gradfix.trace() as seen:
        exec(compile(text, str(tmp_path / "train.py"), "exec"), {})  # noqa: S102
    program = write(tmp_path, {"train.py": text})
    proposal = best("run_with_values", program, incident=replace(failed(), traced=seen.lines))
    if is_loaded is None:
        assert proposal is None
        return
    assert proposal is not None
    after = splice(text, proposal.edits)
    assert "functional_call(net, weights" in after
    assert ("load_state_dict" in after) is is_loaded


def test_a_checkpoint_that_is_loaded_is_no_cut() -> None:
    """Copies of a network's own state, and averages of another's weights, hide no graph."""
    torch = pytest.importorskip("torch")
    import gradfix

    net, teacher = torch.nn.Linear(3, 1), torch.nn.Linear(3, 1)
    opt = torch.optim.SGD(net.parameters(), lr=0.1)
    with gradfix.trace() as seen:
        for _ in range(3):
            teacher.load_state_dict(net.state_dict())
            with torch.no_grad():
                for one, other in zip(teacher.parameters(), net.parameters(), strict=True):
                    one.mul_(0.9).add_(other, alpha=0.1)
                    one.data = one.data * 0.5 + other.data * 0.5
            x = torch.randn(4, 3)
            loss = (net(x) - teacher(x).detach()).pow(2).mean() + net(x).pow(2).mean()
            opt.zero_grad()
            loss.backward()
            opt.step()
    assert seen.lines == ()
