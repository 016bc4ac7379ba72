"""What is computed from trained weights before the loop is computed in each round, or detached where it is a constant."""

from __future__ import annotations

import pathlib
from dataclasses import replace

import pytest

from explainer.fix.splice import splice
from explainer.model.trace import ONCE_MADE, TracedLine
from tests.fix.rewriting import best, changed_lines, diff_lines, failed, line_of, rewritten, write

RIGHT = {
    "inside already": (
        """import torch
from torch import nn

torch.manual_seed(0)
prompts, image_head = nn.Embedding(3, 8), nn.Linear(6, 8)
optimizer = torch.optim.SGD([*prompts.parameters(), *image_head.parameters()], lr=0.1)
images, labels = torch.rand(16, 6), torch.randint(3, (16,))
for epoch in range(3):
    class_features = nn.functional.normalize(prompts(torch.arange(3)), dim=1)
    logits = image_head(images) @ class_features.T
    loss = nn.functional.cross_entropy(logits, labels)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
""",
        "loss.backward()",
    ),
    "a weight that the command line gives": (
        """import argparse
import torch
args = argparse.ArgumentParser().parse_args()
net = torch.nn.Linear(3, 2)
opt = torch.optim.SGD(net.parameters(), 0.1)
w = min(1.0, 0.5 * args.weight)
for x in torch.randn(3, 4, 3):
    loss = w * net(x).sum()
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
        "loss.backward()",
    ),
    "data before the loop": (
        """import torch
from torch import nn, optim
from torch.nn import functional as F
net = nn.Linear(3, 2)
opt = optim.SGD(net.parameters(), 0.1)
x = torch.randn(4, 3)
x = F.normalize(x)
for _ in range(3):
    loss = net(x).sum()
    loss.backward()
""",
        "loss.backward",
    ),
    "detached before the loop": (
        """import torch
from torch import nn, optim
from torch.nn import functional as F
net = nn.Linear(3, 2)
opt = optim.SGD(net.parameters(), 0.1)
x = torch.randn(4, 3)
target = net(x).detach()
for _ in range(3):
    loss = (net(x) - target).sum()
    loss.backward()
""",
        "loss.backward",
    ),
    "made under no_grad": (
        """import torch
from torch import nn, optim
from torch.nn import functional as F
net = nn.Linear(3, 2)
opt = optim.SGD(net.parameters(), 0.1)
x = torch.randn(4, 3)
with torch.no_grad():
    target = net(x)
for _ in range(3):
    loss = (net(x) - target).sum()
    loss.backward()
""",
        "loss.backward",
    ),
    "a parameter before the loop": (
        """import torch
from torch import nn, optim
from torch.nn import functional as F
net = nn.Linear(3, 2)
opt = optim.SGD(net.parameters(), 0.1)
x = torch.randn(4, 3)
w = nn.Parameter(torch.ones(3))
v = torch.ones(3, requires_grad=True)
for _ in range(3):
    loss = (w * v).sum()
    loss.backward()
""",
        "loss.backward",
    ),
    "a constant of the constructor": (
        """import torch
from torch import nn, optim
from torch.nn import functional as F
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(2, 2)
        self.scale = torch.ones(2).exp()
    def forward(self, x):
        return self.fc(x) * self.scale
""",
        None,
    ),
}
BY_HELPER = """import torch
from torch import nn


class Policy(nn.Module):
    def __init__(self):
        super().__init__()
        self.out = nn.Linear(3, 4)

    def sample(self, x):
        logp = self.out(x).log_softmax(-1)
        picked = torch.multinomial(logp.exp().detach(), 1)
        return picked, logp.gather(1, picked)


def update(optimizer, loss):
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()


policy = Policy()
optimizer = torch.optim.SGD(policy.parameters(), 0.1)
x = torch.randn(5, 3)
for _ in range(3):
    chosen, scores = policy.sample(x)
    update(optimizer, -(scores * (chosen > 1)).mean())
"""
RIGHT |= {
    "a helper runs the backward": (BY_HELPER, "loss.backward"),
    "a helper's loss of a constant": (
        BY_HELPER.replace("x = torch.randn(5, 3)", "x = policy.out(torch.randn(5, 3)).detach()[:, :3]"), "loss.backward",
    ),
}  # fmt: skip
WRONG = {
    "a helper runs the backward": (
        BY_HELPER.replace(
            "for _ in range(3):\n    chosen, scores = policy.sample(x)\n",
            "chosen, scores = policy.sample(x)\nfor _ in range(3):\n",
        ),
        "loss.backward",
        ["-chosen, scores = policy.sample(x)", "+    chosen, scores = policy.sample(x)"],
    ),
    "read beside the loop too": (
        """import torch
from torch import nn
gate, table = nn.Parameter(torch.zeros(3)), nn.Embedding(3, 4)
opt = torch.optim.SGD([gate, *table.parameters()], 0.1)
for epoch in range(2):
    weights = torch.sigmoid(gate)
    print(len(weights))
    for x in torch.randint(3, (3, 5)):
        loss = (weights[x] * table(x).sum(-1)).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
    print(weights)
""",
        "loss.backward()",
        ["+        weights = torch.sigmoid(gate)"],
    ),
    "targets of a network that nobody trains, in a dictionary": (
        """import torch
from torch import nn


class Taps(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([nn.Conv2d(3, 4, 3), nn.Conv2d(4, 4, 3)])

    def forward(self, x):
        out = {}
        for i, layer in enumerate(self.layers):
            x = layer(x).relu()
            out[i] = x
        return out


taps, style = Taps(), torch.rand(1, 3, 8, 8)
wanted = taps(style)
image = torch.rand(1, 3, 8, 8, requires_grad=True)
optimizer = torch.optim.Adam([image], lr=0.1)
for step in range(3):
    found = taps(image)
    loss = sum(nn.functional.mse_loss(found[i], wanted[i]) for i in found)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
""",
        "loss.backward",
        ["-wanted = taps(style)", "+with torch.no_grad():", "+    wanted = taps(style)"],
    ),
    "features": (
        """import torch
from torch import nn

torch.manual_seed(0)
prompts, image_head = nn.Embedding(3, 8), nn.Linear(6, 8)
optimizer = torch.optim.SGD([*prompts.parameters(), *image_head.parameters()], lr=0.1)
images, labels = torch.rand(16, 6), torch.randint(3, (16,))
class_features = nn.functional.normalize(prompts(torch.arange(3)), dim=1)
for epoch in range(3):
    logits = image_head(images) @ class_features.T
    loss = nn.functional.cross_entropy(logits, labels)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
""",
        "loss.backward()",
        [
            "-class_features = nn.functional.normalize(prompts(torch.arange(3)), dim=1)",
            "+    class_features = nn.functional.normalize(prompts(torch.arange(3)), dim=1)",
        ],
    ),
    "a chain, used in the inner of two loops": (
        """import torch
from torch import nn
import torch.nn.functional as F
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.node = nn.Embedding(6, 4); self.mix = nn.Linear(4, 4); self.out = nn.Linear(4, 3)
    def encode(self):
        return torch.tanh(self.mix(self.node.weight))
    def forward(self, h, idx):
        return self.out(h[idx])
def main():
    torch.manual_seed(0)
    net = Net()
    opt = torch.optim.Adam(net.parameters())
    idx, y = torch.arange(6), torch.randint(3, (6,))
    emb = net.encode()
    emb = F.normalize(emb, dim=1)
    for epoch in range(2):
        for b in idx.split(3):
            loss = F.cross_entropy(net(emb, b), y[b])
            opt.zero_grad()
            loss.backward()
            opt.step()
main()
""",
        "loss.backward()",
        [
            "-    emb = net.encode()",
            "-    emb = F.normalize(emb, dim=1)",
            "+            emb = net.encode()",
            "+            emb = F.normalize(emb, dim=1)",
        ],
    ),
    "a penalty on weights": (
        """import torch
from torch import nn
class Trainer:
    def __init__(self):
        self.model = nn.Linear(3, 1)
        self.opt = torch.optim.SGD(self.model.parameters(), 0.1)
    def fit(self, xs):
        penalty = 0.1 * self.model.weight.pow(2).sum()
        for x in xs:
            loss = self.model(x).pow(2).mean() + penalty
            self.opt.zero_grad()
            loss.backward()
            self.opt.step()
torch.manual_seed(0)
Trainer().fit(torch.randn(3, 5, 3))
""",
        "loss.backward()",
        [
            "-        penalty = 0.1 * self.model.weight.pow(2).sum()",
            "+            penalty = 0.1 * self.model.weight.pow(2).sum()",
        ],
    ),
    "old log-probabilities beside new ones": (
        """import torch
from torch import nn
torch.manual_seed(0)
policy = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 2))
opt = torch.optim.Adam(policy.parameters())
s, a, adv = torch.randn(5, 3), torch.randint(2, (5,)), torch.randn(5)
old_logp = policy(s).log_softmax(-1)[torch.arange(5), a]
for k in range(3):
    logp = policy(s).log_softmax(-1)[torch.arange(5), a]
    ratio = (logp - old_logp).exp()
    loss = -torch.min(ratio * adv, ratio.clamp(0.8, 1.2) * adv).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
        "loss.backward()",
        [
            "-old_logp = policy(s).log_softmax(-1)[torch.arange(5), a]",
            "+old_logp = policy(s).log_softmax(-1)[torch.arange(5), a].detach()",
        ],
    ),
    "a closure": (
        """import torch
from torch import nn

torch.manual_seed(0)
model = nn.Linear(3, 1)
optimizer = torch.optim.LBFGS(model.parameters(), max_iter=4)
inputs, target = torch.rand(8, 3), torch.rand(8, 1)
loss = nn.functional.mse_loss(model(inputs), target)


def closure():
    optimizer.zero_grad()
    loss.backward()
    return loss


optimizer.step(closure)
""",
        "loss.backward()",
        [
            "-loss = nn.functional.mse_loss(model(inputs), target)",
            "+    loss = nn.functional.mse_loss(model(inputs), target)",
        ],
    ),
    "a part of a module": (
        """import torch
from torch import nn


class Kernel(nn.Module):
    def __init__(self):
        super().__init__()
        self.log_scale = nn.Parameter(torch.zeros(3))
        self.scale = self.log_scale.exp()

    def forward(self, inputs):
        return torch.exp(-(inputs / self.scale).pow(2).sum(1))


torch.manual_seed(0)
kernel = Kernel()
optimizer = torch.optim.Adam(kernel.parameters(), lr=0.1)
inputs, target = torch.rand(8, 3), torch.rand(8)
for step in range(3):
    loss = nn.functional.mse_loss(kernel(inputs), target)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
""",
        "loss.backward()",
        [
            "-        self.scale = self.log_scale.exp()",
            "-        return torch.exp(-(inputs / self.scale).pow(2).sum(1))",
            "+        scale = self.log_scale.exp()",
            "+        return torch.exp(-(inputs / scale).pow(2).sum(1))",
        ],
    ),
}


