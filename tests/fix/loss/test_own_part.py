"""A running sum that each round sends back: what the round adds goes back by itself, and is added without its graph."""

from __future__ import annotations

import pathlib

import pytest

from tests.fix.mending import run
from tests.fix.rewriting import diff_lines, rewritten

HEAD = """import torch
from torch import nn
import torch.nn.functional as F
torch.manual_seed(0)
net, cell = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1)), nn.GRUCell(3, 3)
xs = torch.randn(4, 2, 3)
def error(x):
    return F.mse_loss(net(x), x[:, :1])
"""
PLAIN = "loss = torch.zeros(())"
ADDED = "loss = loss + w * error(x)"
MEANT = {
    "once behind the loop": (PLAIN, [ADDED], "loss.backward()"),
    "once in some rounds": (PLAIN, [ADDED, "if i % 2:", "    loss.backward()"], "pass"),
    "the graph is kept on purpose": (PLAIN, [ADDED, "loss.backward(retain_graph=True)"], "pass"),
    "in the loop and behind it": (PLAIN, [ADDED, "loss.backward()"], "loss.backward()"),
    "a sum that begins with a graph": ("loss = net(xs).abs().mean()", [ADDED, "loss.backward()"], "pass"),
    "a name added to a sum that begins with a graph": (
        "loss = net(xs).abs().mean()",
        ["one = error(x)", "loss = loss + one", "loss.backward()"],
        "pass",
    ),
    "a sum that was handed in": ("pass", [ADDED, "loss.backward()"], "pass"),
    "the mean so far": (PLAIN, [ADDED, "(loss / (i + 1)).backward()"], "pass"),
    "a running average": (PLAIN, ["loss = 0.9 * loss + 0.1 * error(x)", "loss.backward()"], "pass"),
    "taken off": (PLAIN, ["loss = loss - error(x)", "loss.backward()"], "pass"),
    "a product with itself": (PLAIN, ["loss = loss + (1 + loss) * error(x)", "loss.backward()"], "pass"),
    "added twice": (PLAIN, [ADDED, "loss = loss + net(x).abs().mean()", "loss.backward()"], "pass"),
    "sent back before it is added": (PLAIN, ["if i: loss.backward()", ADDED], "pass"),
}
WRONG = {
    "a share": ([ADDED, "loss.backward()"], ["part = w * error(x)", "loss = loss + part.detach()", "part.backward()"]),
    "in place": (
        ["loss += w * error(x)", "loss.backward()"],
        ["part = w * error(x)", "loss += part.detach()", "part.backward()"],
    ),
    "the sum stands last": (
        ["loss = error(x) + loss", "loss.backward()"],
        ["part = error(x)", "loss = part.detach() + loss", "part.backward()"],
    ),
    "several terms": (
        ["loss = loss + error(x) - w * net(x).mean()", "loss.backward()"],
        ["part = error(x) - w * net(x).mean()", "loss = loss + part.detach()", "part.backward()"],
    ),
    "in brackets, over two lines": (
        ["loss = loss + (error(x)", "    * w)", "loss.backward()"],
        ["part = (error(x)", "* w)", "loss = loss + part.detach()", "part.backward()"],
    ),
    "by the number of rounds": (
        [ADDED, "(loss / len(xs)).backward()"],
        ["part = w * error(x)", "loss = loss + part.detach()", "(part / len(xs)).backward()"],
    ),
    "a name, by a number": (
        ["one = error(x)", "loss = loss + one", "(0.5 * loss).backward()"],
        ["loss = loss + one.detach()", "(0.5 * one).backward()"],
    ),
    "a name that is taken": (
        ["part = x[:1]", "loss = loss + error(part)", "loss.backward()"],
        ["part_ = error(part)", "loss = loss + part_.detach()", "part_.backward()"],
    ),
}


def program(start: str, body: list[str], end: str) -> str:
    """A function that goes through a few inputs, and what it leaves."""
    inner = "".join(f"        {line}\n" for line in body)
    rounds = f"    for i, x in enumerate(xs):\n{inner}"
    shown = "out = [run(0.5), *(one.grad for one in net.parameters())]\n"
    return f"{HEAD}def run(w, loss=None):\n    {start}\n{rounds}    {end}\n    return loss.detach()\n{shown}"


@pytest.mark.parametrize(("start", "body", "end"), MEANT.values(), ids=MEANT)
def test_what_is_meant(start: str, body: list[str], end: str, tmp_path: pathlib.Path) -> None:
    """Nothing is proposed where a round's part has another gradient than what is differentiated."""
    source = program(start, body, end)
    assert rewritten(tmp_path, "detach_carried_state", source, "backward(") == source


def test_a_state_beside_the_sum(tmp_path: pathlib.Path) -> None:
    """The part of a round goes through the rounds before it: all of them may be meant to go back once."""
    source = program(
        f"{PLAIN}; h = torch.zeros(2, 3)",
        ["h = cell(x, h)", "loss = loss + w * error(h)", "loss.backward()"],
        "pass",
    )
    assert "part" not in rewritten(tmp_path, "detach_carried_state", source, "loss.backward()")


@pytest.mark.torch
@pytest.mark.parametrize(("body", "lines"), WRONG.values(), ids=WRONG)
def test_what_a_round_adds(body: list[str], lines: list[str], tmp_path: pathlib.Path) -> None:
    """The lines change, and the gradients are those of one backward behind the loop; a second time nothing changes."""
    import torch

    source = program(PLAIN, body, "pass")
    with pytest.raises(RuntimeError, match="second time"):
        run(source, tmp_path / "train.py")
    after = rewritten(tmp_path, "detach_carried_state", source, "backward()")
    assert [line[1:].strip() for line in diff_lines(source, after) if line.startswith("+")] == lines
    assert rewritten(tmp_path, "detach_carried_state", after, "backward()") == after
    once = run(program(PLAIN, body[:-1], body[-1]), tmp_path / "once.py")["out"]
    parts = run(after, tmp_path / "parts.py")["out"]
    assert all(torch.allclose(one, other, atol=1e-6) for one, other in zip(once, parts, strict=True))
