"""A class loss is averaged over the labels that count; any other mean stays as it is."""

from __future__ import annotations

import pathlib

import pytest

from tests.fix.rewriting import changed_lines, rewritten

HEAD = "import torch\nimport torch.nn.functional as F\nfrom torch import nn\n\n"
WRONG = {
    "a function": (
        "def loss_of(logits, labels):\n    return F.cross_entropy(logits.flatten(0, 1), labels.flatten(), ignore_index=-1)\n",
        ['return F.cross_entropy(logits.flatten(0, 1), labels.flatten(), ignore_index=-1, reduction="sum") / (labels.flatten() != -1).sum().clamp(min=1)'],
    ),
    "the default mark": (
        "labels = torch.full((4,), -100)\nloss = 0.5 * F.nll_loss(torch.randn(4, 3), labels)\n",
        ['loss = 0.5 * (F.nll_loss(torch.randn(4, 3), labels, reduction="sum") / (labels != -100).sum().clamp(min=1))'],
    ),
    "a module": (
        "criterion = nn.CrossEntropyLoss(ignore_index=0)\nloss = criterion(torch.randn(4, 3), torch.zeros(4, dtype=torch.long))\n",
        [
            'criterion = nn.CrossEntropyLoss(ignore_index=0, reduction="sum")',
            "loss = criterion(torch.randn(4, 3), torch.zeros(4, dtype=torch.long)) / (torch.zeros(4, dtype=torch.long) != 0).sum().clamp(min=1)",
        ],
    ),
}  # fmt: skip
RIGHT = {
    "nothing is ignored": "loss = F.cross_entropy(torch.randn(4, 3), torch.tensor([0, 1, 2, 0]))\n",
    "a slice": "loss = F.cross_entropy(x[-100:], y[-100:])\n",
    "a sum already": 'loss = F.cross_entropy(x, y, ignore_index=-1, reduction="sum") / (y != -1).sum()\n',
    "classes of different weight": "loss = F.cross_entropy(x, y, weight=w, ignore_index=-1)\n",
    "one module for two losses": "c = nn.CrossEntropyLoss(ignore_index=0)\na = c(x, y)\nb = c(u, v)\n",
    "another loss": "labels = -100\nloss = F.mse_loss(x, y)\n",
}


@pytest.mark.parametrize(("body", "wanted"), WRONG.values(), ids=WRONG)
def test_averaged_over_what_counts(body: str, wanted: list[str], tmp_path: pathlib.Path) -> None:
    """A sum over the number of labels that count; a second time nothing is left to do."""
    after = rewritten(tmp_path, "mean_over_labels", HEAD + body)
    assert changed_lines(HEAD + body, after) == wanted
    assert rewritten(tmp_path, "mean_over_labels", after) == after


@pytest.mark.parametrize("body", RIGHT.values(), ids=RIGHT)
def test_left_alone(body: str, tmp_path: pathlib.Path) -> None:
    """What ignores nothing, or takes another mean."""
    assert rewritten(tmp_path, "mean_over_labels", HEAD + body) == HEAD + body


@pytest.mark.torch
def test_the_same_mean() -> None:
    """Value and gradient are those of the mean; of no label they are 0 where they were NaN."""
    torch = pytest.importorskip("torch")
    functional = torch.nn.functional
    scores = torch.randn(6, 3, generator=torch.Generator().manual_seed(0), requires_grad=True)
    for labels, smooth in ((torch.tensor([0, -1, 2, 1, -1, -1]), 0.0), (torch.tensor([2, -1, 0, 0, 1, 2]), 0.2)):
        mean = functional.cross_entropy(scores, labels, label_smoothing=smooth, ignore_index=-1)
        ours = functional.cross_entropy(scores, labels, label_smoothing=smooth, ignore_index=-1, reduction="sum") / (
            labels != -1
        ).sum().clamp(min=1)
        torch.testing.assert_close(ours, mean)
        torch.testing.assert_close(torch.autograd.grad(ours, scores), torch.autograd.grad(mean, scores))
    none = torch.full((6,), -1)
    assert functional.cross_entropy(scores, none, ignore_index=-1).isnan()
    ours = functional.cross_entropy(scores, none, ignore_index=-1, reduction="sum") / (none != -1).sum().clamp(min=1)
    assert ours == 0
    assert not torch.autograd.grad(ours, scores)[0].any()
