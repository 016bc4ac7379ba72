"""A teacher that is the student itself becomes a copy of it."""

from __future__ import annotations

import pathlib

import pytest

from tests.fix.rewriting import diff_lines, rewritten

SOURCE = """import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Linear(3, 3)
        self.head = nn.Linear(3, 2)

    def forward(self, x):
        return self.head(self.body(x))


class MeanTeacher:
    def __init__(self, student):
        self.net = student
        for p in self.net.parameters():
            p.requires_grad = False


student = Net()
teacher = MeanTeacher(student)
optimizer = torch.optim.Adam(student.parameters())
loss = student(torch.randn(4, 3)).mean()
loss.backward()
"""
BY_NAME = SOURCE.replace("teacher = MeanTeacher(student)", "teacher = student\nteacher.requires_grad_(False)")
RIGHT = {
    "a copy already": SOURCE.replace("self.net = student", "self.net = copy.deepcopy(student)"),
    "a backbone": SOURCE.replace("MeanTeacher", "Probe"),
    "a network of its own": SOURCE.replace("MeanTeacher(student)", "MeanTeacher(Net())"),
}


@pytest.mark.parametrize(("source", "wanted"), [(SOURCE, "self.net"), (BY_NAME, "teacher")], ids=["kept", "by name"])
def test_the_teacher_becomes_a_copy(source: str, wanted: str, tmp_path: pathlib.Path) -> None:
    """Where it is bound; and no part of the one module is spared instead."""
    after = rewritten(tmp_path, "copy_module", source, "loss.backward")
    assert [one for one in diff_lines(source, after) if "student" in one][-1].strip(
        "+ "
    ) == f"{wanted} = deepcopy(student)"
    assert rewritten(tmp_path, "copy_module", after, "loss.backward") == after
    if source is SOURCE:
        assert rewritten(tmp_path, "unfreeze", source, "loss.backward") == source


@pytest.mark.parametrize("source", RIGHT.values(), ids=RIGHT)
def test_others_stay(source: str, tmp_path: pathlib.Path) -> None:
    """What is a copy, is meant to be shared, or is another network."""
    assert rewritten(tmp_path, "copy_module", source, "loss.backward") == source
