"""What becomes of a sequence before its loss: joined by features, summed up over its steps, compared with the tokens behind it."""

from __future__ import annotations

import pathlib

import pytest

from tests.fix.rewriting import changed_lines, rewritten

ROWS = "Expected input batch_size ({}) to match target batch_size ({})."


def edited(
    folder: pathlib.Path, codemod: str, source: str, message: str, at: str = "loss = ", **tensors: str
) -> list[str]:
    """The lines that a codemod changes."""
    return changed_lines(source, rewritten(folder, codemod, source, at, message=message, tensors=tensors))


JOINED = """\
import torch
from torch import nn

head = nn.Linear(48, 5)


def forward(a, b):
{body}
"""
NARROW = "mat1 and mat2 shapes cannot be multiplied (24x24 and 48x5)"


@pytest.mark.parametrize(
    ("body", "changed"),
    [
        (["return head(torch.stack((a, b)))"], ["return head(torch.cat((a, b), dim=-1))"]),
        (["both = torch.cat([a, b])", "return head(both)"], ["both = torch.cat([a, b], dim=-1)"]),
        (["return head(torch.stack((a, b, b)))"], []),
        (["return head(torch.cat([a, b], dim=1))"], []),
        (["return head(torch.stack(parts))"], []),
    ],
    ids=["stacked", "rows under rows", "another number of parts", "along an axis that is said", "parts that are not seen"],
)  # fmt: skip
def test_features_side_by_side(body: list[str], changed: list[str], tmp_path: pathlib.Path) -> None:
    """Where the layer is built for the features of all parts."""
    source = JOINED.format(body="\n".join(f"    {one}" for one in body))
    assert edited(tmp_path, "join_features", source, NARROW, "head(") == changed


MODEL = """\
import torch
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn = nn.GRU(4, 8, batch_first=True)
        self.head = nn.Linear(8, 3)

    def forward(self, x):
        out, state = self.rnn(x)
        return self.head({taken})


loss = nn.functional.cross_entropy(Model()(x), y)
"""


@pytest.mark.parametrize(
    ("taken", "mended"),
    [
        ("out.mean(0)", "out.mean(1)"),
        ("out.sum(dim=0)", "out.sum(dim=1)"),
        ("out[-1]", "out[:, -1]"),
        ("state[-1]", "state[-1]"),
        ("out[:, -1]", "out[:, -1]"),
        ("x.mean(0)", "x.mean(0)"),
    ],
)
def test_the_steps_are_summed_up(taken: str, mended: str, tmp_path: pathlib.Path) -> None:
    """Of what a layer gave with the batch first; a state's layers are no samples."""
    changed = edited(tmp_path, "reduce_steps", MODEL.format(taken=taken), ROWS.format(14, 10))
    assert changed == ([f"return self.head({mended})"] if taken != mended else [])


def test_time_first(tmp_path: pathlib.Path) -> None:
    """There the first axis is that of the steps."""
    source = MODEL.format(taken="out.mean(0)").replace(", batch_first=True", "")
    assert edited(tmp_path, "reduce_steps", source, ROWS.format(14, 10)) == []


DECODER = """\
import torch
import torch.nn.functional as F
from torch import nn


class Decoder(nn.Module):
    def forward(self, source, target):
        return self.rnn(self.embed(target{cut}), source)


model = Decoder()
for source, target in batches:
    logits = model(source, target)
    loss = F.cross_entropy(logits.reshape(-1, 40), target.{flat})
"""


@pytest.mark.parametrize(
    ("cut", "flat", "mended"),
    [
        ("[:, :-1]", "reshape(-1)", "target[:, 1:].reshape(-1)"),
        ("[:, :-1]", "view(-1)", "target[:, 1:].contiguous().view(-1)"),
        ("[:, 1:]", "reshape(-1)", None),
        ("", "reshape(-1)", None),
    ],
)
def test_the_tokens_behind(cut: str, flat: str, mended: str | None, tmp_path: pathlib.Path) -> None:
    """Where the model leaves the last one out."""
    source = DECODER.format(cut=cut, flat=flat)
    changed = edited(tmp_path, "follow_shift", source, ROWS.format(64, 72), target="[8, 9] int64")
    assert changed == ([f"loss = F.cross_entropy(logits.reshape(-1, 40), {mended})"] if mended else [])


def test_another_number_of_tokens(tmp_path: pathlib.Path) -> None:
    """One for each sample is missing, not two."""
    source = DECODER.format(cut="[:, :-1]", flat="reshape(-1)")
    assert edited(tmp_path, "follow_shift", source, ROWS.format(56, 72), target="[8, 9] int64") == []


@pytest.mark.parametrize(
    ("target", "predicted", "method"),
    [
        ("6, 20, 24, 3", "6, 3, 20, 24", ".permute(0, 3, 1, 2)"),
        ("6, 3, 20, 24", "6, 20, 24, 3", ".permute(0, 2, 3, 1)"),
        ("6, 24, 20, 3", "6, 3, 20, 24", None),
        ("6, 3, 20", "6, 20, 3", None),
    ],
)
def test_channels_of_the_target(target: str, predicted: str, method: str | None, tmp_path: pathlib.Path) -> None:
    """They are moved to where the prediction has its own; nothing is turned or reshaped."""
    source = "import torch.nn.functional as F\n\nloss = F.mse_loss(model(x), clean)\n"
    said = (
        f"Using a target size (torch.Size([{target}])) that is different to the input size (torch.Size([{predicted}]))."
    )
    changed = edited(tmp_path, "channels_of_target", source, said)
    assert changed == ([f"loss = F.mse_loss(model(x), clean{method})"] if method else [])
