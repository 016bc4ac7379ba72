"""A tensor that shares memory gets its own before it is written."""

from __future__ import annotations

import pathlib
from dataclasses import replace

import pytest

from explainer.model.incident import WarningRecord
from tests.fix.rewriting import best, diff_lines, failed, rewritten, write

RIGHT = {
    "cloned already": (
        """import torch
from torch import nn, optim
from torch.nn import functional as F
x = torch.zeros(1, 3).expand(4, 3).clone()
x += 1
""",
        "x += 1",
    ),
    "repeated": (
        """import torch
from torch import nn, optim
from torch.nn import functional as F
x = torch.zeros(1, 3).repeat(4, 1)
x += 1
""",
        "x += 1",
    ),
    "a function that is given its own memory": (
        "import torch\ndef shift(x):\n    x.sub_(1)\nshift(torch.zeros(1, 3).expand(4, 3).contiguous())\n",
        "x.sub_(1)",
    ),
    "another tensor": (
        """import torch
from torch import nn, optim
from torch.nn import functional as F
x = torch.zeros(1, 3).expand(4, 3)
y = x + 1
y += x
""",
        "y += x",
    ),
}
GIVEN = """import torch


class Filler(torch.nn.Module):
    def start(self, seen):
        day = self.guess(len(seen))
        day[:, : seen.size(1)] = seen
        return day
"""
WRONG = {
    "what a call gave that nobody can follow": (
        GIVEN,
        "day[:, : seen",
        ["-        day = self.guess(len(seen))", "+        day = self.guess(len(seen)).clone()"],
    ),
    "a method that writes": (
        "import torch\nwave[1:].sub_(wave[:-1], alpha=0.97)\n",
        "wave[1:]",
        ["-wave[1:].sub_(wave[:-1], alpha=0.97)", "+wave[1:].sub_(wave[:-1].clone(), alpha=0.97)"],
    ),
    "what a callable is given": (
        """import torch
class Normalise:
    def __call__(self, image):
        return image.sub_(0.5).div_(0.2)
class Scans:
    def __init__(self):
        self.normalise = Normalise()
    def __getitem__(self, index):
        image = torch.rand(1, 4, 4).expand(3, -1, -1)
        return self.normalise(image)
""",
        "image.sub_",
        [
            "-        image = torch.rand(1, 4, 4).expand(3, -1, -1)",
            "+        image = torch.rand(1, 4, 4).expand(3, -1, -1).clone()",
        ],
    ),
    "expand": (
        """import torch
from torch import nn, optim
from torch.nn import functional as F
x = torch.zeros(1, 3).expand(4, 3)
x += 1
""",
        "x += 1",
        ["-x = torch.zeros(1, 3).expand(4, 3)", "+x = torch.zeros(1, 3).expand(4, 3).clone()"],
    ),
    "expand_as, written by a chain": (
        """\"\"\"A running second moment starts as an expanded tensor and is updated in place.\"\"\"

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Linear(6, 4)
second_moment = torch.zeros(1, 6).expand_as(model.weight)
for _ in range(2):
    loss = model(torch.randn(8, 6)).pow(2).mean()
    model.zero_grad()
    loss.backward()
    second_moment.mul_(0.9).add_(0.1 * model.weight.grad**2)
    with torch.no_grad():
        model.weight -= 0.01 * model.weight.grad / (second_moment.sqrt() + 1e-8)
""",
        "second_moment.mul_",
        [
            "-second_moment = torch.zeros(1, 6).expand_as(model.weight)",
            "+second_moment = torch.zeros(1, 6).expand_as(model.weight).clone()",
        ],
    ),
    "a part of itself": (
        """import torch
from torch import nn, optim
from torch.nn import functional as F
h = torch.zeros(4, 3)
h[1:] = h[:-1]
""",
        "h[1:]",
        ["-h[1:] = h[:-1]", "+h[1:] = h[:-1].clone()"],
    ),
    "a copy_ of itself": (
        """import torch
from torch import nn, optim
from torch.nn import functional as F
h = torch.zeros(4, 3)
h[1:].copy_(h[:-1])
""",
        "h[1:]",
        ["-h[1:].copy_(h[:-1])", "+h[1:].copy_(h[:-1].clone())"],
    ),
    "an attribute": (
        """import torch
from torch import nn, optim
from torch.nn import functional as F
class N(nn.Module):
    def __init__(self):
        self.mask = torch.ones(1, 4).expand(4, 4)
    def forward(self, x):
        self.mask[0, 0] = 0
        return x * self.mask
""",
        "self.mask[0, 0] = 0",
        [
            "-        self.mask = torch.ones(1, 4).expand(4, 4)",
            "+        self.mask = torch.ones(1, 4).expand(4, 4).clone()",
        ],
    ),
}


@pytest.mark.parametrize(("source", "at"), RIGHT.values(), ids=RIGHT)
def test_right_programs_stay(source: str, at: str | None, tmp_path: pathlib.Path) -> None:
    """Nothing is proposed where the fault is not."""
    assert rewritten(tmp_path, "clone_expanded", source, at) == source


@pytest.mark.parametrize(("source", "at", "changes"), WRONG.values(), ids=WRONG)
def test_wrong_programs_are_mended(source: str, at: str | None, changes: list[str], tmp_path: pathlib.Path) -> None:
    """The best edit changes these lines; a second time nothing is left to do."""
    after = rewritten(tmp_path, "clone_expanded", source, at)
    assert diff_lines(source, after) == changes
    still = at if at and at in after else None
    assert rewritten(tmp_path, "clone_expanded", after, still) == after


CONTEXT = """import torch


def initial(v, n):
    return v.mean(-2, keepdim=True).expand(-1, n, -1)


def update(context, rows, new):
    context[:, rows] = new
    return context


def attend(v, rows, new):
    context = initial(v, 4)
    return update(context, rows, new)


loss = attend(v, rows, new).sum()
loss.backward()
"""


@pytest.mark.parametrize("line", [9, 10, None])
def test_a_write_that_a_warning_names(tmp_path: pathlib.Path, line: int | None) -> None:
    """The backward fails, far from the write; what a function returns is given memory where it is made."""
    program = write(tmp_path, {"train.py": CONTEXT})
    warned = WarningRecord(
        category="UserWarning",
        message="Use of index_put_ on expanded tensors is deprecated. Please clone() the tensor",
        file="train.py",
        line=line,
    )
    incident = replace(failed({"train.py": 19}), warnings=(warned,))
    found = best("clone_expanded", program, incident=incident)
    assert (found.culprit.line if found is not None else None) == (5 if line == 9 else None)
