"""An in-place function or module whose result nobody takes: the statement takes it once it makes a new tensor."""

from __future__ import annotations

import pathlib

import pytest

from tests.fix.rewriting import diff_lines, rewritten

TOP = "import torch\nimport torch.nn.functional as F\nfrom torch import nn\nclass N(nn.Module):\n"
OFF, FUNCTION = "inplace_argument_off", "inplace_function_off"
# The codemod, and the body of a class.
RIGHT = {
    "a part that has no name": (
        OFF,
        "    def forward(self, x):\n        F.relu(x[:, 0], inplace=True)\n        return x",
    ),
    "a part that a module writes": (
        OFF,
        "    def __init__(self):\n        self.act = nn.ReLU(inplace=True)\n    def forward(self, x):\n        self.act(x[:, 0])\n        return x",
    ),
    "by position": (FUNCTION, "    def forward(self, x):\n        F.relu(x.view(2, 3), True)\n        return x"),
}
WRONG = {
    "a function": (
        OFF, "    def forward(self, x):\n        F.dropout(x, 0.2, self.training, inplace=True)\n        return x",
        ["-        F.dropout(x, 0.2, self.training, inplace=True)", "+        x = F.dropout(x, 0.2, self.training, inplace=False)"],
    ),
    "a function by position": (
        FUNCTION, "    def forward(self, x):\n        F.relu(x, True)\n        return x",
        ["-        F.relu(x, True)", "+        x = F.relu(x, False)"],
    ),
    "a module": (
        OFF, "    def __init__(self):\n        self.act = nn.ReLU(inplace=True)\n    def forward(self, x):\n        self.act(x)\n        return self.act(x)",
        ["-        self.act = nn.ReLU(inplace=True)", "-        self.act(x)", "+        self.act = nn.ReLU(inplace=False)", "+        x = self.act(x)"],
    ),
    "a module in a container": (
        FUNCTION, "    def __init__(self):\n        self.post = nn.Sequential(nn.Identity(), nn.ReLU(True))\n    def forward(self, x):\n        self.post(x)\n        return x",
        ["-        self.post = nn.Sequential(nn.Identity(), nn.ReLU(True))", "-        self.post(x)", "+        self.post = nn.Sequential(nn.Identity(), nn.ReLU(False))", "+        x = self.post(x)"],
    ),
    "a module of a factory": (
        OFF, "    def __init__(self):\n        self.act = act()\n    def forward(self, x):\n        self.act(x)\n        return x\ndef act():\n    return nn.ReLU(inplace=True)",
        ["-        self.act(x)", "+        x = self.act(x)", "-    return nn.ReLU(inplace=True)", "+    return nn.ReLU(inplace=False)"],
    ),
    "a result that is taken": (
        OFF, "    def forward(self, x):\n        x = F.relu(x, inplace=True)\n        return x",
        ["-        x = F.relu(x, inplace=True)", "+        x = F.relu(x, inplace=False)"],
    ),
}  # fmt: skip


@pytest.mark.parametrize(("codemod", "body"), RIGHT.values(), ids=RIGHT)
def test_what_cannot_be_taken_stays(codemod: str, body: str, tmp_path: pathlib.Path) -> None:
    """Without the write the statement would do nothing, in silence."""
    assert rewritten(tmp_path, codemod, TOP + body) == TOP + body


@pytest.mark.parametrize(("codemod", "body", "changes"), WRONG.values(), ids=WRONG)
def test_results_are_taken(codemod: str, body: str, changes: list[str], tmp_path: pathlib.Path) -> None:
    """The tensor has its new value under the same name."""
    assert sorted(diff_lines(TOP + body, rewritten(tmp_path, codemod, TOP + body))) == sorted(changes)
