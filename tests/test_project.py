"""Which files of a folder are taken for the program of a log."""

from __future__ import annotations

import pathlib

from explainer.workflow import plan_report

LOG = """Traceback (most recent call last):
  File "/content/project/train.py", line 8, in <module>
    loss.backward()
  File "/usr/lib/python3.11/site-packages/torch/_tensor.py", line 581, in backward
    torch.autograd.backward(
RuntimeError: one of the variables needed for gradient computation has been modified by an inplace operation: \
[torch.FloatTensor [4]], which is output 0 of ReluBackward0, is at version 1; expected version 0 instead.
"""
PROGRAM = """import torch

w = torch.ones(4, requires_grad=True)
x = torch.relu(w)
x += 1
loss = x.sum()

loss.backward()
"""


def edits(explain_log, catalog, folder: pathlib.Path) -> list[str]:
    report = plan_report(explain_log(LOG), catalog, str(folder))
    return [fix.id for finding in report.findings for fix in finding.fixes if fix.patch]


def test_the_program_of_another_machine(explain_log, catalog, tmp_path: pathlib.Path) -> None:
    """A log from elsewhere is matched with the file here that holds the line it shows."""
    (tmp_path / "train.py").write_text(PROGRAM)
    assert edits(explain_log, catalog, tmp_path)


def test_another_program_of_that_name(explain_log, catalog, tmp_path: pathlib.Path) -> None:
    """A file that only has the same name is not the program, and no line of it is blamed."""
    (tmp_path / "train.py").write_text(PROGRAM.replace("\nloss.backward()", "\n\nloss.backward()"))
    assert edits(explain_log, catalog, tmp_path) == []
