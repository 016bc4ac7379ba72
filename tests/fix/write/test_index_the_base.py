"""A loop writes the tensor itself, not the views that iterating over it hands out."""

from __future__ import annotations

import pathlib

import pytest

from tests.fix.rewriting import diff_lines, rewritten

RIGHT = {
    "indexed already": (
        """\"\"\"Iterating over a tensor unbinds it, and images that require grad are copied into those views.\"\"\"

import torch
from torch import nn

torch.manual_seed(0)
scale, backbone = nn.Parameter(torch.ones(1)), nn.Conv2d(3, 4, 3)
images = [scale * torch.rand(3, 6, 8), scale * torch.rand(3, 8, 5)]
batch = torch.zeros(2, 3, 8, 8)
for index, image in enumerate(images):
    batch[index, :, : image.shape[1], : image.shape[2]].copy_(image)
loss = backbone(batch).pow(2).mean()
loss.backward()
""",
        "copy_(image)",
    ),
    "a loop that only reads": (
        """import torch
from torch import nn, optim
from torch.nn import functional as F
for row in x:
    y = row * 2
""",
        "y =",
    ),
    "a generator in the zip": (
        """import torch
from torch import nn, optim
from torch.nn import functional as F
for a, b in zip(items, list(x)):
    b += a
""",
        "b += a",
    ),
}
WRONG = {
    "two in a zip": (
        """\"\"\"Iterating over a tensor unbinds it, and images that require grad are copied into those views.\"\"\"

import torch
from torch import nn

torch.manual_seed(0)
scale, backbone = nn.Parameter(torch.ones(1)), nn.Conv2d(3, 4, 3)
images = [scale * torch.rand(3, 6, 8), scale * torch.rand(3, 8, 5)]
batch = torch.zeros(2, 3, 8, 8)
for image, padded in zip(images, batch):
    padded[:, : image.shape[1], : image.shape[2]].copy_(image)
loss = backbone(batch).pow(2).mean()
loss.backward()
""",
        "copy_(image)",
        [
            "-for image, padded in zip(images, batch):",
            "-    padded[:, : image.shape[1], : image.shape[2]].copy_(image)",
            "+for index, image in enumerate(images):",
            "+    batch[index, :, : image.shape[1], : image.shape[2]].copy_(image)",
        ],
    ),
    "rows of one tensor": (
        """import torch
from torch import nn, optim
from torch.nn import functional as F
for row in x:
    row[0] = 1.0
""",
        "row[0]",
        ["-for row in x:", "-    row[0] = 1.0", "+for index in range(len(x)):", "+    x[index, 0] = 1.0"],
    ),
    "the whole row": (
        """import torch
from torch import nn, optim
from torch.nn import functional as F
for image, out in zip(images, batch):
    out.copy_(image)
""",
        "out.copy_",
        [
            "-for image, out in zip(images, batch):",
            "-    out.copy_(image)",
            "+for index, image in enumerate(images):",
            "+    batch[index].copy_(image)",
        ],
    ),
    "three in a zip": (
        """import torch
from torch import nn, optim
from torch.nn import functional as F
for a, b, out in zip(xs, ys, batch):
    out[: len(a)] = a + b
""",
        "out[:",
        [
            "-for a, b, out in zip(xs, ys, batch):",
            "-    out[: len(a)] = a + b",
            "+for index, (a, b) in enumerate(zip(xs, ys)):",
            "+    batch[index, : len(a)] = a + b",
        ],
    ),
}


@pytest.mark.parametrize(("source", "at"), RIGHT.values(), ids=RIGHT)
def test_right_programs_stay(source: str, at: str | None, tmp_path: pathlib.Path) -> None:
    """Nothing is proposed where the fault is not."""
    assert rewritten(tmp_path, "index_the_base", source, at) == source


@pytest.mark.parametrize(("source", "at", "changes"), WRONG.values(), ids=WRONG)
def test_wrong_programs_are_mended(source: str, at: str | None, changes: list[str], tmp_path: pathlib.Path) -> None:
    """The best edit changes these lines; a second time nothing is left to do."""
    after = rewritten(tmp_path, "index_the_base", source, at)
    assert diff_lines(source, after) == changes
    still = at if at and at in after else None
    assert rewritten(tmp_path, "index_the_base", after, still) == after
