"""A module on the meta device gets memory before its weights."""

from __future__ import annotations

import pytest

from tests.fix.rewriting import changed_lines, rewritten

HEAD = "import torch\nfrom torch import nn\nwith torch.device('meta'):\n    net = nn.Linear(2, 2)\n"
RIGHT = {
    "never filled": (HEAD + "net.to('cpu')\n", "net.to", {}),
    "filled before": (HEAD + "net.apply(init)\nnet.to('cpu')\n", "net.to", {}),
    "another line": (HEAD + "net.to('cpu')\nnet.apply(init)\nprint(net)\n", "print(net)", {}),
    "allocated already": (HEAD + "net.to_empty(device='cpu')\nnet.apply(init)\n", "net.to_empty", {}),
}
WRONG = {
    "initialised afterwards": (HEAD + "net.to('cpu')\nnet.apply(init)\n", "net.to", {}, ["net.to_empty(device='cpu')"]),
    "loaded afterwards": (
        HEAD + "net = net.to(device)\nnet.load_state_dict(state)\n",
        "net = net.to",
        {},
        ["net = net.to_empty(device=device)"],
    ),
}


@pytest.mark.parametrize(("source", "at", "given"), RIGHT.values(), ids=RIGHT)
def test_right_programs_stay(tmp_path, source: str, at: str, given: dict) -> None:
    """Modules that nothing fills afterwards, and moves that are not named, are left alone."""
    assert rewritten(tmp_path, "allocate_meta_module", source, at or None, **given) == source


@pytest.mark.parametrize(("source", "at", "given", "wanted"), WRONG.values(), ids=WRONG)
def test_faults_are_cured(tmp_path, source: str, at: str, given: dict, wanted: list[str]) -> None:
    """The move becomes an allocation; a second time nothing is left to do."""
    after = rewritten(tmp_path, "allocate_meta_module", source, at or None, **given)
    assert changed_lines(source, after) == wanted
    assert rewritten(tmp_path, "allocate_meta_module", after, None if at not in after else at or None, **given) == after
