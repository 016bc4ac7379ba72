"""autocast gets the name of a device type."""

from __future__ import annotations

import pytest

from tests.fix.rewriting import changed_lines, rewritten

HEAD = "import torch\ndevice = torch.device('cpu')\nname = 'cpu'\n"
RIGHT = {
    "a name": (HEAD + "with torch.autocast('cpu'):\n    pass\n", "", {}),
    "a name in a variable": (HEAD + "with torch.autocast(name):\n    pass\n", "", {}),
    "the type already": (HEAD + "with torch.autocast(device.type):\n    pass\n", "", {}),
    "a call that takes a device": (HEAD + "x = torch.zeros(2, device=device)\n", "", {}),
}
WRONG = {
    "by position": (HEAD + "with torch.autocast(device):\n    pass\n", "", {}, ["with torch.autocast(device.type):"]),
    "by keyword": (
        HEAD + "with torch.amp.autocast(device_type=device):\n    pass\n",
        "",
        {},
        ["with torch.amp.autocast(device_type=device.type):"],
    ),
    "made in place": (
        HEAD + "with torch.autocast(torch.device('cuda')):\n    pass\n",
        "",
        {},
        ["with torch.autocast(torch.device('cuda').type):"],
    ),
    "the device of a tensor": (
        HEAD + "with torch.autocast(x.device):\n    pass\n",
        "",
        {},
        ["with torch.autocast(x.device.type):"],
    ),
}


@pytest.mark.parametrize(("source", "at", "given"), RIGHT.values(), ids=RIGHT)
def test_right_programs_stay(tmp_path, source: str, at: str, given: dict) -> None:
    """Names, and calls that take a device, are left alone."""
    assert rewritten(tmp_path, "device_type_name", source, at or None, **given) == source


@pytest.mark.parametrize(("source", "at", "given", "wanted"), WRONG.values(), ids=WRONG)
def test_faults_are_cured(tmp_path, source: str, at: str, given: dict, wanted: list[str]) -> None:
    """The device gives its type; a second time nothing is left to do."""
    after = rewritten(tmp_path, "device_type_name", source, at or None, **given)
    assert changed_lines(source, after) == wanted
    assert rewritten(tmp_path, "device_type_name", after, None if at not in after else at or None, **given) == after
