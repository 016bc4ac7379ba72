"""A parameter made of memory that nobody filled gets values."""

from __future__ import annotations

from dataclasses import replace

import pytest

from explainer.fix.splice import splice
from explainer.model.trace import NOT_FINITE, TracedLine
from tests.fix.rewriting import best, changed_lines, diff_lines, failed, line_of, rewritten, write

HEAD = """import torch
from torch import nn


class Scale(nn.Module):
    def __init__(self, n):
        super().__init__()
"""
RIGHT = {
    "filled by an initialiser": (
        HEAD + "        self.w = nn.Parameter(torch.empty(n, n))\n        nn.init.normal_(self.w)\n",
        "",
        {},
    ),
    "filled by a method": (
        HEAD + "        self.w = nn.Parameter(torch.empty(n))\n        self.w.data.fill_(1.0)\n",
        "",
        {},
    ),
    "filled in reset_parameters": (
        HEAD
        + "        self.w = nn.Parameter(torch.empty(n))\n        self.reset_parameters()\n\n    def reset_parameters(self):\n        nn.init.ones_(self.w)\n",
        "",
        {},
    ),
    "filled over all parameters": (
        HEAD
        + "        self.w = nn.Parameter(torch.empty(n, n))\n        for p in self.parameters():\n            nn.init.normal_(p)\n",
        "",
        {},
    ),
    "made of zeros": (HEAD + "        self.w = nn.Parameter(torch.zeros(n))\n", "", {}),
    "a plain tensor": (HEAD + "        self.w = torch.empty(n)\n", "", {}),
    "a module that is reset": (
        HEAD
        + "        self.f = nn.Linear(n, n, device='meta').to_empty(device='cpu')\n        self.f.reset_parameters()\n",
        "",
        {},
    ),
}
WRONG = {
    "a factor": (
        HEAD
        + "        self.w = nn.Parameter(torch.empty(n))\n\n    def forward(self, x):\n        return x * self.w\n",
        "",
        {},
        ["self.w = nn.Parameter(torch.ones(n))"],
    ),
    "a summand": (
        HEAD
        + "        self.b = nn.Parameter(torch.empty(n))\n\n    def forward(self, x):\n        return x + self.b\n",
        "",
        {},
        ["self.b = nn.Parameter(torch.zeros(n))"],
    ),
    "a matrix": (
        HEAD
        + "        self.w = nn.Parameter(torch.empty(n, n))\n\n    def forward(self, x):\n        return x @ self.w\n",
        "",
        {},
        ["nn.init.xavier_uniform_(self.w)"],
    ),
    "a module of empty memory": (
        "from torch import nn\nhead = nn.Linear(4, 4, device='meta').to_empty(device='cpu')\nmodel.head = head\n",
        "",
        {},
        ["head.reset_parameters()"],
    ),
}


@pytest.mark.parametrize(("source", "at", "given"), RIGHT.values(), ids=RIGHT)
def test_right_programs_stay(tmp_path, source: str, at: str, given: dict) -> None:
    """Parameters that are filled anywhere, or that are no parameters, are left alone."""
    assert rewritten(tmp_path, "initialise_parameter", source, at or None, **given) == source


@pytest.mark.parametrize(("source", "at", "given", "wanted"), WRONG.values(), ids=WRONG)
def test_faults_are_cured(tmp_path, source: str, at: str, given: dict, wanted: list[str]) -> None:
    """The values are given where the parameter is made; a second time nothing is left to do."""
    after = rewritten(tmp_path, "initialise_parameter", source, at or None, **given)
    assert changed_lines(source, after) == wanted
    assert rewritten(tmp_path, "initialise_parameter", after, None if at not in after else at or None, **given) == after


META = """import torch
from encoder import Encoder


def load(path, device):
    with torch.device("meta"):
        net = Encoder()
    net.to_empty(device=device)
    net.load_state_dict(torch.load(path))
    return net
"""


def on_meta(source: str, folder, operation: str = "empty_like") -> list[str] | None:
    """The lines that change where the trace found memory that `to_empty` left; None without an edit."""
    line = TracedLine(
        kind=NOT_FINITE, operation=operation, file=str(folder / "train.py"), line=line_of(source, "to_empty")
    )
    program = write(folder, {"train.py": source})
    proposal = best("initialise_parameter", program, incident=replace(failed(), traced=(line,)))
    return diff_lines(source, splice(source, proposal.edits)) if proposal is not None else None


def test_a_module_is_built_where_it_stays(tmp_path) -> None:
    """Buffers that no state dict holds are computed at the making, on a device that holds values."""
    assert on_meta(META, tmp_path) == [
        '-    with torch.device("meta"):',
        "+    with torch.device(device):",
        "-    net.to_empty(device=device)",
    ]


@pytest.mark.parametrize(
    "source",
    [
        META.replace('"meta"', '"cpu"'),
        META.replace("    net.to_empty", "    other.to_empty"),
        META.replace("device=device)", "device)"),
    ],
    ids=["another device", "another module", "no keyword"],
)
def test_other_allocations_stay(source: str, tmp_path) -> None:
    """Only a module that was built without values in the block above."""
    assert on_meta(source, tmp_path) is None
