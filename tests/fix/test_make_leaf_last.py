"""What is trained is the leaf itself, after scaling, casting and moving."""

from __future__ import annotations

import pytest

from tests.fix.rewriting import changed_lines, rewritten

HEAD = """import torch
from torch import nn
device = "cpu"
"""
RIGHT = {
    "an attack of one step": (
        HEAD
        + """def attack(net, x):
    x = x.clone().requires_grad_()
    net(x).sum().backward()
    x = (x + 0.1 * x.grad.sign()).clamp(0, 1)
    return x
""",
        "x = (x",
    ),
    "a leaf that is flagged last": (
        HEAD
        + """w = (torch.randn(3) * 0.01).requires_grad_(True)
opt = torch.optim.SGD([w], lr=0.1)
""",
        "",
    ),
    "a leaf that is made as it is needed": (
        HEAD
        + """w = torch.zeros(3, device=device, requires_grad=True)
opt = torch.optim.SGD([w], lr=0.1)
""",
        "",
    ),
    "a result that nobody trains": (
        HEAD
        + """w = torch.ones(3, requires_grad=True)
scaled = w * 2.0
opt = torch.optim.SGD([w], lr=0.1)
""",
        "",
    ),
    "data that a function flags": (
        HEAD
        + """def start():
    return torch.randn(9, 4).mean(0).requires_grad_(True)
opt = torch.optim.Adam([start()], lr=0.1)
""",
        "opt =",
    ),
    "an update in place": (
        HEAD
        + """w = torch.zeros(3, requires_grad=True)
w.sum().backward()
with torch.no_grad():
    w -= 0.1 * w.grad
""",
        "w -=",
    ),
    "an update of the data": (
        HEAD
        + """w = torch.zeros(3, requires_grad=True)
w.sum().backward()
w.data = w.data - 0.1 * w.grad
""",
        "w.data =",
    ),
    "an adapted weight of an inner loop": (
        HEAD
        + """w = torch.zeros(3, requires_grad=True)
(g,) = torch.autograd.grad(w.sum(), w, create_graph=True)
w = w - 0.1 * g
""",
        "w = w",
    ),
}
WRONG = {
    "a random start": (
        HEAD
        + """def attack(net, x):
    delta = torch.zeros_like(x, requires_grad=True)
    delta = (x + delta + 0.1 * torch.randn_like(x)).clamp(0, 1) - x
    for _ in range(3):
        net(x + delta).sum().backward()
        with torch.no_grad():
            delta += delta.grad.sign()
""",
        "delta +=",
        ["delta = ((x + delta + 0.1 * torch.randn_like(x)).clamp(0, 1) - x).detach().requires_grad_(True)"],
    ),
    "a projection in the loop": (
        HEAD
        + """z = torch.zeros(3, requires_grad=True)
for _ in range(3):
    loss(z).backward()
    z = torch.clamp(z - 0.1 * z.grad, -1, 1)
""",
        "z = torch.clamp",
        ["z = torch.clamp(z - 0.1 * z.grad, -1, 1).detach().requires_grad_(True)"],
    ),
    "a projection without grad": (
        HEAD
        + """z = torch.zeros(3, requires_grad=True)
for _ in range(3):
    loss(z).backward()
    with torch.no_grad():
        z = torch.clamp(z - 0.1 * z.grad, -1, 1)
""",
        "z = torch.clamp",
        ["z = torch.clamp(z - 0.1 * z.grad, -1, 1).requires_grad_(True)"],
    ),
    "a mean of outputs that is flagged": (
        HEAD
        + """net = nn.Linear(4, 3)
start = net(torch.randn(9, 4)).mean(0, keepdim=True)
w = start.repeat(2, 1)
w.requires_grad_(True)
opt = torch.optim.Adam([w] + [torch.zeros(3, requires_grad=True)], lr=0.1)
""",
        "opt =",
        ["w = start.repeat(2, 1).detach()"],
    ),
    "a mean of outputs that a function flags": (
        HEAD
        + """net = nn.Linear(4, 3)
def start():
    return net(torch.randn(9, 4)).mean(0, keepdim=True).repeat(2, 1).requires_grad_(True), 1.0
w, spread = start()
opt = torch.optim.Adam([{"params": [w]}, {"params": []}], lr=0.1)
""",
        "opt =",
        ["return net(torch.randn(9, 4)).mean(0, keepdim=True).repeat(2, 1).detach().requires_grad_(True), 1.0"],
    ),
    "scaled": (
        HEAD
        + """w = torch.randn(3, requires_grad=True) * 0.01
opt = torch.optim.SGD([w], lr=0.1)
""",
        "opt =",
        ["w = (torch.randn(3) * 0.01).requires_grad_(True)"],
    ),
    "moved": (
        HEAD
        + """w = torch.zeros(3, requires_grad=True).to(device)
opt = torch.optim.Adam([w], lr=0.1)
""",
        "opt =",
        ["w = torch.zeros(3).to(device).requires_grad_(True)"],
    ),
    "a parameter that is moved": (
        HEAD
        + """w = nn.Parameter(torch.zeros(3)).to(device)
opt = torch.optim.Adam([{"params": [w]}], lr=0.1)
""",
        "opt =",
        ["w = nn.Parameter(torch.zeros(3).to(device))"],
    ),
    "a parameter that is scaled": (
        HEAD
        + """w = 0.1 * nn.Parameter(torch.randn(3))
opt = torch.optim.Adam([w], lr=0.1)
""",
        "opt =",
        ["w = nn.Parameter(0.1 * torch.randn(3))"],
    ),
    "flagged, then scaled": (
        HEAD
        + """w = torch.randn(3).requires_grad_() / 3
w.sum().backward()
print(w.grad.norm())
""",
        "w.grad",
        ["w = (torch.randn(3) / 3).requires_grad_(True)"],
    ),
    "elements that a function makes": (
        HEAD
        + """def codes(count, std):
    return [std * torch.randn(4, requires_grad=True) for _ in range(count)]

table = codes(3, 0.1)
opt = torch.optim.Adam([{"params": table, "lr": 0.1}])
""",
        "opt =",
        ["return [(std * torch.randn(4)).requires_grad_(True) for _ in range(count)]"],
    ),
    "what a module keeps of a parameter": (
        HEAD
        + """class Net(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.null = nn.Parameter(0.02 * torch.randn(dim)).unsqueeze(0)
        self.tied = nn.Parameter(torch.zeros(dim))
""",
        "self.null",
        ["self.null = nn.Parameter((0.02 * torch.randn(dim)).unsqueeze(0))"],
    ),
    "bound anew by its update": (
        HEAD
        + """w = torch.zeros(3, requires_grad=True)
for _ in range(2):
    w.sum().backward()
    w = w - 0.1 * w.grad
""",
        "w = w -",
        ["with torch.no_grad():", "w -= 0.1 * w.grad"],
    ),
    "bound anew under no_grad": (
        HEAD
        + """w = torch.zeros(3, requires_grad=True)
for _ in range(2):
    w.sum().backward()
    with torch.no_grad():
        w = w - 0.1 * w.grad
""",
        "w = w -",
        ["w -= 0.1 * w.grad"],
    ),
}


