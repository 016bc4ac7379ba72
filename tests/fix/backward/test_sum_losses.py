"""Backward calls through one shared part become one call on the sum."""

from __future__ import annotations

import pathlib

import pytest

from explainer.fix.codemods.backward.sum_losses import SHARED
from tests.fix.rewriting import changed_lines, diff_lines, rewritten

RIGHT = {
    "one backward": (
        """import torch
from torch import nn, optim
from torch.nn import functional as F
enc, a, b = nn.Linear(4, 8), nn.Linear(8, 1), nn.Linear(8, 2)
opt = optim.SGD([*enc.parameters(), *a.parameters(), *b.parameters()], 0.1)
x = torch.randn(3, 4)
z = enc(x).tanh()
loss = a(z).sum() + b(z).sum()
opt.zero_grad()
loss.backward()
opt.step()
""",
        "loss.backward",
    ),
    "two forwards": (
        """import torch
from torch import nn, optim
from torch.nn import functional as F
enc, a, b = nn.Linear(4, 8), nn.Linear(8, 1), nn.Linear(8, 2)
opt = optim.SGD([*enc.parameters(), *a.parameters(), *b.parameters()], 0.1)
x = torch.randn(3, 4)
z = enc(x).tanh()
first = a(z).sum()
first.backward()
second = b(enc(x)).sum()
second.backward()
""",
        "second.backward",
    ),
    "the graph is kept already": (
        """import torch
from torch import nn, optim
from torch.nn import functional as F
enc, a, b = nn.Linear(4, 8), nn.Linear(8, 1), nn.Linear(8, 2)
opt = optim.SGD([*enc.parameters(), *a.parameters(), *b.parameters()], 0.1)
x = torch.randn(3, 4)
z = enc(x).tanh()
first = a(z).sum()
first.backward(retain_graph=True)
second = b(z).sum()
second.backward()
""",
        "second.backward",
    ),
    "the second loss sees a detached code": (
        """import torch
from torch import nn, optim
from torch.nn import functional as F
enc, a, b = nn.Linear(4, 8), nn.Linear(8, 1), nn.Linear(8, 2)
opt = optim.SGD([*enc.parameters(), *a.parameters(), *b.parameters()], 0.1)
x = torch.randn(3, 4)
z = enc(x).tanh()
first = a(z).sum()
first.backward()
second = b(z.detach()).sum()
second.backward()
""",
        "second.backward",
    ),
    "the same loss twice": (
        """import torch
from torch import nn, optim
from torch.nn import functional as F
enc, a, b = nn.Linear(4, 8), nn.Linear(8, 1), nn.Linear(8, 2)
opt = optim.SGD([*enc.parameters(), *a.parameters(), *b.parameters()], 0.1)
x = torch.randn(3, 4)
z = enc(x).tanh()
loss = a(z).sum()
loss.backward()
loss.backward()
""",
        "loss.backward",
    ),
    "two networks against each other": (
        """import torch
from torch import nn, optim
torch.manual_seed(0)
G, D = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 2)), nn.Linear(2, 1)
opt_g, opt_d = optim.Adam(G.parameters()), optim.Adam(D.parameters())
bce = nn.BCEWithLogitsLoss()
valid, false = torch.ones(4, 1), torch.zeros(4, 1)
for imgs in torch.randn(3, 4, 2):
    opt_g.zero_grad()
    gen_imgs = G(torch.randn(4, 3))
    g_loss = bce(D(gen_imgs), valid)
    g_loss.backward()
    opt_g.step()
    opt_d.zero_grad()
    real_loss = bce(D(imgs), valid)
    fake_loss = bce(D(gen_imgs), false)
    d_loss = (real_loss + fake_loss) / 2
    d_loss.backward()
    opt_d.step()
""",
        "d_loss.backward()",
    ),
    "a loop that makes its own graphs": (
        """import torch
from torch import nn, optim
from torch.nn import functional as F
net = nn.Linear(3, 2)
opt = optim.SGD(net.parameters(), 0.1)
for x in torch.randn(4, 2, 3):
    loss = net(x).sum()
    loss.backward()
opt.step()
""",
        "loss.backward",
    ),
}
WRONG = {
    "weighted losses": (
        """import torch
from torch import nn, optim
from torch.nn import functional as F
enc, a, b = nn.Linear(4, 8), nn.Linear(8, 1), nn.Linear(8, 2)
opt = optim.SGD([*enc.parameters(), *a.parameters(), *b.parameters()], 0.1)
x = torch.randn(3, 4)
z = enc(x).tanh()
first = a(z).sum()
second = b(z).sum()
opt.zero_grad()
(0.3 * first).backward()
second.backward()
opt.step()
""",
        "second.backward",
        ["-(0.3 * first).backward()", "-second.backward()", "+(0.3 * first + second).backward()"],
    ),
    "three losses": (
        """import torch
from torch import nn, optim
from torch.nn import functional as F
enc, a, b = nn.Linear(4, 8), nn.Linear(8, 1), nn.Linear(8, 2)
opt = optim.SGD([*enc.parameters(), *a.parameters(), *b.parameters()], 0.1)
x = torch.randn(3, 4)
z = enc(x).tanh()
l1, l2, l3 = a(z).sum(), b(z).sum(), z.pow(2).sum()
l1.backward()
l2.backward()
l3.backward()
opt.step()
""",
        "l2.backward",
        ["-l1.backward()", "-l2.backward()", "-l3.backward()", "+(l1 + l2 + l3).backward()"],
    ),
    "the second made after the first call": (
        """import torch
from torch import nn
import torch.nn.functional as F
class VAE(nn.Module):
    def __init__(self):
        super().__init__()
        self.enc = nn.Linear(4, 4); self.dec = nn.Linear(2, 4)
    def forward(self, x):
        mu, logvar = self.enc(x).chunk(2, -1)
        z = mu + torch.randn_like(mu) * (0.5 * logvar).exp()
        return self.dec(z), mu, logvar
class Runner:
    def __init__(self):
        self.model = VAE(); self.opt = torch.optim.Adam(self.model.parameters())
    def fit(self, x):
        recon, mu, logvar = self.model(x)
        self.opt.zero_grad()
        rec_loss = F.mse_loss(recon, x)
        rec_loss.backward()
        kl = -0.5 * (1 + logvar - mu.pow(2) - logvar.exp()).sum(1).mean()
        (0.1 * kl).backward()
        self.opt.step()
torch.manual_seed(0)
Runner().fit(torch.randn(3, 4))
""",
        "(0.1 * kl).backward",
        ["-        rec_loss.backward()", "-        (0.1 * kl).backward()", "+        (rec_loss + 0.1 * kl).backward()"],
    ),
    "a scaler": (
        """import torch
from torch import nn
import torch.nn.functional as F
torch.manual_seed(0)
enc, a, b = nn.Sequential(nn.Linear(4, 8), nn.Tanh()), nn.Linear(8, 1), nn.Linear(8, 2)
opt = torch.optim.SGD([*enc.parameters(), *a.parameters(), *b.parameters()], lr=0.1)
scaler = torch.amp.GradScaler("cpu")
def step(x):
    z = enc(x)
    la = a(z).pow(2).mean()
    opt.zero_grad()
    scaler.scale(0.5 * la).backward()
    lb = b(z).abs().mean()
    scaler.scale(lb).backward()
    scaler.step(opt)
    scaler.update()
step(torch.randn(5, 4))
""",
        "scaler.scale(lb)",
        [
            "-    scaler.scale(0.5 * la).backward()",
            "-    scaler.scale(lb).backward()",
            "+    scaler.scale(0.5 * la + lb).backward()",
        ],
    ),
    "a dictionary of losses": (
        """import torch
from torch import nn
import torch.nn.functional as F
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.trunk = nn.Sequential(nn.Linear(4, 8), nn.Tanh())
        self.heads = nn.ModuleDict({"a": nn.Linear(8, 2), "b": nn.Linear(8, 3)})
    def forward(self, x):
        z = self.trunk(x)
        return {k: h(z) for k, h in self.heads.items()}
torch.manual_seed(0)
net = Net()
opt = torch.optim.SGD(net.parameters(), lr=0.1)
for step in range(2):
    x = torch.randn(5, 4)
    out = net(x)
    losses = {k: v.pow(2).mean() for k, v in out.items()}
    opt.zero_grad()
    for name, loss in losses.items():
        loss.backward()
    opt.step()
""",
        "loss.backward()",
        ["-    for name, loss in losses.items():", "-        loss.backward()", "+    sum(losses.values()).backward()"],
    ),
    "a loss for each head": (
        """import torch
from torch import nn
import torch.nn.functional as F
torch.manual_seed(0)
enc = nn.Sequential(nn.Linear(4, 8), nn.Tanh())
heads = nn.ModuleList(nn.Linear(8, 1) for _ in range(3))
opt = torch.optim.SGD([*enc.parameters(), *heads.parameters()], lr=0.1)
for step in range(2):
    z = enc(torch.randn(5, 4))
    opt.zero_grad()
    for head in heads:
        loss = F.mse_loss(head(z), torch.ones(5, 1))
        loss.backward()
    opt.step()
""",
        "loss.backward()",
        [
            "+    total_loss = 0.0",
            "-        loss.backward()",
            "+        total_loss = total_loss + loss",
            "+    total_loss.backward()",
        ],
    ),
    "a loss for each head, by a scaler": (
        """import torch
from torch import nn
import torch.nn.functional as F
scaler = torch.amp.GradScaler("cpu")
enc = nn.Sequential(nn.Linear(4, 8), nn.Tanh())
heads = nn.ModuleList(nn.Linear(8, 1) for _ in range(3))
opt = torch.optim.SGD([*enc.parameters(), *heads.parameters()], lr=0.1)
for step in range(2):
    z = enc(torch.randn(5, 4))
    opt.zero_grad()
    for head in heads:
        loss = F.mse_loss(head(z), torch.ones(5, 1))
        scaler.scale(loss).backward()
    opt.step()
""",
        "scaler.scale(loss).backward()",
        [
            "+    total_loss = 0.0",
            "-        scaler.scale(loss).backward()",
            "+        total_loss = total_loss + loss",
            "+    scaler.scale(total_loss).backward()",
        ],
    ),
    "a loss for each head, by accelerate": (
        """import torch
from torch import nn
import torch.nn.functional as F
from accelerate import Accelerator
accelerator = Accelerator(cpu=True)
enc = nn.Sequential(nn.Linear(4, 8), nn.Tanh())
heads = nn.ModuleList(nn.Linear(8, 1) for _ in range(3))
opt = torch.optim.SGD([*enc.parameters(), *heads.parameters()], lr=0.1)
for step in range(2):
    z = enc(torch.randn(5, 4))
    opt.zero_grad()
    for head in heads:
        loss = F.mse_loss(head(z), torch.ones(5, 1))
        accelerator.backward(loss)
    opt.step()
""",
        "accelerator.backward(loss)",
        [
            "+    total_loss = 0.0",
            "-        accelerator.backward(loss)",
            "+        total_loss = total_loss + loss",
            "+    accelerator.backward(total_loss)",
        ],
    ),
    "clipping after each head's loss": (
        """import torch
from torch import nn
import torch.nn.functional as F
enc = nn.Sequential(nn.Linear(4, 8), nn.Tanh())
heads = nn.ModuleList(nn.Linear(8, 1) for _ in range(3))
opt = torch.optim.SGD([*enc.parameters(), *heads.parameters()], lr=0.1)
for step in range(2):
    z = enc(torch.randn(5, 4))
    opt.zero_grad()
    for head in heads:
        loss = F.mse_loss(head(z), torch.ones(5, 1))
        loss.backward()
        nn.utils.clip_grad_norm_(enc.parameters(), 1.0)
    opt.step()
""",
        "loss.backward()",
        ["-        loss.backward()", "+        loss.backward(retain_graph=True)"],
    ),
    "a part that the first optimizer owns": (
        """import torch
from torch import nn, optim
enc, critic, actor = nn.Linear(4, 8), nn.Linear(8, 1), nn.Linear(8, 2)
critic_opt = optim.SGD([*enc.parameters(), *critic.parameters()], 0.1)
actor_opt = optim.SGD(actor.parameters(), 0.1)
x = torch.randn(3, 4)
z = enc(x)
first = critic(z).square().mean()
logits = actor(z)
critic_opt.zero_grad()
first.backward()
actor_opt.zero_grad()
second = logits.square().mean()
second.backward()
critic_opt.step()
actor_opt.step()
""",
        "second.backward",
        ["-logits = actor(z)", "+logits = actor(z.detach())"],
    ),
    "clipping between": (
        """import torch
from torch import nn, optim
from torch.nn import functional as F
enc, a, b = nn.Linear(4, 8), nn.Linear(8, 1), nn.Linear(8, 2)
opt = optim.SGD([*enc.parameters(), *a.parameters(), *b.parameters()], 0.1)
x = torch.randn(3, 4)
z = enc(x).tanh()
first = a(z).sum()
first.backward()
nn.utils.clip_grad_norm_(enc.parameters(), 1.0)
second = b(z).sum()
second.backward()
""",
        "second.backward",
        ["-first.backward()", "+first.backward(retain_graph=True)"],
    ),
}


