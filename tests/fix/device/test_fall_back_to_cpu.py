"""A program that asks for the GPU outright runs without one."""

from __future__ import annotations

import pytest

from tests.fix.rewriting import changed_lines, rewritten

RIGHT = {
    "asked first": ("import torch\ndevice = 'cuda' if torch.cuda.is_available() else 'cpu'\n", "", {}),
    "the CPU": ("import torch\ndevice = 'cpu'\n", "", {}),
    "a word that is no device": ("import torch\nname = 'cudagraph'\n", "", {}),
    "no torch": ("device = 'cuda'\n", "", {}),
}
WRONG = {
    "a name": (
        "import torch\ndevice = 'cuda'\n",
        "",
        {},
        ["device = 'cuda' if torch.cuda.is_available() else \"cpu\""],
    ),
    "a device": (
        "import torch\ndev = torch.device('cuda:0')\n",
        "",
        {},
        ["dev = torch.device('cuda:0' if torch.cuda.is_available() else \"cpu\")"],
    ),
}


@pytest.mark.parametrize(("source", "at", "given"), RIGHT.values(), ids=RIGHT)
def test_right_programs_stay(tmp_path, source: str, at: str, given: dict) -> None:
    """Programs that ask first, or do not name the GPU, are left alone."""
    assert rewritten(tmp_path, "fall_back_to_cpu", source, at or None, **given) == source


@pytest.mark.parametrize(("source", "at", "given", "wanted"), WRONG.values(), ids=WRONG)
def test_faults_are_cured(tmp_path, source: str, at: str, given: dict, wanted: list[str]) -> None:
    """The name of the device depends on what is there; a second time nothing is left to do."""
    after = rewritten(tmp_path, "fall_back_to_cpu", source, at or None, **given)
    assert changed_lines(source, after) == wanted
    assert rewritten(tmp_path, "fall_back_to_cpu", after, None if at not in after else at or None, **given) == after
