"""A tensor that requires grad and is a mere attribute becomes a parameter, where the live program was seen to leave it."""

from __future__ import annotations

import pathlib
from dataclasses import replace

import pytest

from explainer.fix.splice import splice
from explainer.model.incident import LogLine
from tests.fix.mending import mended, run
from tests.fix.rewriting import best, changed_lines, failed, write

SOURCE = """import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = MADE
        self.shift = torch.zeros(2, requires_grad=True)


class Plain:
    def __init__(self):
        self.scale = torch.ones(2, requires_grad=True)
"""
SEEN = (
    "seen in the live program: `scale` of Net is a plain tensor that requires grad, no Parameter: it gets gradients, "
    "and no optimizer steps it"
)


@pytest.mark.parametrize(
    ("made", "after"),
    [
        ("torch.ones(1, requires_grad=True)", "nn.Parameter(torch.ones(1))"),
        ("torch.full((2,), 0.5, requires_grad=True, dtype=torch.float32)", "nn.Parameter(torch.full((2,), 0.5, dtype=torch.float32))"),
        ("torch.randn(2).requires_grad_()", "nn.Parameter(torch.randn(2))"),
        ("[torch.ones(1, requires_grad=True) for _ in range(2)]", "nn.ParameterList([nn.Parameter(torch.ones(1)) for _ in range(2)])"),
        ("[torch.ones(1, requires_grad=True), torch.ones(1)]", None),
        ("torch.ones(2, requires_grad=flag)", None),
        ("torch.ones(2)", None),
    ],
)  # fmt: skip
def test_what_becomes_a_parameter(tmp_path: pathlib.Path, made: str, after: str | None) -> None:
    """The attribute that was named, of a module, with a flag that is set where it is made."""
    source = SOURCE.replace("MADE", made)
    program = write(tmp_path, {"train.py": source})
    proposal = best("parameter_of_tensor", program, incident=replace(failed(), log=(LogLine(text=SEEN),)))
    if after is None:
        assert proposal is None
        return
    assert proposal is not None
    (path,) = {edit.file for edit in proposal.edits}
    changed = splice(program.files[path].text, proposal.edits)
    assert changed is not None
    assert changed_lines(source, changed) == [f"self.scale = {after}"]


EMPTY = """import torch
from torch import nn


class Adapter(nn.Module):
    def __init__(self, layer):
        super().__init__()
        self.layer = layer
        self.a = torch.randn(3, 2) * 0.02
        self.b = torch.zeros(2, 3, requires_grad=True)
        self.mean = torch.zeros(3)
        FLAG

    def forward(self, x):
        return self.layer(x) + x @ self.a @ self.b


net = Adapter(nn.Linear(3, 3).requires_grad_(False))
optimizer = torch.optim.SGD([p for p in net.parameters() if p.requires_grad], lr=0.1)
"""


@pytest.mark.torch
@pytest.mark.parametrize("flag", ["self.a.requires_grad_()", "self.a.requires_grad = True"])
def test_all_of_them_where_an_optimizer_gets_none(tmp_path: pathlib.Path, flag: str) -> None:
    """Those that a statement flags too; a tensor without a flag is none of them."""
    pytest.importorskip("torch")
    source = EMPTY.replace("FLAG", flag)
    after = mended("parameter_of_tensor", source, tmp_path)
    assert changed_lines(source, after) == [
        "self.a = nn.Parameter(torch.randn(3, 2) * 0.02)", "self.b = nn.Parameter(torch.zeros(2, 3))",
    ]  # fmt: skip
    assert len(run(after, tmp_path / "after.py")["optimizer"].param_groups[0]["params"]) == 2
