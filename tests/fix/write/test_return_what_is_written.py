"""A helper that writes its argument returns a new tensor, and its callers take it."""

from __future__ import annotations

import pathlib

import pytest

from tests.fix.rewriting import diff_lines, rewritten

RIGHT = {
    "returned already": (
        """import torch
from torch import nn, optim
from torch.nn import functional as F
def clip(t, limit=1.0):
    return t.clamp(max=limit)
class N(nn.Module):
    def forward(self, x):
        h = torch.exp(self.a(x))
        h = clip(h)
        return self.b(h)
""",
        None,
    ),
    "called inside an expression": (
        """import torch
from torch import nn, optim
from torch.nn import functional as F
def clip(t, limit=1.0):
    t.clamp_(max=limit)
class N(nn.Module):
    def forward(self, x):
        h = torch.exp(self.a(x))
        self.log(clip(h))
        return self.b(h)
""",
        None,
    ),
    "given an element": (
        """import torch
from torch import nn, optim
from torch.nn import functional as F
def clip(t, limit=1.0):
    t.clamp_(max=limit)
class N(nn.Module):
    def forward(self, x):
        h = torch.exp(self.a(x))
        clip(h[0])
        return self.b(h)
""",
        None,
    ),
    "nobody calls it": (
        """import torch
from torch import nn, optim
from torch.nn import functional as F
def clip(t, limit=1.0):
    t.clamp_(max=limit)
class N(nn.Module):
    def forward(self, x):
        h = torch.exp(self.a(x))
        pass
        return self.b(h)
""",
        None,
    ),
    "under no_grad": (
        """import torch
from torch import nn, optim
from torch.nn import functional as F
def clip(t, limit=1.0):
    with torch.no_grad():
        t.clamp_(max=limit)
class N(nn.Module):
    def forward(self, x):
        h = torch.exp(self.a(x))
        clip(h)
        return self.b(h)
""",
        None,
    ),
    "given an element of a list by a loop": (
        """import torch
def clip(t):
    t.clamp_(max=1.0)
def forward(net, x):
    features = [torch.exp(one(x)) for one in net]
    for h in features:
        clip(h)
    return sum(features)
""",
        None,
    ),
    "two functions of the name": (
        """import torch
class A:
    def clip(self, t):
        t.clamp_(max=1.0)
class B:
    def clip(self, t):
        print(t)
    def forward(self, x):
        h = torch.exp(x)
        self.clip(h)
        return h
""",
        None,
    ),
    "given what belongs to the caller's caller": (
        """import torch
def clip(t):
    t.clamp_(max=1.0)
def both(a, b):
    clip(a)
    print(b)
""",
        None,
    ),
}
WRONG = {
    "a method of the class": (
        """import torch
class N(torch.nn.Module):
    def squash(self, h):
        h.clamp_(-1, 1)
    def forward(self, x):
        h = torch.tanh(x)
        self.squash(h)
        return self.head(h)
""",
        None,
        [
            "-        h.clamp_(-1, 1)",
            "+        h = h.clamp(-1, 1)",
            "+        return h",
            "-        self.squash(h)",
            "+        h = self.squash(h)",
        ],
    ),
    "a method": (
        """import torch
from torch import nn, optim
from torch.nn import functional as F
def clip(t, limit=1.0):
    t.clamp_(max=limit)
class N(nn.Module):
    def forward(self, x):
        h = torch.exp(self.a(x))
        clip(h)
        return self.b(h)
""",
        None,
        [
            "-    t.clamp_(max=limit)",
            "+    t = t.clamp(max=limit)",
            "+    return t",
            "-        clip(h)",
            "+        h = clip(h)",
        ],
    ),
    "an augmented assignment": (
        """import torch
from torch import nn, optim
from torch.nn import functional as F
def clip(t, limit=1.0):
    t *= limit
class N(nn.Module):
    def forward(self, x):
        h = torch.exp(self.a(x))
        clip(h, 0.5)
        return self.b(h)
""",
        None,
        [
            "-    t *= limit",
            "+    t = t * limit",
            "+    return t",
            "-        clip(h, 0.5)",
            "+        h = clip(h, 0.5)",
        ],
    ),
    "a part": (
        """import torch
from torch import nn, optim
from torch.nn import functional as F
def clip(t, limit=1.0):
    t[:, 0] = limit
class N(nn.Module):
    def forward(self, x):
        h = torch.exp(self.a(x))
        clip(h)
        return self.b(h)
""",
        None,
        ["+    t = t.clone()", "+    return t", "-        clip(h)", "+        h = clip(h)"],
    ),
    "a keyword": (
        """import torch
from torch import nn, optim
from torch.nn import functional as F
def clip(t, limit=1.0):
    t -= limit + 1
class N(nn.Module):
    def forward(self, x):
        h = torch.exp(self.a(x))
        clip(t=h)
        return self.b(h)
""",
        None,
        [
            "-    t -= limit + 1",
            "+    t = t - (limit + 1)",
            "+    return t",
            "-        clip(t=h)",
            "+        h = clip(t=h)",
        ],
    ),
}


@pytest.mark.parametrize(("source", "at"), RIGHT.values(), ids=RIGHT)
def test_right_programs_stay(source: str, at: str | None, tmp_path: pathlib.Path) -> None:
    """Nothing is proposed where the fault is not."""
    assert rewritten(tmp_path, "return_what_is_written", source, at) == source


@pytest.mark.parametrize(("source", "at", "changes"), WRONG.values(), ids=WRONG)
def test_wrong_programs_are_mended(source: str, at: str | None, changes: list[str], tmp_path: pathlib.Path) -> None:
    """The best edit changes these lines; a second time nothing is left to do."""
    after = rewritten(tmp_path, "return_what_is_written", source, at)
    assert diff_lines(source, after) == changes
    still = at if at and at in after else None
    assert rewritten(tmp_path, "return_what_is_written", after, still) == after
