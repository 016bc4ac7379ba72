"""Labels that count from 1 are counted from 0 in the loss."""

from __future__ import annotations

import pytest

from tests.fix.rewriting import changed_lines, rewritten

HEAD = "import torch\nimport torch.nn.functional as F\nout = torch.randn(4, 3)\n"
TARGET = {"fields": {"target": "3"}}
RIGHT = {
    "from 0": (HEAD + "y = torch.tensor([0, 1, 2, 3])\nloss = F.cross_entropy(out, y)\n", "loss =", TARGET),
    "from a file": (HEAD + "y = torch.load('y')\nloss = F.cross_entropy(out, y)\n", "loss =", TARGET),
    "another largest label": (HEAD + "y = torch.tensor([1, 2, 7])\nloss = F.cross_entropy(out, y)\n", "loss =", TARGET),
    "a loss of values": (HEAD + "y = torch.tensor([1, 2, 3])\nloss = F.mse_loss(out, y)\n", "loss =", TARGET),
}
WRONG = {
    "constants": (
        HEAD + "y = torch.tensor([1, 2, 3])\nloss = F.cross_entropy(out, y)\n",
        "loss =",
        TARGET,
        ["loss = F.cross_entropy(out, y - 1)"],
    ),
    "random labels": (
        HEAD + "y = torch.randint(1, 4, (6,))\nloss = F.cross_entropy(out, y)\n",
        "loss =",
        {},
        ["loss = F.cross_entropy(out, y - 1)"],
    ),
}


@pytest.mark.parametrize(("source", "at", "given"), RIGHT.values(), ids=RIGHT)
def test_right_programs_stay(tmp_path, source: str, at: str, given: dict) -> None:
    """Labels that begin with 0, or that the source does not show, are left alone."""
    assert rewritten(tmp_path, "count_labels_from_zero", source, at or None, **given) == source


@pytest.mark.parametrize(("source", "at", "given", "wanted"), WRONG.values(), ids=WRONG)
def test_faults_are_cured(tmp_path, source: str, at: str, given: dict, wanted: list[str]) -> None:
    """The loss gets labels less 1; a second time nothing is left to do."""
    after = rewritten(tmp_path, "count_labels_from_zero", source, at or None, **given)
    assert changed_lines(source, after) == wanted
    assert (
        rewritten(tmp_path, "count_labels_from_zero", after, None if at not in after else at or None, **given) == after
    )
