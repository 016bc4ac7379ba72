"""A pattern that fits no parameter of the live model gets the name that it means."""

from __future__ import annotations

import pathlib

import pytest

from explainer.fix.codemod import Context, Proposal, find_codemod
from explainer.fix.splice import splice
from explainer.model.incident import Fact, Incident
from explainer.source.program import Program
from tests.fix.rewriting import failed, write

NAMES = "encoder.layers.0.weight encoder.layers.1.weight encoder.layers.1.bias head.weight head.bias"
LOOP = "import re\nfor n, p in model.named_parameters():\n    p.requires_grad = TEST\n"
LIST = 'params = [p for n, p in model.named_parameters() if n.startswith("WORD")]\n'


def loop(test: str) -> str:
    return LOOP.replace("TEST", test)


def with_list(word: str) -> str:
    return LIST.replace("WORD", word)


KEPT = {
    "one of the words fits": loop('n.startswith(("head", "encoder.layer.1"))'),
    "a part that fits": with_list("encoder.layers"),
    "nothing is near": with_list("decoder"),
    "a word with none near beside one with": loop('n.startswith(("decoder", "encoder.layer.1"))'),
    "words that are not seen": "params = [p for n, p in model.named_parameters() if n.startswith(prefix)]\n",
    "another beginning, which another edit puts there": with_list("layers.0"),
    "all of the model": loop('any(re.match(one, n) for one in ["encoder.layer", "heads"])'),
}
MEANT = {
    "a beginning": (with_list("encoder.layer.1"), with_list("encoder.layers.1")),
    "several": (loop('n.startswith(("encoder.layer.1.", "heads."))'), loop('n.startswith(("encoder.layers.1.", "head."))')),
    "a pattern": (loop(r're.search(r"encoder\.layer\.1", n) is not None'), loop(r're.search(r"encoder\.layers\.1", n) is not None')),
    "a pattern that is compiled": (
        'import re\nRULES = [re.compile(one) for one in (r"layer\\.1",)]\n' + loop("any(one.search(n) for one in RULES)"),
        'import re\nRULES = [re.compile(one) for one in (r"layers\\.1",)]\n' + loop("any(one.search(n) for one in RULES)"),
    ),
    "the first part": (loop('n.split(".")[0] in ["heads"]'), loop('n.split(".")[0] in ["head"]')),
    "any part": (loop('"heads" in n.split(".")'), loop('"head" in n.split(".")')),
    "the end": (loop('n.endswith("1.biases")').replace("biases", "Bias"), loop('n.endswith("1.bias")')),
    "another word for the head": (with_list("classifier"), with_list("head")),
}  # fmt: skip


def proposed(program: Program, names: str = NAMES) -> list[Proposal]:
    incident = failed(message="optimizer got an empty parameter list")
    facts = (Fact(name="live_parameter_names", value=names),) if names else ()
    return list(
        find_codemod("name_of_parameter")(
            Context(program=program, incident=Incident(exceptions=incident.exceptions, facts=facts))
        )
    )


@pytest.mark.parametrize("source", KEPT.values(), ids=KEPT)
def test_what_is_not_sure_stays(source: str, tmp_path: pathlib.Path) -> None:
    """No edit where a word fits, where one has no near name, or where all of the model would train."""
    assert all(not one.edits for one in proposed(write(tmp_path, {"train.py": source})))


@pytest.mark.parametrize(("source", "after"), MEANT.values(), ids=MEANT)
def test_the_name_that_is_meant(source: str, after: str, tmp_path: pathlib.Path) -> None:
    """Each word that fits nothing is written as the model names it."""
    (one,) = proposed(write(tmp_path, {"train.py": source}))
    assert splice(source, one.edits) == after