@pytest.mark.parametrize(("source", "at"), RIGHT.values(), ids=RIGHT)
def test_right_programs_stay(source: str, at: str | None, tmp_path: pathlib.Path) -> None:
    """Nothing is proposed where the fault is not."""
    assert rewritten(tmp_path, "compute_inside_loop", source, at) == source


@pytest.mark.parametrize(("source", "at", "changes"), WRONG.values(), ids=WRONG)
def test_wrong_programs_are_mended(source: str, at: str | None, changes: list[str], tmp_path: pathlib.Path) -> None:
    """The best edit changes these lines; a second time nothing is left to do."""
    after = rewritten(tmp_path, "compute_inside_loop", source, at)
    assert diff_lines(source, after) == changes
    still = at if at and at in after else None
    assert rewritten(tmp_path, "compute_inside_loop", after, still) == after


TOWERS = """import torch
from torch import nn
import torch.nn.functional as F

class Search(nn.Module):
    def __init__(self):
        super().__init__()
        self.tower, self.other = nn.Linear(4, 3), nn.Linear(4, 3)

    def forward(self, query, items):
        return self.{queries}(query) @ items.T

model = Search()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
catalogue, rows = torch.randn(8, 4), torch.randn(12, 4)
for epoch in range(2):
    items = model.tower(catalogue)
    for batch in rows.split(4):
        loss = F.cross_entropy(model(batch, items), torch.arange(4))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
"""


