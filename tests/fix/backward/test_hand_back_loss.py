"""A loss that a helper computes into a name of its own comes back to where its backward is asked for."""

from __future__ import annotations

import pytest

from tests.fix.rewriting import changed_lines, rewritten

HEAD = """import torch
from torch import nn
from torch.nn import functional as F
net = nn.Linear(4, 3)
x, y = torch.randn(2, 4), torch.tensor([0, 1])
"""
RIGHT = {
    "a helper that returns": (
        HEAD
        + """def add(loss, out):
    loss = loss + out.sum()
    return loss


loss = torch.tensor(0.0)
loss = add(loss, net(x))
loss.backward()
""",
        "loss.backward()",
    ),
    "a helper that adds in place": (
        HEAD
        + """def add(loss, out):
    loss += out.sum()


loss = torch.tensor(0.0)
add(loss, net(x))
loss.backward()
""",
        "loss.backward()",
    ),
    "a helper that adds data": (
        HEAD
        + """def add(loss, rows):
    loss = loss + rows.sum()


loss = torch.tensor(0.0)
add(loss, x)
loss.backward()
""",
        "loss.backward()",
    ),
    "a helper that returns something else": (
        HEAD
        + """def add(loss, out):
    loss = loss + out.sum()
    return out


loss = torch.tensor(0.0)
add(loss, net(x))
loss.backward()
""",
        "loss.backward()",
    ),
    "a helper for the log": (
        HEAD
        + """def show(loss, out):
    print(loss, out)


loss = torch.tensor(0.0)
show(loss, net(x))
loss.backward()
""",
        "loss.backward()",
    ),
}
WRONG = {
    "a helper without a return": (
        HEAD
        + """def add(loss, out):
    loss = loss + out.sum()


loss = torch.tensor(0.0)
add(loss, net(x))
loss.backward()
""",
        "loss.backward()",
        ["return loss", "loss = add(loss, net(x))"],
    ),
    "a result that is dropped": (
        HEAD
        + """def add(loss, out):
    loss = loss + out.sum()
    return loss


loss = torch.tensor(0.0)
add(loss, net(x))
loss.backward()
""",
        "loss.backward()",
        ["loss = add(loss, net(x))"],
    ),
    "a number that is added to": (
        HEAD
        + """def add(total, out):
    for row in out:
        total += row.sum()


loss = 0
add(loss, net(x))
loss.backward()
""",
        "loss.backward()",
        ["return total", "loss = add(loss, net(x))"],
    ),
    "an early return": (
        HEAD
        + """def add(loss, out):
    if not len(out):
        return
    loss = loss + out.sum()


loss = torch.tensor(0.0)
add(loss, net(x))
loss.backward()
""",
        "loss.backward()",
        ["return loss", "return loss", "loss = add(loss, net(x))"],
    ),
    "a closure": (
        HEAD
        + """def step():
    loss = torch.tensor(0.0)

    def run():
        loss = net(x).sum()

    run()
    loss.backward()


step()
""",
        "loss.backward()",
        ["nonlocal loss"],
    ),
    "a function of the module": (
        HEAD
        + """loss = torch.tensor(0.0)


def run():
    loss = net(x).sum()


run()
loss.backward()
""",
        "loss.backward()",
        ["global loss"],
    ),
}


@pytest.mark.parametrize(("source", "at"), RIGHT.values(), ids=RIGHT)
def test_right_programs_stay(tmp_path, source: str, at: str) -> None:
    """Helpers that hand their result back, and those whose result has no graph, are left alone."""
    assert rewritten(tmp_path, "hand_back_loss", source, at or None) == source


@pytest.mark.parametrize(("source", "at", "wanted"), WRONG.values(), ids=WRONG)
def test_faults_are_cured(tmp_path, source: str, at: str, wanted: list[str]) -> None:
    """The result is returned and assigned; a second time nothing is left to do."""
    after = rewritten(tmp_path, "hand_back_loss", source, at or None)
    assert changed_lines(source, after) == wanted
    again = at if at and at in after else None
    assert rewritten(tmp_path, "hand_back_loss", after, again) == after
