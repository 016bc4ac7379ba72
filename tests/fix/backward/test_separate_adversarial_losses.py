"""Each of two networks that train against each other is reached by its own loss, through weights that are still in place."""

from __future__ import annotations

import pathlib

import pytest

from tests.fix.rewriting import diff_lines, rewritten

RIGHT = {
    "the form of DCGAN": (
        """import torch
from torch import nn, optim
from torch.nn import functional as F
G, D = nn.Linear(3, 2), nn.Linear(2, 1)
opt_g, opt_d = optim.Adam(G.parameters()), optim.Adam(D.parameters())
real = torch.randn(4, 2)
fake = G(torch.randn(4, 3))
d_loss = D(fake.detach()).mean() - D(real).mean()
d_loss.backward()
opt_d.step()
g_loss = -D(fake).mean()
g_loss.backward()
opt_g.step()
""",
        "g_loss.backward",
    ),
    "the fake made under no_grad": (
        """import torch
from torch import nn, optim
from torch.nn import functional as F
G, D = nn.Linear(3, 2), nn.Linear(2, 1)
opt_g, opt_d = optim.Adam(G.parameters()), optim.Adam(D.parameters())
real = torch.randn(4, 2)
fake = G(torch.randn(4, 3))
with torch.no_grad():
    old = G(real)
d_loss = D(old).mean()
d_loss.backward()
opt_d.step()
g_loss = -D(G(real)).mean()
g_loss.backward()
opt_g.step()
""",
        "g_loss.backward",
    ),
    "one optimizer": (
        """import torch
from torch import nn, optim
from torch.nn import functional as F
net = nn.Linear(3, 2)
opt = optim.SGD(net.parameters(), 0.1)
z = net(torch.ones(1, 3))
a = z.sum()
a.backward()
opt.step()
b = z.mean()
b.backward()
opt.step()
""",
        "b.backward",
    ),
    "optimizers of unknown parameters": (
        """import torch
from torch import nn, optim
from torch.nn import functional as F
def step(G, D, opt_g, opt_d, x):
    fake = G(x)
    a = D(fake).mean()
    a.backward()
    opt_d.step()
    b = -D(fake).mean()
    b.backward()
    opt_g.step()
""",
        "b.backward",
    ),
    "two branches of an if": (
        """import torch
from torch import nn, optim
from torch.nn import functional as F
G, D = nn.Linear(3, 2), nn.Linear(2, 1)
opt_g, opt_d = optim.Adam(G.parameters()), optim.Adam(D.parameters())
real = torch.randn(4, 2)
fake = G(torch.randn(4, 3))
if real.sum() > 0:
    d_loss = D(fake).mean()
    d_loss.backward()
    opt_d.step()
else:
    g_loss = -D(fake).mean()
    g_loss.backward()
    opt_g.step()
""",
        "g_loss.backward",
    ),
    "a loss with a gradient of its own": (
        """import torch
from torch import nn, optim
from torch.nn import functional as F
G, D = nn.Linear(3, 2), nn.Linear(2, 1)
opt_g, opt_d = optim.Adam(G.parameters()), optim.Adam(D.parameters())
real = torch.randn(4, 2)
fake = G(torch.randn(4, 3))
d_loss = D(fake)
d_loss.backward(torch.ones_like(d_loss))
opt_d.step()
g_loss = -D(fake).mean()
g_loss.backward()
opt_g.step()
""",
        "g_loss.backward",
    ),
    "the form of DCGAN, applied by a function": (
        """import torch
from torch import nn, optim
G, D = nn.Linear(3, 2), nn.Linear(2, 1)
opt_g, opt_d = optim.Adam(G.parameters()), optim.Adam(D.parameters())
def apply(opt, loss):
    opt.zero_grad()
    loss.backward()
    opt.step()
fake = G(torch.randn(4, 3))
d_loss = D(fake.detach()).mean() - D(torch.randn(4, 2)).mean()
apply(opt_d, d_loss)
g_loss = -D(fake).mean()
apply(opt_g, g_loss)
""",
        "apply(opt_g",
    ),
    "networks that share nothing, applied by a function": (
        """import torch
from torch import nn, optim
A, B = nn.Linear(3, 2), nn.Linear(2, 1)
opt_a, opt_b = optim.Adam(A.parameters()), optim.Adam(B.parameters())
def apply(opt, loss):
    opt.zero_grad()
    loss.backward()
    opt.step()
a_loss = A(torch.randn(4, 3)).mean()
b_loss = B(torch.randn(4, 2)).mean()
apply(opt_a, a_loss)
apply(opt_b, b_loss)
""",
        "apply(opt_b",
    ),
    "a function that goes back only": (
        """import torch
from torch import nn, optim
G, D = nn.Linear(3, 2), nn.Linear(2, 1)
opt_g, opt_d = optim.Adam(G.parameters()), optim.Adam(D.parameters())
def apply(opt, loss):
    opt.zero_grad()
    loss.backward()
fake = G(torch.randn(4, 3))
d_loss = D(fake.detach()).mean()
g_loss = -D(fake).mean()
apply(opt_d, d_loss)
apply(opt_g, g_loss)
opt_d.step()
opt_g.step()
""",
        "apply(opt_g",
    ),
}
WRONG = {
    "scores shared, in a class": (
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
        [
            "-        logits_fake = self.disc(fake)",
            "+        logits_fake = self.disc(fake.detach())",
            "-        g_loss = F.softplus(-logits_fake).mean()",
            "-        d_loss.backward(retain_graph=True)",
            "+        d_loss.backward()",
            "+        g_loss = F.softplus(-self.disc(fake)).mean()",
        ],
    ),
    "helpers, networks as arguments": (
        """import torch
from torch import nn, optim
from torch.nn import functional as F

def adversarial(critic, x, label):
    scores = critic(x)
    return F.binary_cross_entropy_with_logits(scores, torch.full_like(scores, label))

def build(lr):
    g, d = nn.Linear(3, 2), nn.Linear(2, 1)
    return g, d, optim.Adam(g.parameters(), lr=lr), optim.Adam(d.parameters(), lr=lr)

def train_step(g, d, opt_g, opt_d, real):
    fake = g(torch.randn(real.size(0), 3))
    opt_d.zero_grad()
    loss_real = adversarial(d, real, 1.0)
    loss_fake = adversarial(d, fake, 0.0)
    d_loss = loss_real + loss_fake
    d_loss.backward()
    opt_d.step()
    opt_g.zero_grad()
    g_loss = adversarial(d, fake, 1.0)
    g_loss.backward()
    opt_g.step()

def main():
    torch.manual_seed(0)
    g, d = nn.Linear(3, 2), nn.Linear(2, 1)
    opt_g = optim.Adam(g.parameters()); opt_d = optim.Adam(d.parameters())
    for _ in range(3):
        train_step(g, d, opt_g, opt_d, torch.randn(4, 2))

main()
""",
        "g_loss.backward()",
        ["-    loss_fake = adversarial(d, fake, 0.0)", "+    loss_fake = adversarial(d, fake.detach(), 0.0)"],
    ),
    "the generator first": (
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
        ["-    fake_loss = bce(D(gen_imgs), false)", "+    fake_loss = bce(D(gen_imgs.detach()), false)"],
    ),
    "real and fake in one batch": (
        """import torch
from torch import nn, optim
torch.manual_seed(0)
gen, critic = nn.Linear(3, 2), nn.Sequential(nn.Linear(2, 8), nn.ReLU(), nn.Linear(8, 1))
opt_gen, opt_critic = optim.RMSprop(gen.parameters()), optim.RMSprop(critic.parameters())
for real in torch.randn(3, 4, 2):
    fake = gen(torch.randn(4, 3))
    scores = critic(torch.cat([real, fake]))
    real_scores, fake_scores = scores[:4], scores[4:]
    critic_loss = fake_scores.mean() - real_scores.mean()
    opt_critic.zero_grad()
    critic_loss.backward(retain_graph=True)
    opt_critic.step()
    gen_loss = -fake_scores.mean()
    opt_gen.zero_grad()
    gen_loss.backward()
    opt_gen.step()
""",
        "gen_loss.backward()",
        [
            "-    scores = critic(torch.cat([real, fake]))",
            "+    scores = critic(torch.cat([real, fake.detach()]))",
            "-    critic_loss.backward(retain_graph=True)",
            "+    critic_loss.backward()",
            "+    scores = critic(torch.cat([real, fake]))",
            "+    real_scores, fake_scores = scores[:4], scores[4:]",
        ],
    ),
    "an actor through two critics": (
        """import torch
from torch import nn
import torch.nn.functional as F

class Agent:
    def __init__(self):
        self.actor = nn.Sequential(nn.Linear(3, 8), nn.ReLU(), nn.Linear(8, 1), nn.Tanh())
        self.q1 = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1))
        self.q2 = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1))
        self.actor_opt = torch.optim.Adam(self.actor.parameters(), 1e-3)
        self.critic_opt = torch.optim.Adam(list(self.q1.parameters()) + list(self.q2.parameters()), 1e-3)

    def q(self, s, a):
        x = torch.cat([s, a], -1)
        return self.q1(x), self.q2(x)

    def update(self, s, a, target):
        q1, q2 = self.q(s, a)
        critic_loss = F.mse_loss(q1, target) + F.mse_loss(q2, target)
        pi = self.actor(s)
        pq1, pq2 = self.q(s, pi)
        actor_loss = -torch.min(pq1, pq2).mean()

        self.critic_opt.zero_grad()
        critic_loss.backward()
        self.critic_opt.step()

        self.actor_opt.zero_grad()
        actor_loss.backward()
        self.actor_opt.step()

torch.manual_seed(0)
agent = Agent()
for _ in range(2):
    agent.update(torch.randn(4, 3), torch.rand(4, 1), torch.randn(4, 1))
""",
        "actor_loss.backward()",
        [
            "-        pq1, pq2 = self.q(s, pi)",
            "-        actor_loss = -torch.min(pq1, pq2).mean()",
            "+        pq1, pq2 = self.q(s, pi)",
            "+        actor_loss = -torch.min(pq1, pq2).mean()",
        ],
    ),
    "an actor through two critics, applied by a function": (
        """import torch
from torch import nn
import torch.nn.functional as F

def update_params(optim, loss, network=None, clip=None):
    optim.zero_grad()
    loss.backward()
    if clip is not None:
        nn.utils.clip_grad_norm_(network.parameters(), clip)
    optim.step()

class Twin(nn.Module):
    def __init__(self):
        super().__init__()
        self.q1 = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1))
        self.q2 = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1))

    def forward(self, s, a):
        x = torch.cat([s, a], -1)
        return self.q1(x), self.q2(x)

class Agent:
    def __init__(self):
        self.policy, self.critic = nn.Linear(3, 1), Twin()
        self.policy_optim = torch.optim.Adam(self.policy.parameters(), 1e-3)
        self.q1_optim = torch.optim.Adam(self.critic.q1.parameters(), 1e-3)
        self.q2_optim = torch.optim.Adam(self.critic.q2.parameters(), 1e-3)

    def calc_critic_loss(self, s, a, target):
        q1, q2 = self.critic(s, a)
        return F.mse_loss(q1, target), F.mse_loss(q2, target)

    def calc_policy_loss(self, s):
        return -torch.min(*self.critic(s, self.policy(s))).mean()

    def learn(self, s, a, target):
        q1_loss, q2_loss = self.calc_critic_loss(s, a, target)
        policy_loss = self.calc_policy_loss(s)
        update_params(self.q1_optim, q1_loss, self.critic.q1, 1.0)
        norm = update_params(self.q2_optim, q2_loss, self.critic.q2, 1.0)
        update_params(self.policy_optim, policy_loss)
        return q1_loss.item(), norm

torch.manual_seed(0)
agent = Agent()
for _ in range(2):
    agent.learn(torch.randn(4, 3), torch.rand(4, 1), torch.randn(4, 1))
""",
        "update_params(self.policy_optim",
        ["-        policy_loss = self.calc_policy_loss(s)", "+        policy_loss = self.calc_policy_loss(s)"],
    ),
    "scores shared, applied by a method": (
        """import torch
from torch import nn
import torch.nn.functional as F

class Trainer:
    def __init__(self):
        self.gen = nn.Linear(3, 2)
        self.disc = nn.Linear(2, 1)
        self.g_opt = torch.optim.Adam(self.gen.parameters())
        self.d_opt = torch.optim.Adam(self.disc.parameters())

    def apply(self, loss, opt, keep=False):
        opt.zero_grad()
        loss.backward(retain_graph=keep)
        opt.step()

    def step(self, real):
        fake = self.gen(torch.randn(len(real), 3))
        d_loss = F.softplus(-self.disc(real)).mean() + F.softplus(self.disc(fake)).mean()
        self.apply(d_loss, self.d_opt, keep=True)
        g_loss = F.softplus(-self.disc(fake)).mean()
        self.apply(g_loss, self.g_opt)

torch.manual_seed(0)
t = Trainer()
for _ in range(2):
    t.step(torch.randn(4, 2))
""",
        "self.apply(g_loss",
        [
            "-        d_loss = F.softplus(-self.disc(real)).mean() + F.softplus(self.disc(fake)).mean()",
            "+        d_loss = F.softplus(-self.disc(real)).mean() + F.softplus(self.disc(fake.detach())).mean()",
        ],
    ),
}


