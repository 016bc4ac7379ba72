"""A binary cross-entropy that is written out becomes torch's, with the same value and gradient where both are finite."""

from __future__ import annotations

import pathlib

import pytest

from tests.fix.rewriting import diff_lines, rewritten

TOP = "import torch\nimport torch.nn.functional as F\nnet = torch.nn.Linear(3, 1)\n"
BODY = "def loss(x, y):\n    p = net(x)\n    return {}\n"
TAKEN = 'F.binary_cross_entropy(p, y, reduction="none")'
WRONG = {
    "-(y * torch.log(p) + (1 - y) * torch.log(1 - p)).mean()": f"{TAKEN}.mean()",
    "(-(y * p.log() + (1 - y) * (1 - p).log())).sum()": f"({TAKEN}).sum()",
    "torch.mean(-y * torch.log(p) - (1 - y) * torch.log(1 - p))": f"torch.mean({TAKEN})",
    "-torch.mean(torch.log(1 - p) * (1 - y) + torch.log(p) * y)": f"torch.mean({TAKEN})",
    "-((1.0 - y) * torch.log1p(-p) + y * p.log()).mean(0)": f"{TAKEN}.mean(0)",
    "(y * p.log() + (1 - y) * (1 - p).log()).mean() * -1": f"-{TAKEN}.mean() * -1",
}
RIGHT = (
    "-(y * torch.log(p + 1e-8) + (1 - y) * torch.log(1 - p + 1e-8)).mean()",
    "-(w * torch.log(p) + (1 - y) * torch.log(1 - p)).mean()",
    "(y * torch.log(p) - (1 - y) * torch.log(1 - p)).mean()",
    "-(y * torch.log(p) + (1 - y) * torch.log(1 - q)).mean()",
)


@pytest.mark.parametrize(("written", "after"), WRONG.items())
def test_it_is_torch_s(written: str, after: str, tmp_path: pathlib.Path) -> None:
    """A second time nothing is left to do."""
    source = TOP + BODY.format(written)
    found = rewritten(tmp_path, "cross_entropy_by_hand", source, "return")
    assert diff_lines(source, found) == [f"-    return {written}", f"+    return {after}"]
    assert rewritten(tmp_path, "cross_entropy_by_hand", found, "return") == found


@pytest.mark.parametrize("written", RIGHT)
def test_other_sums_stay(written: str, tmp_path: pathlib.Path) -> None:
    """What has its own floor, weights, sign or second probability."""
    source = TOP + BODY.format(written)
    assert rewritten(tmp_path, "cross_entropy_by_hand", source, "return") == source


@pytest.mark.torch
@pytest.mark.parametrize(("written", "after"), WRONG.items())
def test_the_same_value_and_gradient(written: str, after: str) -> None:
    """Where both are finite."""
    torch = pytest.importorskip("torch")
    torch.manual_seed(0)
    logits, y = torch.randn(8, requires_grad=True), torch.rand(8)
    space = {"torch": torch, "F": torch.nn.functional, "y": y}
    found = []
    for text in (written, after):
        value = eval(text, {**space, "p": torch.sigmoid(logits)})  # noqa: S307
        found.append((value.detach(), torch.autograd.grad(value.sum(), logits)[0]))
    torch.testing.assert_close(found[0], found[1])
