"""What asks for a gradient is floating; an integer parameter that is an index becomes a buffer."""

from __future__ import annotations

import pytest

from tests.fix.rewriting import changed_lines, rewritten

HEAD = """import torch
from torch import nn
from torch.nn import functional as F
net = nn.Linear(4, 3)
x, y = torch.randn(2, 4), torch.tensor([0, 1])
"""
RIGHT = {
    "floats": (
        HEAD
        + """w = torch.tensor([1.0, 2.0], requires_grad=True)
""",
        "w =",
    ),
    "integers without a gradient": (
        HEAD
        + """idx = torch.tensor([1, 2])
""",
        "idx =",
    ),
    "a dtype that floats": (
        HEAD
        + """w = torch.tensor([1, 2], dtype=torch.float32, requires_grad=True)
""",
        "w =",
    ),
    "an integer parameter that is switched off": (
        HEAD
        + """w = nn.Parameter(torch.arange(3), requires_grad=False)
""",
        "w =",
    ),
    "zeros": (
        HEAD
        + """w = torch.zeros(3, requires_grad=True)
""",
        "w =",
    ),
}
WRONG = {
    "integer literals": (
        HEAD
        + """w = torch.tensor([1, -2], requires_grad=True)
""",
        "w =",
        ["w = torch.tensor([1.0, -2.0], requires_grad=True)"],
    ),
    "a range": (
        HEAD
        + """w = torch.arange(3, requires_grad=True)
""",
        "w =",
        ["w = torch.arange(3, requires_grad=True, dtype=torch.float32)"],
    ),
    "an integer dtype": (
        HEAD
        + """w = torch.zeros(3, dtype=torch.long, requires_grad=True)
""",
        "w =",
        ["w = torch.zeros(3, dtype=torch.float32, requires_grad=True)"],
    ),
    "a flag on integers": (
        HEAD
        + """w = torch.randint(0, 5, (3,)).requires_grad_()
""",
        "w =",
        ["w = torch.randint(0, 5, (3,), dtype=torch.float32).requires_grad_()"],
    ),
    "a scale as parameter": (
        HEAD
        + """w = nn.Parameter(torch.tensor(1))
""",
        "w =",
        ["w = nn.Parameter(torch.tensor(1.0))"],
    ),
    "a value that is handed in": (
        HEAD
        + """class Scale(nn.Module):
    def __init__(self, scale):
        super().__init__()
        self.scale = nn.Parameter(torch.tensor(scale))
""",
        "self.scale =",
        ["self.scale = nn.Parameter(torch.tensor(scale, dtype=torch.float32))"],
    ),
    "positions as parameter": (
        HEAD
        + """class Table(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.at = nn.Parameter(torch.arange(n))
        self.table = nn.Embedding(n, 4)

    def forward(self, x):
        return x + self.table(self.at[: x.shape[1]])
""",
        "self.at =",
        ['self.register_buffer("at", torch.arange(n))'],
    ),
}


@pytest.mark.parametrize(("source", "at"), RIGHT.values(), ids=RIGHT)
def test_right_programs_stay(tmp_path, source: str, at: str) -> None:
    """Floating tensors and integers without a gradient are left alone."""
    assert rewritten(tmp_path, "floating_leaf", source, at or None) == source


@pytest.mark.parametrize(("source", "at", "wanted"), WRONG.values(), ids=WRONG)
def test_faults_are_cured(tmp_path, source: str, at: str, wanted: list[str]) -> None:
    """The tensor is floating; a second time nothing is left to do."""
    after = rewritten(tmp_path, "floating_leaf", source, at or None)
    assert changed_lines(source, after) == wanted
    again = at if at and at in after else None
    assert rewritten(tmp_path, "floating_leaf", after, again) == after
