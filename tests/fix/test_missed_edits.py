"""Edits that were looked for in the whole program and not found: where they are many, the card has the advice alone."""

from __future__ import annotations

import pathlib

from explainer.catalog.bundle import load_catalog
from explainer.model.report import Report
from explainer.workflow import explain_incident, plan_report

SKIP = """import torch
from torch import nn


class Net(nn.Module):
    def forward(self, skip, up):
        return torch.cat([skip, up], dim=1)


Net()(torch.zeros(1, 4, 15, 15), torch.zeros(1, 4, 14, 14))
"""
TEXT = """Traceback (most recent call last):
  File "{folder}/train.py", line 10, in <module>
    Net()(torch.zeros(1, 4, 15, 15), torch.zeros(1, 4, 14, 14))
  File "{folder}/train.py", line 7, in forward
    return torch.cat([skip, up], dim=1)
RuntimeError: Sizes of tensors must match except in dimension 1. Expected size 15 but got size 14 for tensor number 1 in the list.
"""


def planned(folder: pathlib.Path, read, *, is_here: bool) -> Report:
    if is_here:
        (folder / "train.py").write_text(SKIP)
    report = explain_incident(read(TEXT.format(folder=folder)), None, load_catalog())
    return plan_report(report, load_catalog(), str(folder))


def test_what_fits_another_program_is_left_out(tmp_path: pathlib.Path, read) -> None:
    """No word of recurrent layers and masks to a program that has none."""
    (finding, *_) = planned(tmp_path, read, is_here=True).findings
    assert finding.cause == "shape/operand-mismatch"
    assert "print-the-shapes" in [one.id for one in finding.fixes]
    assert not {"layers-of-the-state", "sizes-of-the-skip"} & {one.id for one in finding.fixes}


def test_a_program_that_is_not_here(tmp_path: pathlib.Path, read) -> None:
    """Any of them may be the one."""
    (finding, *_) = planned(tmp_path, read, is_here=False).findings
    assert "layers-of-the-state" in [one.id for one in finding.fixes]
