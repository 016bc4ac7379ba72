"""The one linear layer of the wrong width gets the width of its input."""

from __future__ import annotations

import pytest

from tests.fix.rewriting import changed_lines, rewritten

HEAD = "from torch import nn\n"
SHAPES = {"message": "mat1 and mat2 shapes cannot be multiplied (2x196 and 256x10)"}
RIGHT = {
    "another message": (HEAD + "f = nn.Linear(256, 10)\n", "", {}),
    "no layer of that width": (HEAD + "f = nn.Linear(128, 10)\n", "", SHAPES),
    "two layers of that shape": (HEAD + "f = nn.Linear(256, 10)\ng = nn.Linear(256, 10)\n", "", SHAPES),
    "a width that is not known": (HEAD + "f = nn.Linear(width, 10)\n", "", SHAPES),
}
WRONG = {
    "a number": (HEAD + "f = nn.Linear(256, 10)\n", "", SHAPES, ["f = nn.Linear(196, 10)"]),
    "a product": (
        HEAD + "f = nn.Sequential(nn.Flatten(), nn.Linear(4 * 8 * 8, 10))\n",
        "",
        SHAPES,
        ["f = nn.Sequential(nn.Flatten(), nn.Linear(196, 10))"],
    ),
    "by its outputs": (
        HEAD + "f = nn.Linear(256, 10)\ng = nn.Linear(256, 64)\n",
        "",
        SHAPES,
        ["f = nn.Linear(196, 10)"],
    ),
    "a constant": (HEAD + "WIDTH = 256\nf = nn.Linear(WIDTH, 10)\n", "", SHAPES, ["f = nn.Linear(196, 10)"]),
}


@pytest.mark.parametrize(("source", "at", "given"), RIGHT.values(), ids=RIGHT)
def test_right_programs_stay(tmp_path, source: str, at: str, given: dict) -> None:
    """Other messages, and programs in which several layers may be meant, are left alone."""
    assert rewritten(tmp_path, "fit_layer_width", source, at or None, **given) == source


@pytest.mark.parametrize(("source", "at", "given", "wanted"), WRONG.values(), ids=WRONG)
def test_faults_are_cured(tmp_path, source: str, at: str, given: dict, wanted: list[str]) -> None:
    """The width is that of the message; a second time nothing is left to do."""
    after = rewritten(tmp_path, "fit_layer_width", source, at or None, **given)
    assert changed_lines(source, after) == wanted
    assert rewritten(tmp_path, "fit_layer_width", after, None if at not in after else at or None, **given) == after
