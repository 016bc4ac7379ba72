"""The CTC loss gets time first; each program runs, fails, is mended and runs."""

from __future__ import annotations

import pathlib

import pytest

pytestmark = pytest.mark.torch
torch = pytest.importorskip("torch")

from tests.fix.mending import is_mended, mended  # noqa: E402

HEAD = """import torch
from torch import nn
from torch.nn import functional as F
torch.manual_seed(0)
ctc = nn.CTCLoss()
scores, texts = torch.randn(4, 20, 7).log_softmax(-1), torch.randint(1, 7, (4, 5))
lengths, sizes = torch.tensor([20, 18, 20, 16]), torch.tensor([5, 4, 5, 3])
"""
EQUAL = "ctc(scores.permute(1, 0, 2), texts, lengths, sizes)"
WRONG = {
    "a module": ("out = ctc(scores, texts, lengths, sizes)", "out = ctc(scores.transpose(0, 1), texts, lengths, sizes)"),
    "a function": (
        "out = F.ctc_loss(scores, texts, lengths, sizes)",
        "out = F.ctc_loss(scores.transpose(0, 1), texts, lengths, sizes)",
    ),
    "by names": (
        "out = ctc(log_probs=scores, targets=texts, input_lengths=lengths, target_lengths=sizes)",
        "out = ctc(log_probs=scores.transpose(0, 1), targets=texts, input_lengths=lengths, target_lengths=sizes)",
    ),
}  # fmt: skip
RIGHT = {
    "lengths of another batch": "out = ctc(scores.transpose(0, 1), texts, lengths[:3], sizes)",
    "both axes count the batch": "out = ctc(scores[:, :4], texts, torch.tensor([4]), sizes)",
    "lengths beyond the series": "out = ctc(scores.transpose(0, 1), texts, lengths * 2, sizes)",
}


@pytest.mark.parametrize(("line", "wanted"), WRONG.values(), ids=WRONG)
def test_time_comes_first(line: str, wanted: str, tmp_path: pathlib.Path) -> None:
    assert is_mended("time_first", HEAD, line, wanted, EQUAL, tmp_path)


@pytest.mark.parametrize("line", RIGHT.values(), ids=RIGHT)
def test_other_refusals_stay(line: str, tmp_path: pathlib.Path) -> None:
    source = f"{HEAD}{line}\n"
    assert mended("time_first", source, tmp_path) == source
