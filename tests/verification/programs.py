"""Training programs that tests of the verification run, and the command that runs them."""

from __future__ import annotations

import os
import pathlib
import subprocess
import sys

from explainer.fix.choice import Choice
from explainer.model.finding import Finding, Fix
from explainer.model.patch import FilePatch
from tests.conftest import PATH

CHECKPOINTED = """from functools import partial

import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint

# A reader of the source does not see which function writes in place.
ACTIVATIONS = {{"new": F.silu, "saving": partial(F.silu, inplace=True)}}


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.up, self.gate, self.down = nn.Linear(4, 4), nn.Linear(4, 4), nn.Linear(4, 4)

    def forward(self, x):
        h = torch.sigmoid(self.up(x))
        g = self.gate(h)
        h = {act}
        return F.dropout(self.down(g * h), 0.5)


torch.manual_seed(0)
block = Block()
optimizer = torch.optim.SGD(block.parameters(), lr=0.1)
for _ in range(20):
    optimizer.zero_grad()
    {call}.square().sum().backward()
    optimizer.step()
"""
REENTRANT = "checkpoint(block, torch.randn(2, 4), use_reentrant=True)"
NON_REENTRANT = REENTRANT.replace("True", "False")
PLAIN = "block(torch.randn(2, 4))"
OUT_OF_PLACE = "ACTIVATIONS['new'](h)"
IN_PLACE = "ACTIVATIONS['saving'](h)"

LOOP = """import torch
{before}
model = torch.nn.Sequential(torch.nn.Linear(3, 5), torch.nn.Tanh(), torch.nn.Linear(5, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for _ in range(20):
    optimizer.zero_grad()
    loss = {loss}
    loss.backward()
    optimizer.step()
"""
LOSS = "model(torch.randn(4, 3)).square().mean()"

CARRIED = """import torch
from torch import nn

torch.manual_seed(0)
cell, head = nn.RNNCell(4, 4), nn.Linear(4, 1)
optimizer = torch.optim.SGD([*cell.parameters(), *head.parameters()], lr=0.1)
hidden = torch.zeros(2, 4)
for _ in range(5):
    hidden = cell(torch.randn(2, 4), hidden)
    loss = head(hidden).sum()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""


def gradfix(folder: pathlib.Path, *words: str) -> subprocess.CompletedProcess[str]:
    """gradfix in a folder, as this checkout has it."""
    command = [sys.executable, "-m", "gradfix", *words]
    return subprocess.run(
        command, capture_output=True, text=True, cwd=folder, env={**os.environ, "PYTHONPATH": PATH}, timeout=300
    )


def chosen(path: pathlib.Path, text: str, after: str, cause: str, patch: str = "") -> Choice:
    """A program, written, and an edit of it that claims the same mathematics."""
    path.write_text(text)
    change = FilePatch(file=str(path), before=text.encode(), after=after.encode())
    fix = Fix(id="one", title="one", applicability="safe", kind="edit", patch=patch, changes=(change,))
    finding = Finding(cause=cause, title="", summary="", kind="failure", confidence="likely", score=1.0, fixes=(fix,))
    return Choice(finding=finding, fix=fix)
