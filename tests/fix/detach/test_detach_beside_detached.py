"""What is collected once for several updates is detached throughout, where a part of it is."""

from __future__ import annotations

import pathlib

import pytest

from tests.fix.rewriting import changed_lines, rewritten

PROGRAM = """import torch
from torch import nn

torch.manual_seed(0)
net = nn.Linear(4, 2)
optimizer = torch.optim.SGD(net.parameters(), 0.1)


def collect(x):
    out = net(x)
    old = OLD
    gain = out - out.mean()
    return RETURNED


x = torch.randn(8, 4)
for step in range(2):
    data = collect(x)
    for epoch in range(3):
        old, gain = UNPACKED
        loss = -((net(x) - old).exp() * gain).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
"""


def program(old: str = "out.detach()", returned: str = "(old, gain)", unpacked: str = "data") -> str:
    return PROGRAM.replace("OLD", old).replace("RETURNED", returned).replace("UNPACKED", unpacked)


WRONG = {
    "a tuple": (program(), "return (old, gain.detach())"),
    "a dictionary": (
        program(returned='{"old": old, "gain": gain}', unpacked='data["old"], data["gain"]'), 'return {"old": old, "gain": gain.detach()}',
    ),
}  # fmt: skip
RIGHT = {
    "nothing is detached": program(old="out"),
    "all is": program(returned="(old, gain.detach())"),
    "computed in the loop": program()
    .replace("    data = collect(x)\n    for", "    for")
    .replace("old, gain = data", "old, gain = collect(x)"),
}


@pytest.mark.torch
@pytest.mark.parametrize(("source", "line"), WRONG.values(), ids=WRONG)
def test_the_rest_is_detached(source: str, line: str, tmp_path: pathlib.Path) -> None:
    """And then the program runs."""
    pytest.importorskip("torch")
    with pytest.raises(RuntimeError, match="second time"):
        exec(source, {})
    after = rewritten(
        tmp_path, "detach_beside_detached", source, "loss.backward", message="backward through the graph a second time"
    )
    assert changed_lines(source, after) == [line]
    exec(after, {})


@pytest.mark.parametrize("source", RIGHT.values(), ids=RIGHT)
def test_left_alone(source: str, tmp_path: pathlib.Path) -> None:
    after = rewritten(
        tmp_path, "detach_beside_detached", source, "loss.backward", message="backward through the graph a second time"
    )
    assert after == source
