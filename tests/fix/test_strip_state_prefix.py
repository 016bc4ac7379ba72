"""Keys of a wrapper's state dict lose its prefix."""

from __future__ import annotations

import pytest

from tests.fix.rewriting import changed_lines, rewritten

HEAD = "import torch\nfrom torch import nn\nnet = nn.Linear(2, 2)\n"
PREFIX = {
    "message": 'Error: Missing key(s) in state_dict: "weight". \\n\tUnexpected key(s) in state_dict: "module.weight", "module.bias". '.replace(
        "\\\\n", "\\n"
    )
}
OTHER = {"message": 'Unexpected key(s) in state_dict: "head.weight", "module.bias". '}
COMPILED = {"message": 'Unexpected key(s) in state_dict: "_orig_mod.weight". '}
RIGHT = {
    "other keys": (HEAD + "net.load_state_dict(state)\n", "net.load", OTHER),
    "no keys named": (HEAD + "net.load_state_dict(state)\n", "net.load", {}),
    "another line": (HEAD + "net.load_state_dict(state)\nprint(net)\n", "print(net)", PREFIX),
    "stripped already": (HEAD + "net.load_state_dict({k[7:]: v for k, v in state.items()})\n", "net.load", PREFIX),
}
WRONG = {
    "a name": (
        HEAD + "net.load_state_dict(state)\n",
        "net.load",
        PREFIX,
        ['net.load_state_dict({name.removeprefix("module."): value for name, value in state.items()})'],
    ),
    "a file's part, compiled": (
        HEAD + "net.load_state_dict(torch.load('a')['model'])\n",
        "net.load",
        COMPILED,
        [
            "net.load_state_dict({name.removeprefix(\"_orig_mod.\"): value for name, value in torch.load('a')['model'].items()})"
        ],
    ),
}


@pytest.mark.parametrize(("source", "at", "given"), RIGHT.values(), ids=RIGHT)
def test_right_programs_stay(tmp_path, source: str, at: str, given: dict) -> None:
    """Keys without a prefix of their own, and loads that are not named, are left alone."""
    assert rewritten(tmp_path, "strip_state_prefix", source, at or None, **given) == source


@pytest.mark.parametrize(("source", "at", "given", "wanted"), WRONG.values(), ids=WRONG)
def test_faults_are_cured(tmp_path, source: str, at: str, given: dict, wanted: list[str]) -> None:
    """The keys are stripped where they are loaded; a second time nothing is left to do."""
    after = rewritten(tmp_path, "strip_state_prefix", source, at or None, **given)
    assert changed_lines(source, after) == wanted
    assert rewritten(tmp_path, "strip_state_prefix", after, None if at not in after else at or None, **given) == after