@pytest.mark.parametrize(("source", "at"), RIGHT.values(), ids=RIGHT)
def test_right_programs_stay(source: str, at: str | None, tmp_path: pathlib.Path) -> None:
    """Nothing is proposed where the fault is not."""
    assert rewritten(tmp_path, "separate_adversarial_losses", source, at) == source


@pytest.mark.parametrize(("source", "at", "changes"), WRONG.values(), ids=WRONG)
def test_wrong_programs_are_mended(source: str, at: str | None, changes: list[str], tmp_path: pathlib.Path) -> None:
    """The best edit changes these lines; a second time nothing is left to do."""
    after = rewritten(tmp_path, "separate_adversarial_losses", source, at)
    assert diff_lines(source, after) == changes
    still = at if at and at in after else None
    assert rewritten(tmp_path, "separate_adversarial_losses", after, still) == after


LIGHTNING = """import lightning as L
import torch
from torch import nn
class Gan(L.LightningModule):
    def __init__(self):
        super().__init__()
        self.automatic_optimization = False
        self.g, self.d = nn.Linear(4, 8), nn.Linear(8, 1)
    def training_step(self, batch, idx):
        opt_g, opt_d = self.optimizers()
        fake = self.g(batch)
        d_loss = self.d(fake).mean()
        opt_d.zero_grad()
        self.manual_backward(d_loss)
        opt_d.step()
        g_loss = -self.d(fake).mean()
        opt_g.zero_grad()
        self.manual_backward(g_loss)
        opt_g.step()
    def configure_optimizers(self):
        opt_g = torch.optim.Adam(self.g.parameters())
        RETURN
"""


