"""A straight-through estimator detaches the difference, not the whole."""

from __future__ import annotations

import pathlib
from dataclasses import replace

import pytest

from explainer.fix.splice import splice
from explainer.model.trace import STARVING_CUT, TracedLine
from tests.fix.rewriting import best, changed_lines, failed, line_of, write

CASES = {
    "soft and the difference": ("return (h + (hard - h)).detach()", "return h + (hard - h).detach()"),
    "the difference first": ("return (hard - h + h).detach()", "return h + (hard - h).detach()"),
    "within a call": ("return self.head((h + hard - h).detach())", "return self.head(h + (hard - h).detach())"),
    "an attribute": ("code = (self.q - z + z).detach()", "code = z + (self.q - z).detach()"),
    "the difference alone": ("return h + (hard - h).detach()", None),
    "nothing cancels": ("return (h + (hard - g)).detach()", None),
    "the wrong sign": ("return (h - (hard + h)).detach()", None),
    "a sum": ("return (h + hard).detach()", None),
    "added twice": ("return (h + (h - hard)).detach()", None),
}


@pytest.mark.parametrize(("line", "wanted"), CASES.values(), ids=CASES)
def test_the_difference_is_detached(tmp_path: pathlib.Path, line: str, wanted: str | None) -> None:
    """One tensor is added and taken away: its gradient is what the sum is written for."""
    source = f"class Net:\n    def encode(self, h, hard, z):\n        {line}\n"
    program = write(tmp_path, {"train.py": source})
    traced = TracedLine(
        kind=STARVING_CUT, operation="detach", file="train.py", line=line_of(source, line), is_guess=True
    )
    proposal = best("detach_the_difference", program, incident=replace(failed(), traced=(traced,)))
    if wanted is None:
        assert proposal is None
        return
    assert proposal is not None
    after = splice(source, proposal.edits)
    assert after is not None
    assert changed_lines(source, after) == [wanted]


@pytest.mark.torch
def test_values_and_gradients() -> None:
    """The value is that of the hard one either way; the gradient passes only where the difference is detached."""
    torch = pytest.importorskip("torch")
    h = torch.tensor([0.3, -0.2], requires_grad=True)
    hard = torch.where(h > 0, 1.0, -1.0)
    whole, through = (h + (hard - h)).detach(), h + (hard - h).detach()
    assert torch.equal(whole, through)
    assert not whole.requires_grad
    assert torch.equal(torch.autograd.grad(through.sum(), h)[0], torch.ones(2))