@pytest.mark.parametrize(("queries", "kind"), [("tower", "display"), ("other", None)])
def test_an_index_of_each_epoch(queries: str, kind: str | None, tmp_path: pathlib.Path) -> None:
    """A tower that only the items go through would never train; of one that the queries train too it may be a constant."""
    program = write(tmp_path, {"train.py": TOWERS.format(queries=queries)})
    found = best("compute_inside_loop", program)
    assert found is not None
    assert found.applicability == kind


ROUNDS = """import torch
from torch import nn

gen, critic = nn.Linear(4, 2), nn.Linear(2, 1)
og, oc = (torch.optim.Adam(one.parameters()) for one in (gen, critic))
for step in range(3):
    fake = gen(torch.randn(8, 4))
    for _ in range(2):
        loss = critic(fake).mean() - critic(torch.randn(8, 2)).mean()
        oc.zero_grad()
        loss.backward()
        STEP
    later = -critic(BEHIND).mean()
    og.zero_grad()
    later.backward()
    og.step()
"""


@pytest.mark.parametrize(
    ("step", "behind", "is_cut"),
    [("oc.step()", "fake", True), ("oc.step()", "gen(torch.randn(8, 4))", False), ("pass", "fake", False)],
    ids=["rounds of a critic", "made anew behind", "gradients that add up"],
)
def test_what_a_loss_behind_the_loop_trains(tmp_path: pathlib.Path, step: str, behind: str, is_cut: bool) -> None:
    """The rounds take it as data where they step by themselves, and what made it learns of the loss that follows them."""
    source = ROUNDS.replace("STEP", step).replace("BEHIND", behind)
    after = rewritten(tmp_path, "compute_inside_loop", source, "loss.backward()")
    wanted = ["loss = critic(fake.detach()).mean() - critic(torch.randn(8, 2)).mean()"]
    assert (changed_lines(source, after) == wanted) is is_cut


@pytest.mark.parametrize("is_traced", [True, False])
def test_what_a_trace_saw_made_once(tmp_path: pathlib.Path, is_traced: bool) -> None:  # noqa: FBT001
    """It has a graph, whatever handed out the weights that it was computed of."""
    source = """import torch
from weights import bounds, net
opt = torch.optim.SGD(net.parameters(), 0.1)
decay = sum(one.pow(2).sum() for one in bounds(net))
for x in torch.randn(3, 5, 4):
    loss = net(x).mean() + 0.1 * decay
    opt.zero_grad()
    loss.backward()
    opt.step()
"""
    line = TracedLine(kind=ONCE_MADE, operation="add", file="train.py", line=line_of(source, "decay ="), is_guess=True)
    incident = replace(failed({"train.py": line_of(source, "loss.backward")}), traced=(line,) if is_traced else ())
    found = best("compute_inside_loop", write(tmp_path, {"train.py": source}), incident=incident)
    after = splice(source, found.edits) if found is not None else source
    assert diff_lines(source, str(after)) == (
        ["-decay = sum(one.pow(2).sum() for one in bounds(net))", "+    decay = sum(one.pow(2).sum() for one in bounds(net))"]
        if is_traced else []
    )  # fmt: skip