@pytest.mark.parametrize(
    "given",
    [
        "return opt_g, torch.optim.Adam(self.d.parameters())",
        "return [opt_g, torch.optim.Adam(self.d.parameters())], [schedule(opt_g)]",
    ],
)
def test_the_optimizers_of_a_lightning_module(tmp_path: pathlib.Path, given: str) -> None:
    """`self.optimizers()` are those of `configure_optimizers`, in their order."""
    source = LIGHTNING.replace("RETURN", given)
    after = rewritten(tmp_path, "separate_adversarial_losses", source, "self.manual_backward(g_loss)")
    assert diff_lines(source, after) == [
        "-        d_loss = self.d(fake).mean()", "+        d_loss = self.d(fake.detach()).mean()"
    ]  # fmt: skip


KEPT = """import torch
from torch import nn
nets = {"G": nn.Linear(3, 2), "D": nn.Linear(2, 1)}
OPTIMIZERS
fake = nets["G"](torch.randn(4, 3))
d_loss = nets["D"](fake).mean() - nets["D"](torch.ones(4, 2)).mean()
FIRST.zero_grad()
d_loss.backward()
FIRST.step()
g_loss = -nets["D"](fake).mean()
SECOND.zero_grad()
g_loss.backward()
SECOND.step()
"""
MADE = {
    "a comprehension over the networks": "opts = {k: torch.optim.Adam(net.parameters()) for k, net in nets.items()}",
    "a comprehension over the keys": "opts = {k: torch.optim.Adam(nets[k].parameters()) for k in ('G', 'D')}",
    "a loop": "opts = {}\nfor k, net in nets.items():\n    opts[k] = torch.optim.Adam(net.parameters())",
    "a display": "opts = {'G': torch.optim.Adam(nets['G'].parameters()), 'D': torch.optim.Adam(nets['D'].parameters())}",
    "keywords": "opts = dict(G=torch.optim.Adam(nets['G'].parameters()), D=torch.optim.Adam(nets['D'].parameters()))",
    "one by one": (
        "opts = {}\nopts['G'] = torch.optim.Adam(nets['G'].parameters())\n"
        "opts['D'] = torch.optim.Adam(nets['D'].parameters())"
    ),
}


