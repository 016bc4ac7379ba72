"""A method that takes the place of one that reduces a loss reduces it the same way; a loss that a helper gets becomes one number."""

from __future__ import annotations

import pytest

from tests.fix.rewriting import diff_lines, rewritten

MIXED = """import torch
class Loss:
    def __init__(self, reduction="mean"):
        self.reduction = {{"mean": torch.mean, "sum": torch.sum}}[reduction]
    def each(self, pred, target):
        return (pred - target).square()
    def __call__(self, pred, target):
        return {whole}
class Weighted{of}:
    def __call__(self, pred, target):
        weight = target / target.mean()
        return {left}
{made}
net = torch.nn.Linear(3, 1)
def apply(optimizer, loss):
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
apply(torch.optim.SGD(net.parameters(), 0.1), Both()(net(torch.ones(2, 3)), torch.ones(2, 1)))
"""
EACH, BOTH = "weight * self.each(pred, target)", "class Both(Weighted, Loss):\n    pass"
LEFT_OUT = {
    "by its own attribute": ("self.reduction(self.each(pred, target))", "", EACH, BOTH, f"self.reduction({EACH})"),
    "by a method": ("self.each(pred, target).mean()", "", EACH, BOTH, f"({EACH}).mean()"),
    "by torch": ("torch.sum(self.each(pred, target))", "", EACH, BOTH, f"({EACH}).sum()"),
    "in a subclass": ("self.each(pred, target).mean()", "(Loss)", EACH, "Both = Weighted", f"({EACH}).mean()"),
}
STAYS = {
    "it reduces by itself": ("self.each(pred, target).mean()", "", f"torch.mean({EACH})", BOTH),
    "the other one does not": ("self.each(pred, target) * 1.0", "", EACH, BOTH),
    "they are not of one object": ("self.each(pred, target).mean()", "", EACH, "Both = Weighted"),
    "the base stands behind it": ("self.each(pred, target).mean()", "", EACH, BOTH.replace("Weighted, Loss", "Loss, Weighted")),
}  # fmt: skip


@pytest.mark.parametrize(("whole", "of", "left", "made", "wanted"), LEFT_OUT.values(), ids=LEFT_OUT)
def test_what_the_base_reduces(tmp_path, whole: str, of: str, left: str, made: str, wanted: str) -> None:
    source = MIXED.format(whole=whole, of=of, left=left, made=made)
    after = rewritten(tmp_path, "reduce_loss", source, "loss.backward")
    assert diff_lines(source, after) == [f"-        return {left}", f"+        return {wanted}"]


@pytest.mark.parametrize(("whole", "of", "left", "made"), STAYS.values(), ids=STAYS)
def test_methods_that_stay(tmp_path, whole: str, of: str, left: str, made: str) -> None:
    """The loss is reduced where it is sent back, then; no method is changed."""
    source = MIXED.format(whole=whole, of=of, left=left, made=made)
    after = rewritten(tmp_path, "reduce_loss", source, "loss.backward")
    assert diff_lines(source, after) == ["-    loss.backward()", "+    loss.mean().backward()"]


HELPED = """import torch
net = torch.nn.Linear(3, 1)
def apply(optimizer, loss):
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    {after}
"""


@pytest.mark.parametrize(
    ("after", "wanted"),
    [
        ("return loss.detach()", ["+    loss = loss.mean()"]),
        ("print(f'{loss.item():.3f}')", ["+    loss = loss.mean()"]),
        ("return loss[0].item()", ["-    loss.backward()", "+    loss.mean().backward()"]),
        ("return None", ["-    loss.backward()", "+    loss.mean().backward()"]),
    ],
)
def test_a_loss_that_a_helper_is_given(tmp_path, after: str, wanted: list[str]) -> None:
    """Who gets it back takes it for the one number that it has become, unless items of it are read."""
    source = HELPED.format(after=after)
    assert diff_lines(source, rewritten(tmp_path, "reduce_loss", source, "loss.backward")) == wanted


@pytest.mark.parametrize(
    ("use", "wanted"),
    [
        ("total = 0.0 + lost * 2", ["+    loss = loss.mean()"]),
        ("replay.update(lost)", ["-    loss.backward()", "+    loss.mean().backward()"]),
        ("worst = lost.topk(2)", ["-    loss.backward()", "+    loss.mean().backward()"]),
    ],
)
def test_what_becomes_of_a_loss_that_is_given_back(tmp_path, use: str, wanted: list[str]) -> None:
    """A replay memory asks for one error a sample."""
    source = HELPED.format(after="return loss.detach()") + f"lost = apply(None, net(torch.ones(2, 3)))\n{use}\n"
    assert diff_lines(source, rewritten(tmp_path, "reduce_loss", source, "loss.backward")) == wanted
