"""A word that is looked for in names, and found in too many, gets the name before it where that freezes one child and no more."""

from __future__ import annotations

import json
import pathlib
from dataclasses import replace

import pytest

from explainer.fix.codemod import Context, Proposal, find_codemod
from explainer.fix.splice import splice
from explainer.model.incident import Fact
from tests.fix.rewriting import failed, write

FREEZE = """import json
cfg = json.load(open("setup.json"))


def freeze(model, patterns):
    for name, p in model.named_parameters():
        if any(one in name for one in patterns):
            p.requires_grad = False


freeze(model, cfg["freeze"])
"""
OTHERS = {
    "a comprehension": FREEZE.replace(
        "    for name, p in model.named_parameters():\n        if any(one in name for one in patterns):\n            p.requires_grad = False\n",
        "    for p in [p for n, p in model.named_parameters() if any(map_ in n for map_ in patterns)]:\n        p.requires_grad_(False)\n",
    ),
    "a flag": FREEZE.replace(
        "        if any(one in name for one in patterns):\n            p.requires_grad = False\n",
        "        p.requires_grad = not any(one in name for one in patterns)\n",
    ),
}
BODY = "trunk.embed.weight trunk.stack.block.0.weight trunk.stack.block.1.weight"
NAMES = f"{BODY} block_mix head_block.weight head_block.bias"
WORDS = ["embed", "block"]


def proposed(folder: pathlib.Path, codemod: str, source: str, words: list[str], names: str) -> list[Proposal]:
    (folder / "setup.json").write_text(json.dumps({"seed": 1, "freeze": words}, indent=1))
    program = write(folder, {"train.py": source})
    facts = (Fact(name="live_parameter_names", value=names),)
    return list(find_codemod(codemod)(Context(program=program, incident=replace(failed(), facts=facts))))


@pytest.mark.parametrize("source", [FREEZE, *OTHERS.values()], ids=["a loop", *OTHERS])
def test_the_word_gets_its_part(source: str, tmp_path: pathlib.Path) -> None:
    """In the file that holds it."""
    (found,) = proposed(tmp_path, "name_of_part", source, WORDS, NAMES)
    text = splice((tmp_path / "setup.json").read_text(), found.edits)
    assert json.loads(text)["freeze"] == ["embed", "stack.block"]
    assert found.applicability == "unsafe"


REFUSED = {
    "a piece of the child would train": (WORDS, f"{BODY} trunk.block_norm.weight head_block.weight"),
    "another child is frozen too": ([*WORDS, "aux"], f"{NAMES} aux.weight"),
    "no part has that name": (["embed", "blo"], NAMES),
    "two parts have it": (WORDS, f"trunk.embed.weight trunk.a.block.0.weight trunk.b.block.0.weight head_block.weight"),
    "the child itself has it": (["trunk"], "trunk.a.weight trunk.b.weight trunk_mix head_trunk.weight"),
    "two words are loose": (["emb", "block"], f"{NAMES} emb_scale"),
    "something trains": (WORDS, f"{NAMES} classifier.weight"),
    "parts alone": (["trunk", "head"], "trunk.a.weight head.weight"),
}


@pytest.mark.parametrize(("words", "names"), REFUSED.values(), ids=REFUSED)
def test_what_was_meant_is_not_known(words: list[str], names: str, tmp_path: pathlib.Path) -> None:
    """Then no edit is proposed."""
    assert proposed(tmp_path, "name_of_part", FREEZE, words, names) == []


def test_groups_of_an_optimizer(tmp_path: pathlib.Path) -> None:
    """Words that choose a rate or a weight decay freeze nothing."""
    source = 'import json\ncfg = json.load(open("setup.json"))\nslow = [p for n, p in model.named_parameters() if any(one in n for one in cfg["freeze_not"])]\n'
    source = source.replace("freeze_not", "groups")
    (tmp_path / "setup.json").write_text(json.dumps({"groups": WORDS}))
    program = write(tmp_path, {"train.py": source})
    facts = (Fact(name="live_parameter_names", value=NAMES),)
    context = Context(program=program, incident=replace(failed(), facts=facts))
    assert not list(find_codemod("name_of_part")(context))
    assert not list(find_codemod("names_that_freeze_all")(context))


@pytest.mark.parametrize("words", [["weight", "mix", "bias"], WORDS], ids=["no part at all", "a part too"])
def test_the_words_are_pointed_at(words: list[str], tmp_path: pathlib.Path) -> None:
    """With an edit or without, each line that holds one."""
    found = proposed(tmp_path, "names_that_freeze_all", FREEZE, words, NAMES)
    assert [one.culprit.line for one in found] == list(range(3 + len(words), 3, -1))


def test_a_wrapper_is_no_matter_of_parts(tmp_path: pathlib.Path) -> None:
    """A word that is found anywhere in a name misses no beginning."""
    assert not proposed(tmp_path, "name_of_wrapper", FREEZE, ["encoder"], "net.decoder.weight net.head.weight")
