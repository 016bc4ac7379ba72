"""Grad mode is on in the phase that goes backward."""

from __future__ import annotations

import pathlib
from dataclasses import replace

import pytest

from explainer.fix.splice import splice
from explainer.model.trace import GRAD_OFF, TracedLine
from tests.fix.rewriting import best, diff_lines, failed, line_of, write

SOURCE = """import torch


def epoch(model, loaders, optimizer):
    for phase in ("fit", "check"):
        for x, y in loaders[phase]:
            with torch.set_grad_enabled(phase == "train"):
                loss = (model(x) - y).square().mean()
            if phase == "fit":
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
"""
RIGHT = {
    "the phase that trains": SOURCE.replace('phase == "train"', 'phase == "fit"'),
    "a backward under no test": SOURCE.replace('if phase == "fit"', "if model.training"),
    "a mode of the model": SOURCE.replace('phase == "train"', "model.training"),
}


def proposed(source: str, folder: pathlib.Path):
    program = write(folder, {"train.py": source})
    line = line_of(source, "set_grad_enabled")
    traced = TracedLine(kind=GRAD_OFF, operation="set_grad_enabled", file=str(folder / "train.py"), line=line)
    return best("phase_that_trains", program, incident=replace(failed(), traced=(traced,)))


def test_the_name_is_that_of_the_backward(tmp_path: pathlib.Path) -> None:
    """As the same function tests it."""
    proposal = proposed(SOURCE, tmp_path)
    assert proposal is not None
    assert diff_lines(SOURCE, splice(SOURCE, proposal.edits))[1:] == [
        '+            with torch.set_grad_enabled(phase == "fit"):'
    ]


@pytest.mark.parametrize("source", RIGHT.values(), ids=RIGHT)
def test_others_stay(source: str, tmp_path: pathlib.Path) -> None:
    """Where the names agree, or none is tested."""
    assert proposed(source, tmp_path) is None
