"""What modules collect in their own forward for the loss of a step is emptied where each step begins."""

from __future__ import annotations

import pathlib

import pytest

from tests.fix.rewriting import best, diff_lines, rewritten, write

MIXTURE = """import torch
from torch import nn
torch.manual_seed(0)


class Mixture(nn.Module):
    def __init__(self):
        super().__init__()
        self.gate = nn.Linear(3, 2)
        self.experts = nn.ModuleList(nn.Linear(3, 3) for _ in range(2))
        self.balance = []

    def forward(self, x):
        share = self.gate(x).softmax(-1)
        self.balance.append((share.mean(0) ** 2).sum())
        return x + sum(one(x) * share[:, [at]] for at, one in enumerate(self.experts))

    def cost(self):
        return sum(self.balance)

    def reset(self):
        self.balance = []


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList(Mixture() for _ in range(2))
        self.head = nn.Linear(3, 1)

    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
        return self.head(x)

    def aux_loss(self):
        return sum(sum(layer.balance) for layer in self.layers)


data = [(torch.randn(4, 3), torch.randn(4, 1)) for _ in range(3)]
net = Net()
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for x, y in data:
    optimizer.zero_grad()
    loss = (net(x) - y).square().mean() + 0.1 * net.aux_loss()
    loss.backward()
    optimizer.step()
"""
PLAIN = MIXTURE.replace("\n    def reset(self):\n        self.balance = []\n", "")
AUX = "sum(sum(layer.balance) for layer in self.layers)"
BY_MODULES = PLAIN.replace(AUX, "sum(sum(m.balance) for m in self.modules() if isinstance(m, Mixture))")
LOOP = PLAIN.replace(
    f"        return {AUX}\n",
    "        total = 0.0\n        for layer in self.layers:\n            total = total + layer.cost()\n        return total\n",
)
ONE = """import torch
from torch import nn
torch.manual_seed(0)


class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc, self.out = nn.Linear(3, 4), nn.Linear(4, 1)
        self.kl_terms = []

    def forward(self, x):
        hidden = self.fc(x)
        self.kl_terms.append(hidden.square().mean())
        return self.out(hidden)


data = [(torch.randn(4, 3), torch.randn(4, 1)) for _ in range(3)]
encoder = Encoder()
optimizer = torch.optim.SGD(encoder.parameters(), lr=0.1)


def train(model, batches):
    for x, y in batches:
        optimizer.zero_grad()
        error = (model(x) - y).square().mean()
        loss = error + torch.stack(model.kl_terms).sum()
        loss.backward()
        optimizer.step()


train(encoder, data)
"""
TOTAL = (
    PLAIN.replace("self.balance = []", "self.aux = 0.0")
    .replace("self.balance.append((share.mean(0) ** 2).sum())", "self.aux = self.aux + (share.mean(0) ** 2).sum()")
    .replace(AUX, "sum(layer.aux for layer in self.layers)")
    .replace("sum(self.balance)", "self.aux")
)
TENSOR = TOTAL.replace("self.aux = 0.0", "self.aux = torch.zeros(())")
STEP = "    optimizer.zero_grad()\n"
RIGHT = {
    "emptied in the step": PLAIN.replace(STEP, f"{STEP}    for layer in net.layers:\n        layer.balance.clear()\n"),
    "made anew in forward": PLAIN.replace(
        "        share = self.gate", "        self.balance = []\n        share = self.gate"
    ),
    "emptied by the forward of the whole": PLAIN.replace(
        "        for layer in self.layers:\n            x = layer(x)",
        "        for layer in self.layers:\n            layer.balance.clear()\n            x = layer(x)",
    ),
    "emptied by a method that the step calls": MIXTURE.replace(
        STEP, f"{STEP}    for one in net.layers:\n        one.reset()\n"
    ),
    "a sum that the forward begins": TOTAL.replace(
        "        share = self.gate", "        self.aux = 0.0\n        share = self.gate"
    ),
    "a sum that the step begins": TOTAL.replace(STEP, f"{STEP}    for one in net.layers:\n        one.aux = 0.0\n"),
    "a sum of numbers": TOTAL.replace("** 2).sum()", "** 2).sum().item()"),
    "a state that the forward reads": ONE.replace("self.kl_terms = []", "self.h = 0.0")
    .replace("self.kl_terms.append(hidden.square().mean())", "self.h = self.h + hidden")
    .replace("self.out(hidden)", "self.out(self.h)")
    .replace("torch.stack(model.kl_terms).sum()", "model.h.square().mean()"),
    "zeros of a shape": ONE.replace("self.kl_terms = []", "self.slots = torch.zeros(4, 4)")
    .replace("self.kl_terms.append(hidden.square().mean())", "self.slots = self.slots + hidden")
    .replace("torch.stack(model.kl_terms).sum()", "model.slots.square().mean()"),
    "a list that the forward attends to": ONE.replace(
        "self.out(hidden)", "self.out(hidden + torch.stack(self.kl_terms).mean())"
    ),
    "without graphs": PLAIN.replace("** 2).sum())", "** 2).sum().detach())"),
    "no part of the loss": PLAIN.replace(" + 0.1 * net.aux_loss()", ""),
    "a local list of the forward": ONE.replace("self.kl_terms.append", "terms = []\n        terms.append").replace(
        " + torch.stack(model.kl_terms).sum()", ""
    ),
    "one that is emptied by what reads it": ONE.replace(
        "        loss.backward()", "        model.kl_terms.clear()\n        loss.backward()"
    ),
    "all of a pass through the data": ONE.replace(
        """        optimizer.zero_grad()
        error = (model(x) - y).square().mean()
        loss = error + torch.stack(model.kl_terms).sum()
        loss.backward()
        optimizer.step()
""",
        """        model(x)
    optimizer.zero_grad()
    torch.stack(model.kl_terms).sum().backward()
    optimizer.step()
""",
    ),
}
WRONG = {
    "a list of each layer": (PLAIN, ["+    for layer in net.layers:", "+        layer.balance.clear()"]),
    "a method that nothing calls": (MIXTURE, ["+    for layer in net.layers:", "+        layer.reset()"]),
    "layers among all modules": (
        BY_MODULES,
        ["+    for m in net.modules():", '+        if hasattr(m, "balance"):', "+            m.balance.clear()"],
    ),
    "a term that a method of the layer sums": (LOOP, ["+    for layer in net.layers:", "+        layer.balance.clear()"]),
    "a loop of the step": (
        PLAIN.replace(
            "    loss = (net(x) - y).square().mean() + 0.1 * net.aux_loss()\n",
            "    loss = (net(x) - y).square().mean()\n    for one in net.layers:\n        loss = loss + sum(one.balance)\n",
        ),
        ["+    for _one in net.layers:", "+        _one.balance.clear()"],
    ),
    "a sum": (TOTAL, ["+    for layer in net.layers:", "+        layer.aux = 0.0"]),
    "a sum that begins as a tensor": (
        TENSOR, ["+    for layer in net.layers:", "+        layer.aux = layer.aux.new_zeros(layer.aux.shape)"]
    ),
    "a sum that a method begins, which nothing calls": (
        TOTAL.replace("    def cost(self)", "    def begin(self):\n        self.aux = 0.0\n\n    def cost(self)"),
        ["+    for layer in net.layers:", "+        layer.begin()"],
    ),
    "a list of the model": (ONE, ["+        model.kl_terms.clear()"]),
}  # fmt: skip


