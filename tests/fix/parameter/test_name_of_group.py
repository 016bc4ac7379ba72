"""A group whose prefix matches no name is given the part of the model that is in no group, where only one can be meant."""

from __future__ import annotations

import json

import pytest

from explainer.fix.splice import splice
from explainer.model.incident import Fact, Incident
from tests.fix.rewriting import best, diff_lines, write

GROUPS = """import json

import torch


def groups(model, specs):
    made = []
    for spec in specs:
        options = dict(spec)
        part = options.pop("part")
        made.append({"params": [p for n, p in model.named_parameters() if n.startswith(part)], **options})
    return made


"""
IN_CODE = GROUPS + 'SPECS = [{"part": "stem.", "lr": 0.1}, {"part": "encoder.", "lr": 0.2}]\n'
IN_FILE = GROUPS + 'specs = json.load(open("rates.json"))["groups"]\n'
LITERAL = """import torch


def build(model):
    body = [p for n, p in model.named_parameters() if n.startswith("encoder")]
    head = [p for n, p in model.named_parameters() if n.startswith("stem")]
    return torch.optim.SGD([{"params": body}, {"params": head, "lr": 1.0}], lr=0.1)
"""


def seen(parts: str = "stem trunk head", whole: str = "trunk", empty: str = "1") -> Incident:
    """A run that ended well, with what was seen of its model and optimizers."""
    names = {"live_parts": parts, "live_parts_without_optimizer": whole, "live_empty_groups": empty}
    return Incident(facts=tuple(Fact(name=name, value=value) for name, value in names.items()))


@pytest.mark.parametrize(
    ("source", "wanted"),
    [
        (IN_CODE, [IN_CODE.splitlines()[-1], IN_CODE.splitlines()[-1].replace("encoder", "trunk")]),
        (LITERAL, ['    body = [p for n, p in model.named_parameters() if n.startswith("encoder")]'] * 2),
    ],
    ids=["a dict", "a literal"],
)
def test_a_name_in_the_program(tmp_path, source: str, wanted: list[str]) -> None:
    """The one name that no part has becomes that of the part without a group, with leave only."""
    program = write(tmp_path, {"train.py": source})
    found = best("name_of_group", program, incident=seen())
    assert found is not None
    assert found.applicability == "unsafe"
    after = splice(source, found.edits)
    assert after is not None
    assert diff_lines(source, after) == [f"-{wanted[0]}", f"+{wanted[1].replace('encoder', 'trunk')}"]


@pytest.mark.parametrize(
    ("name", "text"), [("rates.json", None), ("rates.yaml", "groups:\n- part: stem.\n- part: encoder.\n")]
)
def test_a_name_in_the_configuration(tmp_path, name: str, text: str | None) -> None:
    """The line of the configuration is the guilty one."""
    text = text or json.dumps({"groups": [{"part": "stem."}, {"part": "encoder."}]}, indent=2)
    (tmp_path / name).write_text(text)
    program = write(tmp_path, {"train.py": IN_FILE.replace("rates.json", name)})
    found = best("name_of_group", program, incident=seen())
    assert found is not None
    assert found.culprit.file.endswith(name)
    assert found.culprit.line == 1 + text[: text.index("encoder")].count("\n")
    assert splice(text, found.edits) == text.replace("encoder", "trunk")


@pytest.mark.parametrize(
    "incident",
    [
        seen(whole=""),
        seen(whole="trunk head"),
        seen(empty="0"),
        seen(empty="2"),
        seen(parts="stem trunk head encoder"),
        Incident(),
    ],
    ids=["part of a part", "two parts", "no empty group", "two empty groups", "the name is there", "nothing seen"],
)
def test_what_is_meant_is_not_guessed(tmp_path, incident: Incident) -> None:
    """More than one answer is none."""
    program = write(tmp_path, {"train.py": IN_CODE})
    assert best("name_of_group", program, incident=incident) is None


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('"encoder."', '"encoder.layers."'),
        ('{"part": "stem.", "lr": 0.1}', '{"part": "backbone.", "lr": 0.1}'),
        ('"stem."', '"trunk."'),
    ],
    ids=["a deeper name", "two names that match nothing", "the part has a group"],
)
def test_other_names_stay(tmp_path, old: str, new: str) -> None:
    """A deeper name, two wrong ones, or a part that is named already leave open what is meant."""
    program = write(tmp_path, {"train.py": IN_CODE.replace(old, new)})
    assert best("name_of_group", program, incident=seen()) is None
