"""Labels get as many copies as there are views of a batch, in the order in which the views are joined."""

from __future__ import annotations

import pathlib

import pytest

from tests.fix.rewriting import changed_lines, rewritten

HEAD = """import torch
import torch.nn.functional as F
model = torch.nn.Linear(3, 4)
"""
COLLATE = (
    HEAD
    + """class Collate:
    def __call__(self, samples):
        images, labels = zip(*samples)
        crops = {crops}
        return {returned}
for x, y in loader:
    loss = F.cross_entropy(model(x), y)
"""
)
LOOP = (
    HEAD
    + """for x, y in loader:
    {joined}
    out = model(both)
    loss = F.cross_entropy(out, y)
"""
)
SAID = "Expected input batch_size (48) to match target batch_size (24)."
WHOLE = "[torch.stack([self.aug(one) for one in images]) for _ in range(self.views)]"
WRONG = {
    "whole views in a collate function": (
        COLLATE.format(crops=WHOLE, returned="torch.cat(crops), torch.stack(labels)"),
        ["return torch.cat(crops), torch.stack(labels).repeat(self.views)"],
    ),
    "a dictionary": (
        COLLATE.format(crops=WHOLE, returned='{"x": torch.cat(crops), "label": torch.tensor(labels)}'),
        ['return {"x": torch.cat(crops), "label": torch.tensor(labels).repeat(self.views)}'],
    ),
    "views of a sample beside each other": (
        COLLATE.format(
            crops="[self.aug(one) for one in images for _ in range(2)]", returned="torch.stack(crops), torch.tensor(labels)"
        ),
        ["return torch.stack(crops), torch.tensor(labels).repeat_interleave(2)"],
    ),
    "samples in the inner loop": (
        COLLATE.format(
            crops="[aug(one) for aug in self.transforms for one in images]", returned="torch.stack(crops), torch.tensor(labels)"
        ),
        ["return torch.stack(crops), torch.tensor(labels).repeat(len(self.transforms))"],
    ),
    "the same call twice": (LOOP.format(joined="both = torch.cat([aug(x), aug(x)])"), ["loss = F.cross_entropy(out, y.repeat(2))"]),
    "numbered names": (
        LOOP.format(joined="x1, x2 = x\n    both = torch.cat((x1, x2), dim=0)"), ["loss = F.cross_entropy(out, y.repeat(2))"],
    ),
    "a stack that is flattened": (
        LOOP.format(joined="both = torch.stack([aug(x), aug(x)], dim=1).flatten(0, 1)"),
        ["loss = F.cross_entropy(out, y.repeat_interleave(2))"],
    ),
    "repeated inputs": (LOOP.format(joined="both = x.repeat(2, 1)"), ["loss = F.cross_entropy(out, y.repeat(2))"]),
    "inputs repeated beside each other": (
        LOOP.format(joined="both = x.repeat_interleave(2, dim=0)"), ["loss = F.cross_entropy(out, y.repeat_interleave(2))"],
    ),
}  # fmt: skip
RIGHT = {
    "data of two kinds": LOOP.format(joined="both = torch.cat([x, unlabelled])"),
    "features side by side": LOOP.format(joined="both = torch.cat([aug(x), aug(x)], dim=1)"),
    "another number of views": LOOP.format(joined="both = torch.cat([aug(x), aug(x), aug(x)])"),
    "batches of a list": LOOP.format(joined="both = torch.cat([part for part in x])"),
    "no views": LOOP.format(joined="both = other(x)"),
}


@pytest.mark.parametrize(("source", "wanted"), WRONG.values(), ids=WRONG)
def test_labels_are_repeated(source: str, wanted: list[str], tmp_path: pathlib.Path) -> None:
    """Where the views are joined beside the labels, or in the call of the loss."""
    after = rewritten(tmp_path, "repeat_labels", source, "loss =", message=SAID)
    assert changed_lines(source, after) == wanted


@pytest.mark.parametrize("source", RIGHT.values(), ids=RIGHT)
def test_what_is_not_joined_so_stays(source: str, tmp_path: pathlib.Path) -> None:
    """Where the program does not show that the samples are views, none of the two ways is taken."""
    assert rewritten(tmp_path, "repeat_labels", source, "loss =", message=SAID) == source


@pytest.mark.torch
def test_the_order_of_the_copies() -> None:
    """`repeat` is the order of `cat`, `repeat_interleave` that of a flattened stack: the labels stay with their samples."""
    torch = pytest.importorskip("torch")
    labels = torch.arange(3)
    assert torch.equal(torch.cat([labels, labels]), labels.repeat(2))
    assert torch.equal(torch.stack([labels, labels], dim=1).flatten(0, 1), labels.repeat_interleave(2))
    assert torch.equal(labels.repeat_interleave(2, dim=0), labels.repeat_interleave(2))
