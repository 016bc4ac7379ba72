"""The best weights are kept as a state dict where the whole module cannot be copied."""

from __future__ import annotations

import pathlib

import pytest

from tests.fix.rewriting import diff_lines, rewritten

TOP = """import copy
import torch
from torch import nn
from torch.nn.utils import prune
net = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 1))
prune.l1_unstructured(net[0], "weight", 0.5)
net(torch.randn(3, 2)).sum().backward()
"""
LOCAL = (
    TOP
    + """best = None
if best is None:
    best = copy.deepcopy(net)
net.load_state_dict(best.state_dict())
"""
)
KEEPER = (
    TOP
    + """class Keeper:
    def __init__(self):
        self.model = None
    def offer(self, model):
        self.model = copy.deepcopy(model)
    def restore(self, model):
        if self.model is not None:
            model.load_state_dict(self.model.state_dict())
keeper = Keeper()
keeper.offer(net)
keeper.restore(net)
"""
)
WRONG = {
    "a name": (LOCAL, ["best = copy.deepcopy(net.state_dict())", "net.load_state_dict(best)"]),
    "an attribute": (
        KEEPER,
        ["self.model = copy.deepcopy(model.state_dict())", "model.load_state_dict(self.model)"],
    ),
}
WRONG["one of two names"] = (
    LOCAL.replace("best = copy.deepcopy(net)", "best, lowest = copy.deepcopy(net), 0.5"),
    ["best, lowest = copy.deepcopy(net.state_dict()), 0.5", "net.load_state_dict(best)"],
)
RIGHT = {
    "the copy runs": LOCAL + "print(best(torch.randn(1, 2)))\n",
    "the copy is handed on": LOCAL + "torch.save(best, 'best.pt')\n",
    "another object reads it": KEEPER + "keeper.model.eval()\n",
    "nothing reads it": LOCAL.replace("net.load_state_dict(best.state_dict())\n", ""),
}


@pytest.mark.torch
@pytest.mark.parametrize(("text", "wanted"), WRONG.values(), ids=WRONG)
def test_the_state_alone_is_copied(tmp_path: pathlib.Path, text: str, wanted: list[str]) -> None:
    """The copy raises before, and gives the same weights after."""
    torch = pytest.importorskip("torch")
    with pytest.raises(RuntimeError, match="deepcopy protocol"):
        exec(compile(text, "before", "exec"), {})  # noqa: S102
    after = rewritten(tmp_path, "copy_state_alone", text, "copy.deepcopy(")
    assert [one[1:].strip() for one in diff_lines(text, after) if one[0] == "+"] == wanted
    space: dict = {}
    exec(compile(after, "after", "exec"), space)  # noqa: S102
    assert all(torch.isfinite(one).all() for one in space["net"].state_dict().values())


@pytest.mark.parametrize("text", RIGHT.values(), ids=RIGHT)
def test_a_copy_that_is_a_module_stays(tmp_path: pathlib.Path, text: str) -> None:
    """What runs the copy, saves it whole or looks into it needs the module."""
    assert rewritten(tmp_path, "copy_state_alone", text, "copy.deepcopy(") == text
