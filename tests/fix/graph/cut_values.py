"""Programs whose loss has lost its values' graph: a threshold, a sample, NumPy, a cast."""

from __future__ import annotations

from tests.fix.graph.cut_program import HEAD, TAIL, Broken

SOFT_DICE = Broken(
    {
        "train.py": HEAD
        + """

class Segmenter(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(1, 4, 3, padding=1)
        self.out = nn.Conv2d(4, 1, 1)

    def forward(self, x):
        return self.out(F.relu(self.conv(x)))


def dice_loss(logits, mask, eps=1.0):
    probability = torch.sigmoid(logits)
    predicted = (probability > 0.5).float()
    overlap = (predicted * mask).sum(dim=(1, 2, 3))
    return 1 - ((2 * overlap + eps) / (predicted.sum((1, 2, 3)) + mask.sum((1, 2, 3)) + eps)).mean()


torch.manual_seed(0)
model = Segmenter()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
image, mask = torch.randn(2, 1, 8, 8), (torch.rand(2, 1, 8, 8) > 0.5).float()
loss = dice_loss(model(image), mask)
loss.backward()
optimizer.step()
"""
        + TAIL
    },
    "no-graph/non-differentiable-op",
    "predicted = (probability > 0.5).float()",
    {"train.py": (("(probability > 0.5).float()", "probability"),)},
)
SAMPLED_LATENT = Broken(
    {
        "vae.py": HEAD
        + """from torch.distributions import Normal


class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.mean, self.scale = nn.Linear(6, 2), nn.Linear(6, 2)

    def forward(self, x):
        return Normal(self.mean(x), F.softplus(self.scale(x)) + 1e-3)
""",
        "train.py": """import torch
from vae import Encoder

torch.manual_seed(0)
model = Encoder()
decoder = torch.nn.Linear(2, 6)
for p in decoder.parameters():
    p.requires_grad = False
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
x = torch.randn(4, 6)
posterior = model(x)
z = posterior.sample()
loss = (decoder(z) - x).square().mean()
loss.backward()
optimizer.step()
"""
        + TAIL,
    },
    "no-graph/non-differentiable-op",
    "z = posterior.sample()",
    {"train.py": ((".sample()", ".rsample()"),)},
)
NUMPY_LOSS = Broken(
    {
        "train.py": """import numpy as np
"""
        + HEAD
        + """

def relative_error(predicted, wanted):
    difference = np.abs(predicted - wanted)
    return np.mean(difference / (1.0 + np.abs(wanted)))


torch.manual_seed(0)
model = nn.Sequential(nn.Linear(6, 8), nn.Tanh(), nn.Linear(8, 2))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(2):
    x, y = torch.randn(4, 6), torch.randn(4, 2)
    loss = torch.tensor(relative_error(model(x).detach().numpy(), y.numpy()))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""
        + TAIL
    },
    "no-graph/detached",
    "model(x).detach().numpy()",
    {
        "train.py": (
            ("np.abs(predicted", "torch.abs(predicted"),
            ("np.mean(difference / (1.0 + np.abs(wanted)))", "torch.mean(difference / (1.0 + torch.abs(wanted)))"),
            ("torch.tensor(relative_error(model(x).detach().numpy(), y.numpy()))", "relative_error(model(x), y)"),
        )
    },
)
PROMPT_ON_DEVICE = Broken(
    {
        "prompt.py": HEAD
        + """

class Prompted(nn.Module):
    def __init__(self, base, length, device):
        super().__init__()
        self.base = base.requires_grad_(False)
        self.prompt = torch.randn(length, 4, requires_grad=True).to(torch.float64) * 0.02
        self.device = device

    def forward(self, x):
        return self.base((x + self.prompt.mean(0)).float())
""",
        "train.py": """import torch
from torch import nn
from prompt import Prompted

torch.manual_seed(0)
net = Prompted(nn.Linear(4, 3), 5, "cpu")
optimizer = torch.optim.SGD([net.prompt], lr=0.1)
loss = nn.functional.cross_entropy(net(torch.randn(2, 4)), torch.tensor([0, 2]))
loss.backward()
grads = {"prompt": net.prompt.grad}
""",
    },
    "no-graph/non-leaf-in-optimizer",
    "self.prompt = torch.randn",
    {
        "prompt.py": (
            (
                "torch.randn(length, 4, requires_grad=True).to(torch.float64) * 0.02",
                "(torch.randn(length, 4).to(torch.float64) * 0.02).requires_grad_()",
            ),
        )
    },
)