@pytest.mark.parametrize("made", MADE.values(), ids=MADE)
def test_networks_and_optimizers_by_keys(tmp_path: pathlib.Path, made: str) -> None:
    """Entries of dictionaries are the networks and optimizers that names are elsewhere."""
    source = KEPT.replace("OPTIMIZERS", made).replace("FIRST", 'opts["D"]').replace("SECOND", 'opts["G"]')
    after = rewritten(tmp_path, "separate_adversarial_losses", source, "g_loss.backward")
    assert diff_lines(source, after) == [
        '-d_loss = nets["D"](fake).mean() - nets["D"](torch.ones(4, 2)).mean()',
        '+d_loss = nets["D"](fake.detach()).mean() - nets["D"](torch.ones(4, 2)).mean()',
    ]


def test_networks_and_optimizers_by_places(tmp_path: pathlib.Path) -> None:
    """Also entries of lists."""
    source = KEPT.replace('{"G": nn.Linear(3, 2), "D": nn.Linear(2, 1)}', "[nn.Linear(3, 2), nn.Linear(2, 1)]")
    source = source.replace('nets["G"]', "nets[0]").replace('nets["D"]', "nets[1]").replace("FIRST", "opts[1]")
    source = source.replace("SECOND", "opts[0]").replace(
        "OPTIMIZERS", "opts = [torch.optim.Adam(n.parameters()) for n in nets]"
    )
    after = rewritten(tmp_path, "separate_adversarial_losses", source, "g_loss.backward")
    assert "+d_loss = nets[1](fake.detach()).mean() - nets[1](torch.ones(4, 2)).mean()" in diff_lines(source, after)


def test_networks_of_an_object(tmp_path: pathlib.Path) -> None:
    """What `state.opt_d` owns is read in the class of `state`."""
    source = """import torch
from torch import nn
class State:
    def __init__(self, generator, critic):
        self.generator, self.critic = generator, critic
        self.opt_g = torch.optim.Adam(self.generator.parameters())
        self.opt_d = torch.optim.Adam(self.critic.parameters())
state = State(nn.Linear(3, 2), nn.Linear(2, 1))
fake = state.generator(torch.randn(4, 3))
d_loss = state.critic(fake).mean()
d_loss.backward()
state.opt_d.step()
g_loss = -state.critic(fake).mean()
state.opt_g.zero_grad()
g_loss.backward()
state.opt_g.step()
"""
    after = rewritten(tmp_path, "separate_adversarial_losses", source, "g_loss.backward")
    assert diff_lines(source, after) == [
        "-d_loss = state.critic(fake).mean()", "+d_loss = state.critic(fake.detach()).mean()"
    ]  # fmt: skip
