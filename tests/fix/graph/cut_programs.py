"""Programs whose loss has lost its graph, each with the change that its author would make, and the line at fault."""

from __future__ import annotations

from tests.fix.graph.cut_program import HEAD, TAIL, Broken
from tests.fix.graph.cut_values import NUMPY_LOSS, PROMPT_ON_DEVICE, SAMPLED_LATENT, SOFT_DICE

DICT_OUTPUT = Broken(
    {
        "net.py": HEAD
        + """
class Encoder(nn.Module):
    def __init__(self, width=8):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(6, width), nn.ReLU())
        self.project = nn.Linear(width, 4)

    def forward(self, x):
        hidden = self.body(x)
        z = F.normalize(self.project(hidden), dim=-1)
        return {"hidden": hidden, "embedding": z.detach()}
""",
        "losses.py": """import torch.nn.functional as F


def contrastive(z, labels, temperature=0.5):
    similarity = z @ z.t() / temperature
    return F.cross_entropy(similarity, labels)
""",
        "train.py": """import torch
from losses import contrastive
from net import Encoder

torch.manual_seed(0)
model = Encoder()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
for step in range(2):
    x, labels = torch.randn(5, 6), torch.arange(5)
    out = model(x)
    loss = contrastive(out["embedding"], labels)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""
        + TAIL,
    },
    "no-graph/detached",
    '"embedding": z.detach()',
    {"net.py": (("z.detach()", "z"),)},
)
SUMMED_NUMBERS = Broken(
    {
        "train.py": HEAD
        + """

class MultiTask(nn.Module):
    def __init__(self):
        super().__init__()
        self.trunk = nn.Linear(6, 8)
        self.heads = nn.ModuleList([nn.Linear(8, 3), nn.Linear(8, 2)])

    def forward(self, x):
        h = torch.tanh(self.trunk(x))
        return [head(h) for head in self.heads]


def combine(outputs, targets, weights):
    total = torch.zeros(())
    for out, target, weight in zip(outputs, targets, weights):
        loss = F.cross_entropy(out, target)
        total = total + weight * loss.item()
    return total


def main():
    torch.manual_seed(0)
    model = MultiTask()
    opt = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(2):
        x = torch.randn(4, 6)
        targets = [torch.tensor([0, 1, 2, 0]), torch.tensor([0, 1, 1, 0])]
        loss = combine(model(x), targets, (1.0, 0.5))
        opt.zero_grad()
        loss.backward()
        opt.step()
    return model


model = main()
"""
        + TAIL
    },
    "no-graph/detached",
    "weight * loss.item()",
    {"train.py": (("loss.item()", "loss"),)},
)
DECORATED = Broken(
    {
        "model.py": HEAD
        + """

class Base(nn.Module):
    @torch.inference_mode()
    def encode(self, x):
        return self.encoder(x)


class Net(Base):
    def __init__(self):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(6, 8), nn.Tanh(), nn.Linear(8, 3))

    def forward(self, x):
        return F.log_softmax(self.encode(x), dim=-1)
""",
        "train.py": """import torch
from torch import nn
from model import Net


def fit(model, batches, criterion):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for x, y in batches:
        loss = criterion(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


torch.manual_seed(0)
model = Net()
fit(model, [(torch.randn(4, 6), torch.tensor([0, 1, 2, 0]))] * 2, nn.NLLLoss())
"""
        + TAIL,
    },
    "no-graph/grad-mode-off",
    "@torch.inference_mode()",
    {"model.py": (("    @torch.inference_mode()\n", ""),)},
)
DISTILLATION = Broken(
    {
        "train.py": HEAD
        + """

def make(width):
    return nn.Sequential(nn.Linear(6, width), nn.ReLU(), nn.Linear(width, 3))


def distill(student, teacher, x, temperature=2.0):
    with torch.no_grad():
        wanted = F.softmax(teacher(x) / temperature, dim=-1)
        got = F.log_softmax(student(x) / temperature, dim=-1)
    return F.kl_div(got, wanted, reduction="batchmean")


torch.manual_seed(0)
teacher, student = make(16), make(8)
model = student
optimizer = torch.optim.SGD(student.parameters(), lr=0.1)
for _ in range(2):
    loss = distill(student, teacher, torch.randn(4, 6))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""
        + TAIL
    },
    "no-graph/grad-mode-off",
    "with torch.no_grad():",
    {"train.py": (("        got = F", "    got = F"),)},
)
LEFT_OFF = Broken(
    {
        "train.py": HEAD
        + """

def evaluate(net, x, y):
    net.eval()
    torch.set_grad_enabled(False)
    accuracy = (net(x).argmax(1) == y).float().mean()
    net.train()
    return accuracy.item()


torch.manual_seed(0)
model = nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 3))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
x, y = torch.randn(4, 6), torch.tensor([0, 1, 2, 0])
for epoch in range(2):
    loss = F.cross_entropy(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    evaluate(model, x, y)
"""
        + TAIL
    },
    "no-graph/grad-mode-off",
    "torch.set_grad_enabled(False)",
    {"train.py": (("    net.train()\n", "    net.train()\n    torch.set_grad_enabled(True)\n"),)},
)
FROZEN_BY_HELPER = Broken(
    {
        "parts.py": HEAD
        + """

def freeze(module):
    for parameter in module.parameters():
        parameter.requires_grad = False


class Classifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.backbone = nn.Sequential(nn.Linear(6, 8), nn.ReLU())
        self.head = nn.Linear(8, 3)

    def forward(self, x):
        return self.head(self.backbone(x))
""",
        "train.py": """import torch
from torch import nn
from parts import Classifier, freeze

torch.manual_seed(0)
model = Classifier()
freeze(model)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
criterion = nn.CrossEntropyLoss()
for _ in range(2):
    loss = criterion(model(torch.randn(4, 6)), torch.tensor([0, 1, 2, 0]))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""
        + TAIL,
    },
    "no-graph/all-parameters-frozen",
    "parameter.requires_grad = False",
    {"train.py": (("freeze(model)", "freeze(model.backbone)"),)},
)
HEAD_FROZEN_TOO = Broken(
    {
        "train.py": HEAD
        + """

class Net(nn.Module):
    def __init__(self, classes):
        super().__init__()
        self.stem = nn.Linear(6, 8)
        self.block = nn.Linear(8, 8)
        self.fc = nn.Linear(8, classes)

    def forward(self, x):
        return self.fc(torch.relu(self.block(torch.relu(self.stem(x)))))


torch.manual_seed(0)
model = Net(10)
model.fc = nn.Linear(8, 3)
for p in model.parameters():
    p.requires_grad_(False)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(2):
    loss = F.cross_entropy(model(torch.randn(4, 6)), torch.tensor([0, 1, 2, 0]))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""
        + TAIL
    },
    "no-graph/all-parameters-frozen",
    "p.requires_grad_(False)",
    {
        "train.py": (
            ("model.fc = nn.Linear(8, 3)\n", "fc = nn.Linear(8, 3)\n"),
            ("    p.requires_grad_(False)\n", "    p.requires_grad_(False)\nmodel.fc = fc\n"),
        )
    },
)
CLOSURE = Broken(
    {
        "train.py": HEAD
        + """

def train_step(model, optimizer, x, y, parts=2):
    loss = torch.tensor(0.0)

    def accumulate():
        for one, target in zip(x.chunk(parts), y.chunk(parts)):
            loss = F.mse_loss(model(one), target)

    accumulate()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss.item()


torch.manual_seed(0)
model = nn.Linear(6, 2)
train_step(model, torch.optim.SGD(model.parameters(), lr=0.1), torch.randn(4, 6), torch.randn(4, 2))
"""
        + TAIL
    },
    "no-graph/loss-not-from-model",
    "loss = F.mse_loss(model(one), target)",
    {"train.py": (("        for one, target", "        nonlocal loss\n        for one, target"),)},
)
SHADOWED_ATTRIBUTE = Broken(
    {
        "moe.py": HEAD
        + """

class Mixture(nn.Module):
    def __init__(self):
        super().__init__()
        self.gate = nn.Linear(6, 2)
        self.experts = nn.ModuleList(nn.Linear(6, 3) for _ in range(2))
        self.aux_loss = torch.zeros(())

    def forward(self, x):
        share = self.gate(x).softmax(-1)
        aux_loss = (share.mean(0) ** 2).sum()
        return sum(share[:, i, None] * e(x) for i, e in enumerate(self.experts))
""",
        "train.py": """import torch
from moe import Mixture

torch.manual_seed(0)
model = Mixture()
optimizer = torch.optim.SGD(model.gate.parameters(), lr=0.1)
for _ in range(2):
    model(torch.randn(4, 6))
    loss = model.aux_loss
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""
        + TAIL,
    },
    "no-graph/loss-not-from-model",
    "aux_loss = (share.mean(0) ** 2).sum()",
    {"moe.py": (("        aux_loss = (", "        self.aux_loss = ("),)},
)
METHOD_HELPER = Broken(
    {
        "train.py": HEAD
        + """

class Fitter:
    def __init__(self, model, lr=0.1):
        self.model = model
        self.optimizer = torch.optim.SGD(model.parameters(), lr=lr)

    def add_penalty(self, loss, weight):
        for parameter in self.model.parameters():
            loss = loss + weight * parameter.square().sum()

    def run(self, steps):
        for _ in range(steps):
            loss = torch.tensor(0.0)
            self.add_penalty(loss, 0.1)
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()


torch.manual_seed(0)
model = nn.Linear(6, 2)
Fitter(model).run(2)
"""
        + TAIL
    },
    "no-graph/loss-not-from-model",
    "loss = loss + weight * parameter.square().sum()",
    {
        "train.py": (
            ("            self.add_penalty(loss, 0.1)", "            loss = self.add_penalty(loss, 0.1)"),
            ("parameter.square().sum()\n", "parameter.square().sum()\n        return loss\n"),
        )
    },
)
ATTACK = Broken(
    {
        "attack.py": HEAD
        + """

class Attack:
    def __init__(self, net, size):
        self.net, self.size = net, size

    def gradient(self, x, y):
        x = x.detach().clone().requires_grad_(True)
        loss = F.cross_entropy(self.net(x), y)
        return torch.autograd.grad(loss, x)[0]

    def __call__(self, x, y):
        return x + self.size * self.gradient(x, y).sign()
""",
        "train.py": """import torch
from torch import nn
from attack import Attack


@torch.no_grad()
def robust_accuracy(net, attack, x, y):
    return (net(attack(x, y)).argmax(1) == y).float().mean().item()


torch.manual_seed(0)
model = nn.Linear(4, 3)
x, y = torch.randn(6, 4), torch.randint(0, 3, (6,))
nn.functional.cross_entropy(model(x), y).backward()
robust_accuracy(model, Attack(model, 0.1), x, y)
"""
        + TAIL,
    },
    "no-graph/grad-mode-off",
    "loss = F.cross_entropy(self.net(x), y)",
    {
        "attack.py": (
            (
                "        loss = F.cross_entropy(self.net(x), y)\n        return",
                "        with torch.enable_grad():\n            loss = F.cross_entropy(self.net(x), y)\n        return",
            ),
        )
    },
)
PLAIN_LIST = Broken(
    {
        "train.py": HEAD
        + """

class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm, self.line = nn.LayerNorm(width), nn.Linear(width, width)

    def forward(self, x):
        return x + torch.relu(self.line(self.norm(x)))


class Stack(nn.Module):
    def __init__(self, width, depth):
        super().__init__()
        self.blocks = []
        for _ in range(depth):
            self.blocks.append(Block(width))

    def forward(self, x):
        for block in self.blocks:
            x = block(x)
        return x


torch.manual_seed(0)
model = Stack(4, 2)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
model(torch.randn(2, 4)).square().mean().backward()
optimizer.step()
"""
        + TAIL
    },
    "no-graph/empty-parameter-list",
    "self.blocks = []",
    {"train.py": (("self.blocks = []", "self.blocks = nn.ModuleList()"),)},
)
FROZEN_EMBEDDING = Broken(
    {
        "blocks.py": HEAD
        + """from torch.utils.checkpoint import checkpoint


class Adapted(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.base = nn.Linear(width, width).requires_grad_(False)
        self.down, self.up = nn.Linear(width, 2), nn.Linear(2, width)

    def forward(self, x):
        return torch.tanh(self.base(x) + self.up(self.down(x)))


class Net(nn.Module):
    def __init__(self, width=8, depth=2, reentrant=True):
        super().__init__()
        self.embed = nn.Embedding(10, width).requires_grad_(False)
        self.blocks = nn.ModuleList(Adapted(width) for _ in range(depth))
        self.head = nn.Linear(width, 10).requires_grad_(False)
        self.reentrant = reentrant

    def forward(self, tokens):
        h = self.embed(tokens)
        for block in self.blocks:
            h = checkpoint(block, h, use_reentrant=self.reentrant)
        return self.head(h)
""",
        "train.py": """import torch
from torch import nn
from blocks import Net

torch.manual_seed(0)
model = Net()
optimizer = torch.optim.SGD([p for p in model.parameters() if p.requires_grad], lr=0.1)
tokens = torch.randint(0, 10, (2, 5))
loss = nn.functional.cross_entropy(model(tokens).flatten(0, 1), tokens.flatten())
loss.backward()
"""
        + TAIL,
    },
    "no-graph/checkpoint-inputs-need-grad",
    "reentrant",
    {"blocks.py": (("depth=2, reentrant=True", "depth=2, reentrant=False"),)},
)
WRONG_DATA = Broken(
    {
        "train.py": HEAD
        + """

def step(model, batch, criterion):
    inputs, targets = batch
    outputs = model(inputs)
    return criterion(inputs, targets)


torch.manual_seed(0)
model = nn.Sequential(nn.Linear(3, 8), nn.ReLU(), nn.Linear(8, 3))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
loss = step(model, (torch.randn(4, 3), torch.tensor([0, 1, 2, 0])), nn.CrossEntropyLoss())
loss.backward()
"""
        + TAIL
    },
    "no-graph/loss-not-from-model",
    "return criterion(inputs, targets)",
    {"train.py": (("criterion(inputs, targets)", "criterion(outputs, targets)"),)},
)
PROGRAMS = {
    "an output detached in a dictionary": DICT_OUTPUT,
    "losses summed as numbers in a helper": SUMMED_NUMBERS,
    "a decorated method of a base class": DECORATED,
    "teacher and student under one no_grad": DISTILLATION,
    "grad mode left off by an evaluation": LEFT_OFF,
    "a helper of another file that freezes all": FROZEN_BY_HELPER,
    "a new head frozen with the rest": HEAD_FROZEN_TOO,
    "a local in a closure": CLOSURE,
    "a local beside an attribute": SHADOWED_ATTRIBUTE,
    "a method that returns nothing": METHOD_HELPER,
    "a thresholded mask in a dice loss": SOFT_DICE,
    "a sample without reparametrisation": SAMPLED_LATENT,
    "a loss computed in NumPy": NUMPY_LOSS,
    "a prompt that is cast after its flag": PROMPT_ON_DEVICE,
    "an attack in an evaluation": ATTACK,
    "blocks in a plain list": PLAIN_LIST,
    "adapters over a frozen embedding": FROZEN_EMBEDDING,
    "a loss of the inputs": WRONG_DATA,
}
