"""What unscales gradients after every batch moves to right before the scaler's step."""

from __future__ import annotations

import pathlib

import pytest

from tests.fix.rewriting import diff_lines, rewritten

SAID = "unscale_() has already been called on this optimizer since the last update()."
HEAD = """import torch
from torch import nn
torch.manual_seed(0)
net = nn.Linear(4, 1)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)
data = torch.randn(4, 8, 4)
"""
CLASS = """import torch
from torch import nn
class Amp:
    def __init__(self, net, opt, norm=None):
        self.net, self.opt, self.norm, self.count = net, opt, norm, 0
        self.scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)
"""
USE = """torch.manual_seed(0)
net = nn.Linear(4, 1)
amp = Amp(net, torch.optim.SGD(net.parameters(), lr=0.1), norm=1.0)
for i, x in enumerate(torch.randn(4, 8, 4)):
    amp.backward(net(x).pow(2).mean())
    amp.update()
"""
RIGHT = {
    "once at the step": HEAD + """for i, x in enumerate(data):
    scaler.scale(net(x).pow(2).mean()).backward()
    if i % 2:
        scaler.unscale_(opt)
        nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        scaler.step(opt)
        scaler.update()
        opt.zero_grad()
""",
    "a step with every batch": HEAD + """for i, x in enumerate(data):
    scaler.scale(net(x).pow(2).mean()).backward()
    scaler.unscale_(opt)
    nn.utils.clip_grad_norm_(net.parameters(), 1.0)
    scaler.step(opt)
    scaler.update()
""",
    "no update at all": HEAD + """for i, x in enumerate(data):
    scaler.scale(net(x).pow(2).mean()).backward()
    scaler.unscale_(opt)
    if i % 2:
        scaler.step(opt)
""",
    "a norm that every batch reads": HEAD + """for i, x in enumerate(data):
    scaler.scale(net(x).pow(2).mean()).backward()
    scaler.unscale_(opt)
    norm = nn.utils.clip_grad_norm_(net.parameters(), 1.0)
    if i % 2:
        scaler.step(opt)
        scaler.update()
    print(norm)
""",
    "a norm that every micro batch reads": HEAD + """for pair in data.split(2):
    for x in pair:
        scaler.scale(net(x).pow(2).mean()).backward()
        scaler.unscale_(opt)
        norm = nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        print(norm)
    scaler.step(opt)
    scaler.update()
""",
    "a loop that looks at gradients": HEAD + """for pair in data.split(2):
    for x in pair:
        scaler.scale(net(x).pow(2).mean()).backward()
        scaler.unscale_(opt)
        print(sum(p.grad.norm() for p in net.parameters()))
    scaler.step(opt)
    scaler.update()
""",
    "two optimizers, each unscaled elsewhere": HEAD + """other = torch.optim.SGD(net.parameters(), lr=0.1)
for i, x in enumerate(data):
    scaler.scale(net(x).pow(2).mean()).backward()
    scaler.unscale_(other)
    if i % 2:
        scaler.step(opt)
        scaler.update()
""",
    "a helper whose names the update has not": HEAD + """def backward(loss, optimizer, limit):
    scaler.scale(loss).backward()
    scaler.unscale_(optimizer)
    nn.utils.clip_grad_norm_(net.parameters(), limit)
def update(optimizer):
    scaler.step(optimizer)
    scaler.update()
for i, x in enumerate(data):
    backward(net(x).pow(2).mean(), opt, 1.0)
    if i % 2:
        update(opt)
""",
}  # fmt: skip
WRONG = {
    "two methods": (
        CLASS + """    def backward(self, loss):
        self.scaler.scale(loss / 2).backward()
        if self.norm is not None:
            self.scaler.unscale_(self.opt)
            nn.utils.clip_grad_norm_(self.net.parameters(), self.norm)
        self.count += 1
    def update(self):
        if self.count % 2:
            return
        self.scaler.step(self.opt)
        self.scaler.update()
        self.opt.zero_grad()
""" + USE,
        ["-        if self.norm is not None:", "-            self.scaler.unscale_(self.opt)",
         "-            nn.utils.clip_grad_norm_(self.net.parameters(), self.norm)", "+        if self.norm is not None:",
         "+            self.scaler.unscale_(self.opt)", "+            nn.utils.clip_grad_norm_(self.net.parameters(), self.norm)"],
    ),
    "a method of its own": (
        CLASS + """    def clip(self):
        self.scaler.unscale_(self.opt)
        nn.utils.clip_grad_norm_(self.net.parameters(), self.norm)
    def backward(self, loss):
        self.scaler.scale(loss / 2).backward()
        self.clip()
        self.count += 1
    def update(self):
        if not self.count % 2:
            self.scaler.step(self.opt)
            self.scaler.update()
            self.opt.zero_grad()
""" + USE,
        ["-        self.clip()", "+            self.clip()"],
    ),
    "a loop that steps itself, the clipping apart": (
        HEAD + """total = 0.0
for i, x in enumerate(data):
    loss = net(x).pow(2).mean() / 2
    scaler.scale(loss).backward()
    scaler.unscale_(opt)
    total += loss.item()
    nn.utils.clip_grad_norm_(net.parameters(), 1.0)
    if i % 2:
        scaler.step(opt)
        scaler.update()
        opt.zero_grad()
""",
        ["-    scaler.unscale_(opt)", "-    nn.utils.clip_grad_norm_(net.parameters(), 1.0)", "+        scaler.unscale_(opt)",
         "+        nn.utils.clip_grad_norm_(net.parameters(), 1.0)"],
    ),
    "a loop over the micro batches of a step": (
        HEAD + """for pair in data.split(2):
    total = 0.0
    for x in pair:
        loss = net(x).pow(2).mean() / 2
        scaler.scale(loss).backward()
        total += loss.item()
        scaler.unscale_(opt)
        norm = nn.utils.clip_grad_norm_(net.parameters(), 1.0)
    print(total)
    scaler.step(opt)
    scaler.update()
    opt.zero_grad()
    print(norm)
""",
        ["-        scaler.unscale_(opt)", "-        norm = nn.utils.clip_grad_norm_(net.parameters(), 1.0)",
         "+    scaler.unscale_(opt)", "+    norm = nn.utils.clip_grad_norm_(net.parameters(), 1.0)"],
    ),
    "a loop that goes on before the step": (
        HEAD + """for i, x in enumerate(data):
    scaler.scale(net(x).pow(2).mean() / 2).backward()
    scaler.unscale_(opt)
    if not i % 2:
        continue
    nn.utils.clip_grad_norm_(net.parameters(), 1.0)
    scaler.step(opt)
    scaler.update()
    opt.zero_grad()
""",
        ["-    scaler.unscale_(opt)", "+    scaler.unscale_(opt)"],
    ),
    "a helper that the loop calls": (
        HEAD + """def send_back(loss, grads, optimizer, module):
    grads.scale(loss).backward()
    grads.unscale_(optimizer)
    nn.utils.clip_grad_norm_(module.parameters(), 1.0)
for i, x in enumerate(data):
    send_back(net(x).pow(2).mean() / 2, scaler, opt, net)
    if i % 2:
        scaler.step(opt)
        scaler.update()
        opt.zero_grad()
""",
        ["-    grads.unscale_(optimizer)", "-    nn.utils.clip_grad_norm_(module.parameters(), 1.0)",
         "+        scaler.unscale_(opt)", "+        nn.utils.clip_grad_norm_(net.parameters(), 1.0)"],
    ),
    "a helper that gives back the norm": (
        CLASS
        + """    def backward(self, loss):
        self.scaler.scale(loss).backward()
    def clip(self):
        self.scaler.unscale_(self.opt)
        return self.norm(p for group in self.opt.param_groups for p in group["params"])
    def step(self):
        self.scaler.step(self.opt)
        self.scaler.update()
        self.opt.zero_grad()
torch.manual_seed(0)
net = nn.Linear(4, 1)
norms = []
amp = Amp(net, torch.optim.SGD(net.parameters(), lr=0.1), norm=lambda ps: nn.utils.clip_grad_norm_(list(ps), 1.0))
for i, x in enumerate(torch.randn(4, 8, 4)):
    amp.backward(net(x).pow(2).mean())
    norm = amp.clip()
    norms.append(norm)
    if i % 2:
        amp.step()
""",
        ["-    norm = amp.clip()", "-    norms.append(norm)", "+        norm = amp.clip()", "+        norms.append(norm)"],
    ),
    "two helpers with the same arguments": (
        HEAD + """def send_back(loss, grads, optimizer, module):
    grads.scale(loss).backward()
    grads.unscale_(optimizer)
    nn.utils.clip_grad_norm_(module.parameters(), 1.0)
def advance(o, s, m):
    s.step(o)
    s.update()
    m.zero_grad()
for i, x in enumerate(data):
    send_back(net(x).pow(2).mean() / 2, scaler, opt, net)
    if i % 2:
        advance(opt, scaler, net)
""",
        ["-    grads.unscale_(optimizer)", "-    nn.utils.clip_grad_norm_(module.parameters(), 1.0)",
         "+    s.unscale_(o)", "+    nn.utils.clip_grad_norm_(m.parameters(), 1.0)"],
    ),
    "a method that gives the norm, before the step is left out": (
        CLASS + """    def clip(self):
        self.scaler.unscale_(self.opt)
        return float(nn.utils.clip_grad_norm_(self.net.parameters(), self.norm))
    def backward(self, loss):
        self.count += 1
        self.scaler.scale(loss).backward()
        self.last = self.clip()
        if self.count % 2:
            return False
        self.scaler.step(self.opt)
        self.scaler.update()
        self.opt.zero_grad()
        return True
""" + USE,
        ["-        self.last = self.clip()", "+        self.last = self.clip()"],
    ),
    "a loop that calls what steps": (
        CLASS + """    def update(self):
        self.scaler.step(self.opt)
        self.scaler.update()
        self.opt.zero_grad()
    def epoch(self, data):
        for i, x in enumerate(data):
            self.scaler.scale(self.net(x).pow(2).mean()).backward()
            if self.norm is not None:
                self.scaler.unscale_(self.opt)
                nn.utils.clip_grad_norm_(self.net.parameters(), self.norm)
            if i % 2:
                self.update()
""",
        ["-            if self.norm is not None:", "-                self.scaler.unscale_(self.opt)",
         "-                nn.utils.clip_grad_norm_(self.net.parameters(), self.norm)",
         "+                if self.norm is not None:", "+                    self.scaler.unscale_(self.opt)",
         "+                    nn.utils.clip_grad_norm_(self.net.parameters(), self.norm)"],
    ),
}  # fmt: skip