@pytest.mark.parametrize(("source", "at"), RIGHT.values(), ids=RIGHT)
def test_right_programs_stay(source: str, at: str | None, tmp_path: pathlib.Path) -> None:
    """Nothing is proposed where the fault is not."""
    assert rewritten(tmp_path, "sum_losses", source, at) == source


@pytest.mark.parametrize(("source", "at", "changes"), WRONG.values(), ids=WRONG)
def test_wrong_programs_are_mended(source: str, at: str | None, changes: list[str], tmp_path: pathlib.Path) -> None:
    """The best edit changes these lines; a second time nothing is left to do."""
    after = rewritten(tmp_path, "sum_losses", source, at)
    assert diff_lines(source, after) == changes
    still = at if at and at in after else None
    assert rewritten(tmp_path, "sum_losses", after, still) == after


TABLE = """def step(model, optimizer, losses, x, targets):
    optimizer.zero_grad()
    outputs = model(x)
    for name, loss_fn in losses.items():
        loss = loss_fn(outputs[name], targets[name])
        loss.backward()
        print(name, loss.item())
    optimizer.step()
"""


EXITS = """def step(stages, exits, optimizer, x, y):
    optimizer.zero_grad()
    for stage, exit in zip(stages, exits):
        x = stage(x)
        loss = F.cross_entropy(exit(x), y)
        loss.backward()
    optimizer.step()
"""


HELPER = """def accumulate(losses, outputs, targets):
    for name, loss_fn in losses.items():
        loss = loss_fn(outputs[name], targets[name])
        loss.backward()
"""


@pytest.mark.parametrize(
    "source", [TABLE, EXITS, HELPER], ids=["out of a table", "of parts that are handed on", "in a helper"]
)
@pytest.mark.parametrize("is_seen", [True, False])
def test_losses_that_a_trace_saw_share_a_forward(is_seen: bool, source: str, tmp_path: pathlib.Path) -> None:
    """What functions of a table compute does not show, nor whether what a round hands on is a later step's state: a trace tells."""
    facts = {SHARED: "linear"} if is_seen else {}
    after = rewritten(tmp_path, "sum_losses", source, "loss.backward()", facts=facts)
    assert changed_lines(source, after) == (
        ["total_loss = 0.0", "total_loss = total_loss + loss", "total_loss.backward()"] if is_seen else []
    )
