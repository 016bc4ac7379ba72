"""The criterion takes the output that the model computed."""

from __future__ import annotations

import pytest

from tests.fix.rewriting import changed_lines, rewritten

HEAD = """import torch
from torch import nn
from torch.nn import functional as F
net = nn.Linear(3, 3)
x, y = torch.randn(2, 3), torch.tensor([0, 1])
"""
RIGHT = {
    "the output": (
        HEAD
        + """out = net(x)
loss = F.cross_entropy(out, y)
loss.backward()
""",
        "loss.backward()",
    ),
    "an output that is read elsewhere": (
        HEAD
        + """out = net(x)
print(out)
loss = F.cross_entropy(x, y)
loss.backward()
""",
        "loss.backward()",
    ),
    "no output at all": (
        HEAD
        + """loss = F.cross_entropy(x, y)
loss.backward()
""",
        "loss.backward()",
    ),
    "an output whose graph is cut": (
        HEAD
        + """out = net(x)
loss = F.cross_entropy(net(x).detach(), y)
loss.backward()
""",
        "loss.backward()",
    ),
}
WRONG = {
    "the input": (
        HEAD
        + """out = net(x)
loss = F.cross_entropy(x, y)
loss.backward()
""",
        "loss.backward()",
        ["loss = F.cross_entropy(out, y)"],
    ),
    "the input, in a function": (
        HEAD
        + """def step(batch):
    out = net(batch)
    return F.cross_entropy(batch, y)


loss = step(x)
loss.backward()
""",
        "loss.backward()",
        ["return F.cross_entropy(out, y)"],
    ),
    "the input of a criterion": (
        HEAD
        + """criterion = nn.CrossEntropyLoss()
logits = net(x)
loss = criterion(x, y)
loss.backward()
""",
        "loss.backward()",
        ["loss = criterion(logits, y)"],
    ),
}


@pytest.mark.parametrize(("source", "at"), RIGHT.values(), ids=RIGHT)
def test_right_programs_stay(tmp_path, source: str, at: str) -> None:
    """Outputs that are read, and losses that are cut off, are left alone."""
    assert rewritten(tmp_path, "loss_of_output", source, at or None) == source


@pytest.mark.parametrize(("source", "at", "wanted"), WRONG.values(), ids=WRONG)
def test_faults_are_cured(tmp_path, source: str, at: str, wanted: list[str]) -> None:
    """The loss is that of the output; a second time nothing is left to do."""
    after = rewritten(tmp_path, "loss_of_output", source, at or None)
    assert changed_lines(source, after) == wanted
    again = at if at and at in after else None
    assert rewritten(tmp_path, "loss_of_output", after, again) == after