@pytest.mark.parametrize("source", RIGHT.values(), ids=RIGHT)
def test_right_programs_stay(source: str, tmp_path: pathlib.Path) -> None:
    """Nothing moves where the order is right, where something else is wrong, or where a name would be lost."""
    assert rewritten(tmp_path, "unscale_at_step", source, "unscale_", message=SAID) == source


@pytest.mark.parametrize(("source", "changes"), WRONG.values(), ids=WRONG)
def test_wrong_programs_are_mended(source: str, changes: list[str], tmp_path: pathlib.Path) -> None:
    """The unscaling and its clipping stand right before the step; a second time nothing is left to do."""
    after = rewritten(tmp_path, "unscale_at_step", source, "unscale_", message=SAID)
    assert diff_lines(source, after) == changes
    assert rewritten(tmp_path, "unscale_at_step", after, "unscale_", message=SAID) == after


def test_what_looks_at_gradients_before_the_step_stays_behind(tmp_path: pathlib.Path) -> None:
    """It saw them unscaled, and still does: what moves, moves no further than it must."""
    source = (
        HEAD
        + """for i, x in enumerate(data):
    scaler.scale(net(x).pow(2).mean() / 2).backward()
    scaler.unscale_(opt)
    if not i % 2:
        continue
    print(net.weight.grad.norm())
    scaler.step(opt)
    scaler.update()
"""
    )
    after = rewritten(tmp_path, "unscale_at_step", source, "unscale_", message=SAID)
    assert after.index("continue") < after.index("unscale_") < after.index("print(net")


def test_another_message_moves_nothing(tmp_path: pathlib.Path) -> None:
    """Only the message says that gradients were unscaled twice."""
    source = WRONG["two methods"][0]
    assert (
        rewritten(tmp_path, "unscale_at_step", source, "unscale_", message="unscale_() is being called after step().")
        == source
    )


def test_it_comes_before_what_reads_the_gradients(tmp_path: pathlib.Path) -> None:
    """What the step's block did behind the clipping it still does behind it."""
    source, _ = WRONG["a helper that gives back the norm"]
    source = source.replace("    norms.append(norm)\n", "").replace(
        "        amp.step()", "        log(net)\n        amp.step()"
    )
    after = rewritten(tmp_path, "unscale_at_step", source, "unscale_", message=SAID)
    assert after.endswith("    if i % 2:\n        norm = amp.clip()\n        log(net)\n        amp.step()\n")
