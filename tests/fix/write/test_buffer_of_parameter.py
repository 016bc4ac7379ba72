"""A parameter that the program moves by a rule of its own becomes a buffer, where an optimizer would move it too."""

from __future__ import annotations

import pathlib

import pytest

from tests.fix.rewriting import best, diff_lines, failed, line_of, rewritten, write

CONSTRAINED = """import torch
from torch import nn

class Scorer(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Linear(4, 1)
        self.lam = nn.Parameter(torch.tensor(0.5))

    def forward(self, x, y):
        violation = self.net(x).mean().abs()
        self.violation = violation.item()
        return (self.net(x) - y).square().mean() + self.lam * violation

    def climb(self):
        self.lam += 0.2 * self.violation
        self.lam.clamp_(0, 10)

model = Scorer()
optimizer = torch.optim.Adam(model.parameters())
for x, y in loader:
    loss = model(x, y)
    loss.backward()
    optimizer.step()
    model.climb()
"""
FORMS = {
    "+=": CONSTRAINED,
    "sub_": CONSTRAINED.replace("self.lam += 0.2 * self.violation", "self.lam.sub_(-0.2 * self.violation)"),
}
OTHERS = {
    "of the rest alone": CONSTRAINED.replace("model.parameters()", "model.net.parameters()"),
    "left out by its name": CONSTRAINED.replace(
        "model.parameters()", '[p for n, p in model.named_parameters() if n != "lam"]'
    ),
    "by its gradient": CONSTRAINED.replace("0.2 * self.violation", "0.2 * self.lam.grad"),
    "a projection": CONSTRAINED.replace("self.lam += 0.2 * self.violation", "self.lam.mul_(0.9)"),
    "in the forward": CONSTRAINED.replace("def forward", "def score").replace("def climb(self)", "def forward(self)"),
}


@pytest.mark.parametrize("source", FORMS.values(), ids=FORMS)
def test_two_that_move_it(source: str, tmp_path: pathlib.Path) -> None:
    """The rule alone is left; `no_grad` round it is shown, and not tried."""
    line = next(one for one in source.split("\n") if "0.2 * self.violation" in one).strip()
    after = rewritten(tmp_path, "buffer_of_parameter", source, line)
    wanted = '+        self.register_buffer("lam", torch.tensor(0.5))'
    assert diff_lines(source, after) == ["-        self.lam = nn.Parameter(torch.tensor(0.5))", wanted]
    frames = {"train.py": line_of(source, line)}
    shown = best("write_under_no_grad", write(tmp_path, {"train.py": source}), incident=failed(frames))
    assert shown is not None
    assert shown.applicability == "display"


@pytest.mark.parametrize("source", OTHERS.values(), ids=OTHERS)
def test_others_stay(source: str, tmp_path: pathlib.Path) -> None:
    """One that no optimizer moves, that an optimizer of the program's own does, or that is put back into its bounds."""
    line = next(one for one in source.split("\n") if one.strip().startswith("self.lam") and "nn." not in one).strip()
    assert rewritten(tmp_path, "buffer_of_parameter", source, line) == source
