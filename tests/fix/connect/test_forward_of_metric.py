"""A loss that is a metric of torchmetrics is what the metric gives for the batch."""

from __future__ import annotations

import pathlib

import pytest

from tests.fix.rewriting import diff_lines, rewritten

SOURCE = """import torch
from torchmetrics.audio import ScaleInvariantSignalNoiseRatio

class Objective(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.ratio = ScaleInvariantSignalNoiseRatio()

    def forward(self, estimate, reference):
        self.ratio.reset()
        self.ratio.update(estimate, target=reference)
        return -self.ratio.compute()

objective = Objective()
loss = objective(net(x), y)
loss.backward()
"""
OTHERS = {
    "logged": SOURCE.replace(
        "return -self.ratio.compute()", "print(self.ratio.compute())\n        return estimate.mean()"
    ),
    "of several batches": SOURCE.replace(
        "        self.ratio.update", "        self.ratio.update(estimate, reference)\n        self.ratio.update"
    ),
    "elsewhere": SOURCE.replace("        self.ratio.update(estimate, target=reference)\n", ""),
    "another library's": SOURCE.replace("from torchmetrics.audio", "from measures"),
}


def test_the_metric_is_called(tmp_path: pathlib.Path) -> None:
    """With what `update` was given, by position and by name; a second time nothing is left to do."""
    after = rewritten(tmp_path, "forward_of_metric", SOURCE)
    assert diff_lines(SOURCE, after) == [
        "-        self.ratio.reset()",
        "-        self.ratio.update(estimate, target=reference)",
        "-        return -self.ratio.compute()",
        "+        return -self.ratio(estimate, target=reference)",
    ]
    assert rewritten(tmp_path, "forward_of_metric", after) == after


@pytest.mark.parametrize("source", OTHERS.values(), ids=OTHERS)
def test_reports_stay(source: str, tmp_path: pathlib.Path) -> None:
    assert rewritten(tmp_path, "forward_of_metric", source) == source
