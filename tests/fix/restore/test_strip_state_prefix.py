"""Keys of a wrapper's state dict lose its prefix."""

from __future__ import annotations

from dataclasses import replace

import pytest

from explainer.fix.codemod import Proposal
from explainer.fix.splice import splice
from explainer.model.incident import LogLine
from tests.fix.rewriting import best, changed_lines, failed, rewritten, write

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


SEEN = "seen in the live program: train.py:{} passes over keys that the model has: {}"
WITHOUT, WITH = "8 of 10 fit Encoder without the prefix `encoder.`", "8 of 8 fit Counter with the prefix `encoder.`"


def of_silent(folder, load: str, *said: str, line: int = 4) -> tuple[str, Proposal | None]:
    """A program with one load, after what is proposed for lines that a run was seen to pass over keys at; and the proposal."""
    source = HEAD + load + "\n"
    log = tuple(LogLine(text=SEEN.format(line, one)) for one in said)
    program = write(folder, {"train.py": source})
    proposal = best("strip_state_prefix", program, incident=replace(failed(), exceptions=(), log=log))
    after = splice(source, proposal.edits) if proposal is not None else source
    return str(after).removeprefix(HEAD).rstrip("\n"), proposal


LOAD = "net.load_state_dict(state, strict=False)"
UNSURE = {
    "two prefixes that fit": (LOAD, (WITHOUT + ", about as many by `teacher.`",)),
    "keys of other sizes": (LOAD, (WITHOUT + ", 2 would clash",)),
    "a line that loads two states": (LOAD, (WITHOUT, WITH)),
    "taken off already": ('net.load_state_dict({k.removeprefix("encoder."): v for k, v in s.items()}, False)', (WITHOUT,)),
    "keys that are made": ("net.load_state_dict({k[3:]: v for k, v in s.items()}, strict=False)", (WITH,)),
}  # fmt: skip
SIFTED = 'state = {k: v for k, v in saved["model"].items() if not k.startswith("head.")}\nnet.load_state_dict(state, strict=False)'


def test_keys_that_are_sifted_by_name(tmp_path) -> None:
    """The prefix goes before the head's keys are left out, which clash: they were meant not to come along."""
    said = WITHOUT + ", 2 would clash"
    after, _ = of_silent(tmp_path, SIFTED, said, line=5)
    renamed = '{name.removeprefix("encoder."): value for name, value in saved["model"].items()}'
    assert after == SIFTED.replace('saved["model"].items', f"{renamed}.items")
    assert of_silent(tmp_path, after, said, line=5)[0] == after
    unsure = WITHOUT + ", about as many by `teacher.`"
    assert of_silent(tmp_path, SIFTED, unsure, line=5)[0] == SIFTED


PASSED = {
    "taken off": (LOAD, WITHOUT, 'net.load_state_dict({name.removeprefix("encoder."): value for name, value in state.items()}, strict=False)'),
    "put before": (LOAD, WITH, 'net.load_state_dict({f"encoder.{name}": value for name, value in state.items()}, strict=False)'),
    "what it returns is read": (
        'missing, more = net.load_state_dict(saved["model"], False)',
        WITHOUT,
        'missing, more = net.load_state_dict({name.removeprefix("encoder."): value for name, value in saved["model"].items()}, False)',
    ),
    "given by name": (
        "net.load_state_dict(strict=False, state_dict=a or b)",
        WITHOUT,
        'net.load_state_dict(strict=False, state_dict={name.removeprefix("encoder."): value for name, value in (a or b).items()})',
    ),
    "some keys are left out": (
        'net.load_state_dict({k: v for k, v in s.items() if "fc" not in k}, strict=False)',
        WITHOUT,
        'net.load_state_dict({k.removeprefix("encoder."): v for k, v in s.items() if "fc" not in k}, strict=False)',
    ),
    "some keys are left out, put before": (
        'net.load_state_dict({k: v for k, v in s.items() if "fc" not in k}, strict=False)',
        WITH,
        'net.load_state_dict({f"encoder.{k}": v for k, v in s.items() if "fc" not in k}, strict=False)',
    ),
    "another prefix is taken off": (
        'net.load_state_dict({k.replace("module.", ""): v for k, v in s.items()}, strict=False)',
        WITHOUT,
        'net.load_state_dict({k.replace("module.", "").removeprefix("encoder."): v for k, v in s.items()}, strict=False)',
    ),
}  # fmt: skip


@pytest.mark.parametrize(("load", "said"), UNSURE.values(), ids=UNSURE)
def test_a_silent_load_is_only_told(tmp_path, load: str, said: tuple[str, ...]) -> None:
    """Where one renaming does not do, the line alone is named."""
    after, proposal = of_silent(tmp_path, load, *said)
    assert after == load
    assert proposal is not None
    assert (proposal.edits, proposal.culprit.line) == ((), 4)


@pytest.mark.parametrize(("load", "said", "wanted"), PASSED.values(), ids=PASSED)
def test_a_silent_load_is_cured(tmp_path, load: str, said: str, wanted: str) -> None:
    """The keys are renamed where they are loaded; `strict=False` goes on passing over the others."""
    assert of_silent(tmp_path, load, said)[0] == wanted


def test_a_load_that_was_not_seen_stays(tmp_path) -> None:
    """Another line of the file was seen."""
    assert of_silent(tmp_path, LOAD, WITHOUT, line=2) == (LOAD, None)
