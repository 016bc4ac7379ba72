"""Freezing takes the part that was meant and leaves the head."""

from __future__ import annotations

import pytest

from tests.fix.rewriting import changed_lines, rewritten

HEAD = """import torch
from torch import nn
from torch.nn import functional as F
net = nn.Linear(4, 3)
x, y = torch.randn(2, 4), torch.tensor([0, 1])


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.backbone = nn.Linear(4, 8)
        self.head = nn.Linear(8, 3)

    def forward(self, x):
        return self.head(torch.relu(self.backbone(x)))


model = Model()
"""
DISTILLED = """import torch
from torch import nn


class Distill(nn.Module):
    def __init__(self):
        super().__init__()
        self.teacher = nn.Linear(4, 3)
        self.student = nn.Linear(4, 3)
        for p in self.parameters():
            p.requires_grad = False

    def loss(self, x):
        return (self.student(x) - self.teacher(x)).square().mean()

    def optimizer(self):
        return torch.optim.SGD(PARTS.parameters(), lr=0.1)


model = Distill()
loss = model.loss(torch.randn(2, 4))
loss.backward()
"""
RIGHT = {
    "up to a layer that is not there": (
        HEAD
        + """for name, p in model.named_parameters():
    if name.startswith(start):
        break
    p.requires_grad = False
loss = F.cross_entropy(model(x), y)
loss.backward()
""",
        "loss.backward()",
    ),
    "a backbone": (
        HEAD
        + """for p in model.backbone.parameters():
    p.requires_grad = False
loss = F.cross_entropy(model(x), y)
loss.backward()
""",
        "loss.backward()",
    ),
    "a head that is spared by name": (
        HEAD
        + """for name, p in model.named_parameters():
    if "head" not in name:
        p.requires_grad = False
loss = F.cross_entropy(model(x), y)
loss.backward()
""",
        "loss.backward()",
    ),
    "a head that is switched on again": (
        HEAD
        + """model.requires_grad_(False)
model.head.requires_grad_(True)
loss = F.cross_entropy(model(x), y)
loss.backward()
""",
        "loss.backward()",
    ),
    "a teacher that no optimizer gets": (
        HEAD
        + """teacher = Model().requires_grad_(False)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
loss = F.mse_loss(net(x), teacher(x))
loss.backward()
""",
        "loss.backward()",
    ),
    "a head that is made after freezing": (
        HEAD
        + """model.requires_grad_(False)
model.head = nn.Linear(8, 3)
loss = F.cross_entropy(model(x), y)
loss.backward()
""",
        "loss.backward()",
    ),
}
PLAIN = HEAD.replace("self.backbone", "self.first").replace("self.head", "self.second")
LOSS = "loss = F.cross_entropy(model(x), y)\nloss.backward()\n"
RIGHT |= {
    "no head, and weights from somewhere": (
        f'{PLAIN}model.load_state_dict(torch.load("run.pt"))\nmodel.requires_grad_(False)\n{LOSS}', "loss.backward()",
    ),
}  # fmt: skip
WRONG = {
    "all of a model without a head": (
        f"{PLAIN}model.requires_grad_(False)\nmodel.train()\n{LOSS}",
        "loss.backward()",
        [],
    ),
    "layers of torch": (
        f"{HEAD}net = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 3))\nnet.requires_grad_(False)\n"
        "optimizer = torch.optim.SGD(net.parameters(), lr=0.1)\n"
        "loss = F.cross_entropy(net(x), y)\nloss.backward()\n",
        "loss.backward()",
        [],
    ),
    "by a loop": (
        f"{PLAIN}for p in model.parameters():\n    p.requires_grad = False\n{LOSS}",
        "loss.backward()",
        [],
    ),
    "all of a model of which a part is loaded": (
        f'{PLAIN}model.first.load_state_dict(torch.load("run.pt"))\nmodel.requires_grad_(False)\n{LOSS}',
        "loss.backward()",
        ["model.first.requires_grad_(False)"],
    ),
    "a flag of a module": (
        HEAD
        + """for p in model.parameters():
    p.requires_grad = False
layer = nn.Linear(3, 2)
layer.requires_grad = True
loss = F.cross_entropy(layer(model(x)), y)
loss.backward()
""",
        "loss.backward",
        ["layer.requires_grad_(True)"],
    ),
    "all of a model": (
        HEAD
        + """for p in model.parameters():
    p.requires_grad = False
loss = F.cross_entropy(model(x), y)
loss.backward()
""",
        "loss.backward()",
        ["for p in model.backbone.parameters():"],
    ),
    "a call": (
        HEAD
        + """model.requires_grad_(False)
loss = F.cross_entropy(model(x), y)
loss.backward()
""",
        "loss.backward()",
        ["model.backbone.requires_grad_(False)"],
    ),
    "a name that no layer has": (
        HEAD
        + """for name, p in model.named_parameters():
    if "classifier" not in name:
        p.requires_grad = False
loss = F.cross_entropy(model(x), y)
loss.backward()
""",
        "loss.backward()",
        ['if "head" not in name:'],
    ),
    "a head that is switched on too early": (
        HEAD
        + """model.head.requires_grad_(True)
model.requires_grad_(False)
loss = F.cross_entropy(model(x), y)
loss.backward()
""",
        "loss.backward()",
        [],
    ),
    "a new head that is frozen": (
        HEAD
        + """model.head = nn.Linear(8, 5)
for p in model.parameters():
    p.requires_grad = False
loss = F.cross_entropy(model(x), y)
loss.backward()
""",
        "loss.backward()",
        ["model.head.requires_grad_(True)"],
    ),
    "a new layer of a head that is frozen": (
        HEAD
        + """model.head[1] = nn.Linear(8, 5)
model.num_labels = model.classes = 5
for p in model.parameters():
    p.requires_grad = False
loss = F.cross_entropy(model(x), y)
loss.backward()
""",
        "loss.backward()",
        ["model.head[1].requires_grad_(True)"],
    ),
    "a part that no optimizer gets": (
        DISTILLED.replace("PARTS", "self.student"),
        "loss.backward()",
        ["for p in self.teacher.parameters():"],
    ),
    "parts that optimizers get": (
        DISTILLED.replace("PARTS", "self.student").replace(
            "        for p", "        self.old = nn.Linear(4, 3)\n        for p"
        ),
        "loss.backward()",
        ["self.student.requires_grad_(True)"],
    ),
    "a helper": (
        HEAD
        + """def freeze(module):
    for p in module.parameters():
        p.requires_grad = False


freeze(model)
loss = F.cross_entropy(model(x), y)
loss.backward()
""",
        "loss.backward()",
        ["freeze(model.backbone)"],
    ),
    "a helper that gives the module back": (
        HEAD
        + """def freeze(module):
    for p in module.parameters():
        p.requires_grad_(False)
    return module


model = freeze(model)
loss = F.cross_entropy(model(x), y)
loss.backward()
""",
        "loss.backward()",
        ["freeze(model.backbone)"],
    ),
}


@pytest.mark.parametrize(("source", "at"), RIGHT.values(), ids=RIGHT)
def test_right_programs_stay(tmp_path, source: str, at: str) -> None:
    """Parts that are frozen on purpose are left alone."""
    assert rewritten(tmp_path, "unfreeze", source, at or None) == source


@pytest.mark.parametrize(("source", "at", "wanted"), WRONG.values(), ids=WRONG)
def test_faults_are_cured(tmp_path, source: str, at: str, wanted: list[str]) -> None:
    """The head trains again; a second time nothing is left to do."""
    after = rewritten(tmp_path, "unfreeze", source, at or None)
    assert after != source
    assert changed_lines(source, after) == wanted
    again = at if at and at in after else None
    assert rewritten(tmp_path, "unfreeze", after, again) == after
