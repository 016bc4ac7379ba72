"""Computed weights lose the `nn.Parameter` round them where a trace saw that it starves what computes them."""

from __future__ import annotations

import pathlib

import pytest

from explainer.fix.splice import splice
from explainer.model.incident import Incident
from explainer.model.trace import STARVING_CUT, TracedLine
from tests.fix.rewriting import best, changed_lines, write

HEAD = """import torch
from torch import nn
from torch.nn.parameter import Parameter as P
def weights(self, made, out, net, shapes):
"""
LEFT = {
    "an attribute of a module": ["self.weight = nn.Parameter(made)"],
    "an attribute of another one": ["net.own.weight = nn.Parameter(made.view(2, 3))"],
    "a module's table": ["self.own['w'] = nn.Parameter(made)"],
    "registered": ["self.register_parameter('w', nn.Parameter(made))"],
    "set": ["setattr(net, 'weight', nn.Parameter(made))"],
    "a list of parameters": ["fast = nn.ParameterList([nn.Parameter(one) for one in made])"],
    "frozen": ["w = nn.Parameter(made, requires_grad=False)"],
    "another class": ["w = Parameter(made)"],
    "one of two": ["w = nn.Parameter(made[0])", "self.b = nn.Parameter(made[1])"],
}
DROPPED = {
    "a dictionary": (
        ["return {n: nn.Parameter(part.view(s)) for part, (n, s) in zip(made, shapes)}"],
        ["return {n: part.view(s) for part, (n, s) in zip(made, shapes)}"],
    ),
    "an item of one": (["out['w'] = nn.Parameter(made)"], ["out['w'] = made"]),
    "an argument": (["return net(nn.Parameter(made * 2), out)"], ["return net(made * 2, out)"]),
    "a factor": (["return out @ P(made + 1)"], ["return out @ (made + 1)"]),
    "a flag that says nothing": (["w = torch.nn.Parameter(made, requires_grad=True)"], ["w = made"]),
    "two lines": (
        ["w = nn.Parameter(made[0])", "b = nn.Parameter(made[1])"],
        ["w = made[0]", "b = made[1]"],
    ),
}


def edited(body: list[str], folder: pathlib.Path, operation: str = "Parameter") -> tuple[str, str]:
    """The text of a program, and that after the edit of what a trace saw at its lines."""
    source = HEAD + "".join(f"    {line}\n" for line in body)
    program = write(folder, {"train.py": source})
    path = next(iter(program.files))
    first = len(HEAD.splitlines()) + 1
    traced = tuple(
        TracedLine(kind=STARVING_CUT, file=path, line=first + at, operation=operation, says="it starves")
        for at in range(len(body))
    )
    proposal = best("drop_new_leaf", program, incident=Incident(traced=traced))
    after = splice(source, proposal.edits) if proposal is not None and proposal.edits else source
    assert after is not None
    return source, after


@pytest.mark.parametrize("body", LEFT.values(), ids=LEFT)
def test_what_has_to_be_a_parameter(body: list[str], tmp_path: pathlib.Path) -> None:
    """Nothing is changed where a module takes parameters alone, or where the line says that none is to train."""
    source, after = edited(body, tmp_path)
    assert after == source


def test_another_cut(tmp_path: pathlib.Path) -> None:
    """A parameter on a line that cuts by something else is left."""
    source, after = edited(["w = nn.Parameter(made.detach())"], tmp_path, "detach")
    assert after == source


@pytest.mark.parametrize(("body", "lines"), DROPPED.values(), ids=DROPPED)
def test_computed_weights_as_they_are(body: list[str], lines: list[str], tmp_path: pathlib.Path) -> None:
    """The values stay, without the leaf; of several lines all."""
    source, after = edited(body, tmp_path)
    assert changed_lines(source, after) == lines
