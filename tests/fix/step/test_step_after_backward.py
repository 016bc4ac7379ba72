"""What changes weights in place moves behind the backward that goes through them."""

from __future__ import annotations

import pathlib

import pytest

from tests.fix.rewriting import diff_lines, rewritten

RIGHT = {
    "the usual order": (
        """import torch
from torch import nn, optim
from torch.nn import functional as F
net = nn.Linear(3, 2)
opt = optim.SGD(net.parameters(), 0.1)
x = torch.randn(4, 3)
loss = net(x).sum()
opt.zero_grad()
loss.backward()
opt.step()
""",
        "loss.backward",
    ),
    "a forward after the step": (
        """import torch
from torch import nn, optim
from torch.nn import functional as F
net = nn.Linear(3, 2)
opt = optim.SGD(net.parameters(), 0.1)
x = torch.randn(4, 3)
a = net(x).sum()
a.backward()
opt.step()
b = net(x).mean()
b.backward()
""",
        "b.backward",
    ),
    "clipping before the forward": (
        """import torch
from torch import nn, optim
from torch.nn import functional as F
net = nn.Linear(3, 2)
opt = optim.SGD(net.parameters(), 0.1)
x = torch.randn(4, 3)
with torch.no_grad():
    for p in net.parameters():
        p.clamp_(-1, 1)
loss = net(x).sum()
loss.backward()
""",
        "loss.backward",
    ),
    "weights written through data": (
        """import torch
from torch import nn, optim
from torch.nn import functional as F
net = nn.Linear(3, 2)
opt = optim.SGD(net.parameters(), 0.1)
x = torch.randn(4, 3)
loss = net(x).sum()
for p in net.parameters():
    p.data.clamp_(-1, 1)
loss.backward()
""",
        "loss.backward",
    ),
    "another network averaged": (
        """import torch
from torch import nn, optim
from torch.nn import functional as F
net = nn.Linear(3, 2)
opt = optim.SGD(net.parameters(), 0.1)
x = torch.randn(4, 3)
ema = nn.Linear(3, 2)
loss = net(x).sum()
with torch.no_grad():
    for p in ema.parameters():
        p.mul_(0.9)
loss.backward()
""",
        "loss.backward",
    ),
    "an adversary": (
        """import torch
from torch import nn
import torch.nn.functional as F

class Trainer:
    def __init__(self):
        self.gen = nn.Linear(3, 2)
        self.disc = nn.Linear(2, 1)
        self.g_opt = torch.optim.Adam(self.gen.parameters())
        self.d_opt = torch.optim.Adam(self.disc.parameters())

    def step(self, real):
        fake = self.gen(torch.randn(len(real), 3))
        logits_fake = self.disc(fake)
        logits_real = self.disc(real)
        d_loss = F.softplus(-logits_real).mean() + F.softplus(logits_fake).mean()
        g_loss = F.softplus(-logits_fake).mean()
        self.d_opt.zero_grad()
        d_loss.backward(retain_graph=True)
        self.d_opt.step()
        self.g_opt.zero_grad()
        g_loss.backward()
        self.g_opt.step()
        return d_loss.item(), g_loss.item()

torch.manual_seed(0)
t = Trainer()
for _ in range(2):
    print(t.step(torch.randn(4, 2)))
""",
        "g_loss.backward()",
    ),
}
WRONG = {
    "step before backward": (
        """import torch
from torch import nn
torch.manual_seed(0)
model = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1))
opt = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(3):
    loss = model(torch.randn(5, 3)).pow(2).mean()
    opt.step()
    loss.backward()
""",
        "loss.backward()",
        ["+    loss.backward()", "-    loss.backward()"],
    ),
    "clipping by a helper": (
        """import torch
from torch import nn
def clip(net, c):
    with torch.no_grad():
        for p in net.parameters():
            p.clamp_(-c, c)
torch.manual_seed(0)
critic = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1))
opt = torch.optim.RMSprop(critic.parameters(), lr=0.1)
for step in range(3):
    loss = critic(torch.randn(5, 3)).mean() - critic(torch.randn(5, 3)).mean()
    clip(critic, 0.01)
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
        "loss.backward()",
        ["-    clip(critic, 0.01)", "+    clip(critic, 0.01)"],
    ),
    "an encoder stepped between two heads": (
        """import torch
from torch import nn
torch.manual_seed(0)
enc, a, b = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4,4)), nn.Linear(4, 1), nn.Linear(4, 2)
opt_enc, opt_heads = torch.optim.SGD(enc.parameters(), 0.1), torch.optim.SGD([*a.parameters(), *b.parameters()], 0.1)
for x in torch.randn(3, 5, 3):
    z = enc(x)
    loss_a = a(z).pow(2).mean()
    loss_b = b(z).abs().mean()
    opt_enc.zero_grad(); opt_heads.zero_grad()
    loss_a.backward(retain_graph=True)
    opt_enc.step()
    loss_b.backward()
    opt_heads.step()
""",
        "loss_b.backward()",
        ["+    loss_b.backward()", "-    loss_b.backward()"],
    ),
    "one optimizer, two losses": (
        """import torch
from torch import nn
torch.manual_seed(0)
net = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4,4))
opt = torch.optim.SGD(net.parameters(), 0.1)
for x in torch.randn(3, 5, 3):
    z = net(x)
    loss_a = z.pow(2).mean()
    loss_b = z.abs().mean()
    opt.zero_grad()
    loss_a.backward(retain_graph=True)
    opt.step()
    opt.zero_grad()
    loss_b.backward()
    opt.step()
""",
        "loss_b.backward()",
        ["-    opt.step()", "-    opt.zero_grad()"],
    ),
    "weights loaded between": (
        """import torch
from torch import nn, optim
from torch.nn import functional as F
net = nn.Linear(3, 2)
opt = optim.SGD(net.parameters(), 0.1)
x = torch.randn(4, 3)
loss = net(x).sum()
net.load_state_dict(torch.load('best.pt'))
loss.backward()
opt.step()
""",
        "loss.backward",
        ["-net.load_state_dict(torch.load('best.pt'))", "+net.load_state_dict(torch.load('best.pt'))"],
    ),
}


@pytest.mark.parametrize(("source", "at"), RIGHT.values(), ids=RIGHT)
def test_right_programs_stay(source: str, at: str | None, tmp_path: pathlib.Path) -> None:
    """Nothing is proposed where the fault is not."""
    assert rewritten(tmp_path, "step_after_backward", source, at) == source


@pytest.mark.parametrize(("source", "at", "changes"), WRONG.values(), ids=WRONG)
def test_wrong_programs_are_mended(source: str, at: str | None, changes: list[str], tmp_path: pathlib.Path) -> None:
    """The best edit changes these lines; a second time nothing is left to do."""
    after = rewritten(tmp_path, "step_after_backward", source, at)
    assert diff_lines(source, after) == changes
    still = at if at and at in after else None
    assert rewritten(tmp_path, "step_after_backward", after, still) == after
