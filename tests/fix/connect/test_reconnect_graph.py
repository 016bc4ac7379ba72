"""What cuts the graph between the parameters and the failing loss goes; other cuts stay."""

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
    "a value for the log": (
        HEAD
        + """loss = F.cross_entropy(net(x), y)
print(loss.item())
loss.backward()
""",
        "loss.backward()",
    ),
    "a detached target beside a live output": (
        HEAD
        + """target = net(x).detach()
loss = F.mse_loss(net(x), target)
loss.backward()
""",
        "loss.backward()",
    ),
    "a frozen teacher under no_grad": (
        HEAD
        + """with torch.no_grad():
    wanted = net(x)
loss = (net(x) - wanted).square().mean()
loss.backward()
""",
        "loss.backward()",
    ),
    "a weight taken from the loss": (
        HEAD
        + """loss = F.cross_entropy(net(x), y)
loss = loss * loss.detach()
loss.backward()
""",
        "loss.backward()",
    ),
    "a cut that nothing of the loss passes": (
        HEAD
        + """h = net(x).detach().numpy()
loss = net(x).sum()
loss.backward()
""",
        "loss.backward()",
    ),
    "a list with numbers among tensors": (
        HEAD
        + """loss = torch.tensor([net(x).sum(), 1.0]).sum()
loss.backward()
""",
        "loss.backward()",
    ),
    "a function of NumPy that torch has not": (
        HEAD
        + """import numpy as np
loss = torch.tensor(np.percentile(net(x).detach().numpy(), 50))
loss.backward()
""",
        "loss.backward()",
    ),
    "decorated heads of which one use is detached": (
        HEAD
        + """@torch.no_grad()
def heads(x):
    return net(x)
loss = (heads(x) + heads(x).detach()).square().mean()
loss.backward()
""",
        "loss.backward()",
    ),
}
WRONG = {
    "a record's list of numbers": (
        HEAD
        + """from dataclasses import dataclass, field
@dataclass
class Epoch:
    losses: list = field(default_factory=list)
    def add(self, loss):
        self.losses.append(loss.item())
    def total(self):
        return torch.tensor(self.losses).sum()
epoch = Epoch()
epoch.add(F.cross_entropy(net(x), y))
loss = epoch.total()
loss.backward()
""",
        "loss.backward()",
        ["self.losses.append(loss)", "return torch.stack(self.losses).sum()"],
    ),
    "a list that a caller hands in": (
        HEAD
        + """def weigh(parts):
    return torch.as_tensor(parts).mean()
losses = [F.cross_entropy(net(x), y) for _ in range(2)]
loss = weigh(losses)
loss.backward()
""",
        "loss.backward()",
        ["return torch.stack(parts).mean()"],
    ),
    "detach in the loss": (
        HEAD
        + """loss = F.cross_entropy(net(x).detach(), y)
loss.backward()
""",
        "loss.backward()",
        ["loss = F.cross_entropy(net(x), y)"],
    ),
    "data of an output": (
        HEAD
        + """out = net(x)
loss = F.cross_entropy(out.data, y)
loss.backward()
""",
        "loss.backward()",
        ["loss = F.cross_entropy(out, y)"],
    ),
    "a new tensor of a loss": (
        HEAD
        + """loss = torch.tensor(F.cross_entropy(net(x), y))
loss.backward()
""",
        "loss.backward()",
        ["loss = F.cross_entropy(net(x), y)"],
    ),
    "a new tensor of a sum keeps its brackets": (
        HEAD
        + """a, b = net(x).sum(), net(x).mean()
loss = 2 * torch.tensor(a + b)
loss.backward()
""",
        "loss.backward()",
        ["loss = 2 * (a + b)"],
    ),
    "a list of losses": (
        HEAD
        + """parts = []
for row, label in zip(x, y):
    parts.append(F.cross_entropy(net(row), label))
loss = torch.tensor(parts).mean()
loss.backward()
""",
        "loss.backward()",
        ["loss = torch.stack(parts).mean()"],
    ),
    "two cuts in one way": (
        HEAD
        + """value = net(x).sum().item()
loss = torch.tensor(value)
loss.backward()
""",
        "loss.backward()",
        ["value = net(x).sum()", "loss = value"],
    ),
    "a leaf made of values for the scaler": (
        HEAD
        + """loss = torch.tensor(F.cross_entropy(net(x), y).item(), requires_grad=True)
loss.backward()
""",
        "loss.backward()",
        ["loss = F.cross_entropy(net(x), y)"],
    ),
    "a dictionary of losses": (
        HEAD
        + """def losses(out):
    return {"main": F.cross_entropy(out, y).detach(), "norm": out.norm()}


loss = losses(net(x))["main"]
loss.backward()
""",
        "loss.backward()",
        ['return {"main": F.cross_entropy(out, y), "norm": out.norm()}'],
    ),
    "the mean of collected losses in NumPy": (
        HEAD
        + """import numpy as np
parts = [F.cross_entropy(net(x), y).item() for _ in range(2)]
loss = torch.as_tensor(np.mean(parts))
loss.backward()
""",
        "loss.backward()",
        ["parts = [F.cross_entropy(net(x), y) for _ in range(2)]", "loss = torch.stack(parts).mean()"],
    ),
}


@pytest.mark.parametrize(("source", "at"), RIGHT.values(), ids=RIGHT)
def test_right_programs_stay(tmp_path, source: str, at: str) -> None:
    """A cut beside the way of the graph, and one without a form in torch, are left alone."""
    assert rewritten(tmp_path, "reconnect_graph", source, at or None, options={"cuts": "values"}) == source


@pytest.mark.parametrize(("source", "at", "wanted"), WRONG.values(), ids=WRONG)
def test_faults_are_cured(tmp_path, source: str, at: str, wanted: list[str]) -> None:
    """Every cut of the way goes; a second time nothing is left to do."""
    after = rewritten(tmp_path, "reconnect_graph", source, at or None, options={"cuts": "values"})
    assert changed_lines(source, after) == wanted
    again = at if at and at in after else None
    assert rewritten(tmp_path, "reconnect_graph", after, again, options={"cuts": "values"}) == after