@pytest.mark.parametrize("source", RIGHT.values(), ids=RIGHT)
def test_right_programs_stay(tmp_path: pathlib.Path, source: str) -> None:
    """What is emptied in a step, holds no graph, or is read once for many forwards is left alone, and not accused."""
    assert best("empty_before_forward", write(tmp_path, {"train.py": source})) is None


@pytest.mark.parametrize(("source", "wanted"), WRONG.values(), ids=WRONG)
def test_lists_of_modules_are_emptied(tmp_path: pathlib.Path, source: str, wanted: list[str]) -> None:
    """The lists are empty where the step begins; a second time nothing is left to do."""
    after = rewritten(tmp_path, "empty_before_forward", source)
    assert diff_lines(source, after) == wanted
    assert best("empty_before_forward", write(tmp_path, {"train.py": after})) is None


@pytest.mark.torch
@pytest.mark.parametrize("source", [source for source, _ in WRONG.values()], ids=WRONG)
def test_the_program_trains_then(tmp_path: pathlib.Path, source: str) -> None:
    """It fails as it is, and runs to its end with the edit."""
    pytest.importorskip("torch")
    with pytest.raises(RuntimeError, match="backward through the graph a second time"):
        exec(source, {})
    exec(rewritten(tmp_path, "empty_before_forward", source), {})