def test_words_of_a_file(tmp_path: pathlib.Path) -> None:
    """They are mended where they are written."""
    text = "train:\n  - 'encoder.layer.1.*'\n  - head.*\n"
    (tmp_path / "tune.yaml").write_text(text)
    source = (
        'import fnmatch, yaml\ncfg = yaml.safe_load(open("tune.yaml"))\n'
        "params = [p for n, p in model.named_parameters() if any(fnmatch.fnmatch(n, one) for one in cfg['train'])]\n"
    )
    program = write(tmp_path, {"train.py": source})
    (one,) = proposed(program, NAMES.replace("head", "heads"))
    assert splice(text, one.edits) == text.replace("layer", "layers").replace("head.", "heads.")
    assert one.applicability == "safe"


def test_doubled_backslashes(tmp_path: pathlib.Path) -> None:
    """JSON writes each backslash of a pattern twice."""
    text = '{"train": ["encoder\\\\.layer\\\\.1\\\\..*"]}'
    (tmp_path / "tune.json").write_text(text)
    source = (
        'import json, re\ncfg = json.load(open("tune.json"))\nrules = [re.compile(one) for one in cfg["train"]]\n'
        "params = [p for n, p in model.named_parameters() if any(rule.match(n) for rule in rules)]\n"
    )
    (one,) = proposed(write(tmp_path, {"train.py": source}))
    assert splice(text, one.edits) == text.replace("layer", "layers")


def test_the_nearest_are_told(tmp_path: pathlib.Path) -> None:
    """Without an edit the word is pointed at, with names that the model has."""
    (one,) = proposed(write(tmp_path, {"train.py": with_list("encoder.layers.7")}))
    assert one.edits == ()
    assert "`encoder.layers.1`" in one.culprit.why


def test_nothing_is_known_of_the_model(tmp_path: pathlib.Path) -> None:
    """Without the live names nothing is said."""
    assert proposed(write(tmp_path, {"train.py": with_list("encoder.layer.1")}), "") == []


def test_a_head_is_a_guess(tmp_path: pathlib.Path) -> None:
    """Another word for the same part is left to ask for."""
    (one,) = proposed(write(tmp_path, {"train.py": with_list("classifier")}))
    assert one.applicability == "unsafe"


ADAPTER = (
    "h.0.attn.base.weight h.0.attn.lora_A.weight h.0.attn.lora_B.weight h.1.attn.base.weight h.1.attn.lora_A.weight"
)


@pytest.mark.parametrize(
    ("test", "wanted"),
    [
        ('"loraA" in n or "loraB" in n', '"lora_A" in n or "lora_B" in n'),
        ('n.startswith("lora_")', '"lora_" in n'),
        ('not n.startswith("lora_")', 'not ("lora_" in n)'),
        ('n.startswith("base") or "lora_" in n', None),
        ('n.startswith("h")', None),
    ],
)
def test_the_names_of_an_adapter(tmp_path: pathlib.Path, test: str, wanted: str | None) -> None:
    """The tests of one condition are mended together: with the first alone half of each adapter would stay frozen."""
    found = proposed(write(tmp_path, {"train.py": loop(test)}), ADAPTER)
    edits = [splice(loop(test), one.edits) for one in found if one.edits]
    assert edits == ([loop(wanted)] if wanted else [])


STAGES = """import yaml
def only(model, prefixes):
    return [p for n, p in model.named_parameters() if any(n == one or n.startswith(one + ".") for one in prefixes)]
def run(model, plan):
    for number, stage in enumerate(plan["stages"]):
        torch.optim.SGD(only(model, stage["train"]), lr=0.1)
run(model, yaml.safe_load(open("plan.yaml")))
"""
PLAN = """stages:
  - name: top
    train: [head]
  - name: more
    train: [head, encoder.layers.1]
  - name: bottom
    train: [encoder.layer.0]
"""


def test_one_stage_of_a_plan(tmp_path: pathlib.Path) -> None:
    """The words of the other stages fit, and stay."""
    (one,) = proposed(write(tmp_path, {"train.py": STAGES, "plan.yaml": PLAN}))
    assert splice(PLAN, one.edits) == PLAN.replace("encoder.layer.0", "encoder.layers.0")
    assert proposed(write(tmp_path, {"train.py": STAGES, "plan.yaml": PLAN.replace("encoder.layer.0", "head")})) == []