@pytest.mark.parametrize(("source", "at"), RIGHT.values(), ids=RIGHT)
def test_right_programs_stay(tmp_path, source: str, at: str) -> None:
    """Leaves, results that nobody trains and updates in place are left alone."""
    assert rewritten(tmp_path, "make_leaf_last", source, at or None) == source


@pytest.mark.parametrize(("source", "at", "wanted"), WRONG.values(), ids=WRONG)
def test_faults_are_cured(tmp_path, source: str, at: str, wanted: list[str]) -> None:
    """The trained tensor is a leaf; a second time nothing is left to do."""
    after = rewritten(tmp_path, "make_leaf_last", source, at or None)
    assert changed_lines(source, after) == wanted
    again = at if at and at in after else None
    assert rewritten(tmp_path, "make_leaf_last", after, again) == after


HELD = """import torch

class Bank:
    def __init__(self, tasks, std):
        self.vectors = {task: torch.randn(4, requires_grad=True) * std for task in tasks}

    def tensors(self):
        return list(self.vectors.values())

optimizer = torch.optim.Adam(Bank(["a"], 0.1).tensors())
"""


def test_what_nothing_else_holds(tmp_path) -> None:
    """Where an optimizer refused a result, the leaf in the middle of an expression is the one that was meant."""
    refused = "can't optimize a non-leaf Tensor"
    after = rewritten(tmp_path, "make_leaf_last", HELD, "optimizer =", message=refused)
    wanted = "self.vectors = {task: (torch.randn(4) * std).requires_grad_(True) for task in tasks}"
    assert changed_lines(HELD, after) == [wanted]
    assert rewritten(tmp_path, "make_leaf_last", after, "optimizer =", message=refused) == after
    assert rewritten(tmp_path, "make_leaf_last", HELD, "optimizer =") == HELD
