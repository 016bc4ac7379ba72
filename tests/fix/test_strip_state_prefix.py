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
KEYS = "Missing key(s) in state_dict: {}. \n\tUnexpected key(s) in state_dict: {}. "
AVERAGED = {"message": KEYS.format('"0.weight", "0.bias"', '"n_averaged", "module.0.weight", "module.0.bias"')}
LIGHTNING = {"message": KEYS.format('"0.weight", "0.bias"', '"model.0.weight", "model.0.bias"')}
PART = {"message": KEYS.format('"0.weight", "0.bias"', '"encoder.0.weight", "encoder.0.bias", "head.weight"')}
WRAPPED = {"message": KEYS.format('"module.0.weight", "module.0.bias"', '"0.weight", "0.bias"')}
OTHER_BODY = {"message": KEYS.format('"0.weight", "1.weight"', '"model.0.weight", "model.2.weight"')}
TWO_PARTS = {"message": KEYS.format('"0.weight"', '"student.0.weight", "teacher.0.weight"')}
RIGHT = {
    "a layer that the file lacks": (HEAD + "net.load_state_dict(state)\n", "net.load", OTHER_BODY),
    "a file of two such parts": (HEAD + "net.load_state_dict(state)\n", "net.load", TWO_PARTS),
    "other keys": (HEAD + "net.load_state_dict(state)\n", "net.load", OTHER),
    "no keys named": (HEAD + "net.load_state_dict(state)\n", "net.load", {}),
    "another line": (HEAD + "net.load_state_dict(state)\nprint(net)\n", "print(net)", PREFIX),
    "stripped already": (HEAD + "net.load_state_dict({k[7:]: v for k, v in state.items()})\n", "net.load", PREFIX),
}
WRONG = {
    "an average with its counter": (
        HEAD + "net.load_state_dict(state)\n",
        "net.load",
        AVERAGED,
        [
            'net.load_state_dict({name.removeprefix("module."): value for name, value in state.items() if name.startswith("module.")})'
        ],
    ),
    "a module's attribute": (
        HEAD + "net.load_state_dict(state)\n",
        "net.load",
        LIGHTNING,
        ['net.load_state_dict({name.removeprefix("model."): value for name, value in state.items()})'],
    ),
    "a part of another model": (
        HEAD + "net.load_state_dict(state)\n",
        "net.load",
        PART,
        [
            'net.load_state_dict({name.removeprefix("encoder."): value for name, value in state.items() if name.startswith("encoder.")})'
        ],
    ),
    "a wrapped model": (
        HEAD + "net.load_state_dict(state)\n",
        "net.load",
        WRAPPED,
        ['net.load_state_dict({f"module.{name}": value for name, value in state.items()})'],
    ),
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
