"""A decorator that switches grad mode off moves from a shared method to the teacher that it was meant for."""

from __future__ import annotations

import dataclasses
import pathlib

import pytest

from explainer.fix.splice import splice
from explainer.model.incident import Incident
from explainer.model.trace import STARVING_CUT, TracedLine
from tests.fix.rewriting import best, diff_lines, line_of, write

SHARED = """import functools
import torch
from torch import nn

def without_graph(method):
    @functools.wraps(method)
    def wrapped(*args):
        with torch.no_grad():
            return method(*args)
    return wrapped

class Extractor(nn.Module):
    def __init__(self):
        super().__init__()
        self.deep = nn.Linear(4, 4)

    @without_graph
    def features(self, x):
        return self.deep(x)

class Teacher(Extractor):
    def targets(self, x):
        return self.features(x)

class Student(Extractor):
    def forward(self, x):
        return self.features(x)

    def validate(self, x):
        return self.features(x)
"""
TORCHS = SHARED.replace("    @without_graph", "    @torch.no_grad()")
EDITS = {
    "a decorator of the program": (SHARED, "without_graph"),
    "a decorator of torch": (TORCHS, "torch.no_grad()"),
}
FROZEN = SHARED.replace("class Student(Extractor):\n", "")  # one class, with a method for targets
STAYS = {
    "one class": FROZEN,
    "nobody teaches": SHARED.replace("Teacher", "Wide").replace("targets", "codes"),
    "another decorator": SHARED.replace("with torch.no_grad():", "with torch.autocast('cpu'):"),
    "the teacher alone": SHARED.replace("return self.features(x)\n\n    def validate", "return self.deep(x)\n\n    def validate"),
}  # fmt: skip


def mended(folder: pathlib.Path, source: str) -> str:
    """The program after the best edit, where a trace saw the layers in `features` starve."""
    program = write(folder, {"train.py": source})
    line = TracedLine(
        kind=STARVING_CUT,
        operation="linear",
        file=str(folder / "train.py"),
        line=line_of(source, "return self.deep(x)"),
    )
    proposal = best("decorate_the_teacher", program, incident=dataclasses.replace(Incident(), traced=(line,)))
    after = splice(source, proposal.edits) if proposal is not None else source
    assert after is not None
    return after


@pytest.mark.parametrize("name", EDITS)
def test_the_decorator_goes_to_the_teacher(tmp_path: pathlib.Path, name: str) -> None:
    """And to an evaluation, which it served as well."""
    source, decorator = EDITS[name]
    wanted = [f"-    @{decorator}", f"+    @{decorator}", f"+    @{decorator}"]
    after = mended(tmp_path, source)
    assert diff_lines(source, after) == wanted
    assert f"    @{decorator}\n    def targets" in after
    assert f"    @{decorator}\n    def validate" in after


@pytest.mark.parametrize("name", STAYS)
def test_what_may_be_frozen_on_purpose_stays(tmp_path: pathlib.Path, name: str) -> None:
    assert mended(tmp_path, STAYS[name]) == STAYS[name]
