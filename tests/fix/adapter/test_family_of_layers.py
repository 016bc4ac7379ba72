"""Of a table of layer names the entry is chosen that the model has."""

from __future__ import annotations

import pathlib
from collections.abc import Mapping

import pytest

from explainer.fix.splice import splice
from tests.fix.rewriting import best, changed_lines, failed, write

TABLE = """import argparse, json
from peft import LoraConfig
NAMES = {"llama": ["q_proj", "v_proj"], "gpt_neox": ["query_key_value"], "all": "all-linear"}
def lora(family):
    return LoraConfig(target_modules=NAMES[family])
"""
ARGUMENT = (
    TABLE
    + """p = argparse.ArgumentParser()
p.add_argument("--family", default="llama")
lora(p.parse_args().family)
"""
)
FILE = TABLE + 'lora(json.load(open("config.json"))["family"])\n'
SAID = "Target modules {'q_proj', 'v_proj'} not found in the base model. Please check the target modules and try again."
NEOX = "gpt_neox.layers.0.attention.query_key_value gpt_neox.layers.0.mlp.dense_h_to_4h"
RECORD = """import json
from dataclasses import dataclass
from peft import LoraConfig
NAMES = {"llama": ["q_proj", "v_proj"], "gpt_neox": ["query_key_value"]}
@dataclass
class Spec:
    family: str = "llama"
    rank: int = 8
    def lora(self):
        return LoraConfig(r=self.rank, target_modules=NAMES[self.family])
Spec(**json.load(open("config.json"))["adapter"]).lora()
"""
WRONG = {
    "a field of a record that a configuration fills": (
        {"train.py": RECORD, "config.json": '{"adapter": {"family": "llama"}}'},
        "config.json", ['{"adapter": {"family": "gpt_neox"}}'],
    ),
    "a field of a record": (
        {"train.py": RECORD.replace('**json.load(open("config.json"))["adapter"]', "")},
        "train.py", ['family: str = "gpt_neox"'],
    ),
    "a default of the command line": (
        {"train.py": ARGUMENT}, "train.py", ['p.add_argument("--family", default="gpt_neox")'],
    ),
    "a configuration": (
        {"train.py": FILE, "config.json": '{"family": "llama"}'}, "config.json", ['{"family": "gpt_neox"}'],
    ),
    "a name": (
        {"train.py": ARGUMENT.replace("target_modules=NAMES[family]", "target_modules=names").replace(
            "    return", "    names = NAMES[family]\n    return")},
        "train.py", ['p.add_argument("--family", default="gpt_neox")'],
    ),
}  # fmt: skip
RIGHT = {
    "no entry fits": ({"train.py": ARGUMENT}, "h.0.attn.c_attn", SAID),
    "two entries fit": ({"train.py": ARGUMENT.replace('"all-linear"', '["dense_h_to_4h"]')}, NEOX, SAID),
    "the model was not seen": ({"train.py": ARGUMENT}, "", SAID),
    "a constant": ({"train.py": TABLE + "lora('llama')\n"}, "h.0.attn.c_attn", SAID),
    "another failure": ({"train.py": ARGUMENT}, NEOX, "it failed"),
}  # fmt: skip


def mended(folder: pathlib.Path, files: Mapping[str, str], paths: str, message: str) -> dict[str, str]:
    """The files that the edit changes."""
    for name, text in files.items():
        (folder / name).write_text(text)
    program = write(folder, {"train.py": files["train.py"]})
    facts = {"live_layers": paths} if paths else {}
    found = best("family_of_layers", program, incident=failed(message=message, facts=facts))
    texts = program.editable(edit.file for edit in found.edits) if found is not None else {}
    return {
        pathlib.Path(edit.file).name: splice(texts[edit.file].text, [edit]) or ""
        for edit in (found.edits if found is not None else ())
    }


@pytest.mark.parametrize(("files", "name", "lines"), WRONG.values(), ids=WRONG)
def test_the_entry_that_fits(files: Mapping[str, str], name: str, lines: list[str], tmp_path: pathlib.Path) -> None:
    """The word that chooses is changed where it is written."""
    for message in (SAID, "No modules were targeted for adaptation. This might be caused by a combination of"):
        after = mended(tmp_path, files, NEOX, message)
        assert list(after) == [name]
        assert changed_lines(files[name], after[name]) == lines


@pytest.mark.parametrize(("files", "paths", "message"), RIGHT.values(), ids=RIGHT)
def test_what_is_not_known_stays(files: Mapping[str, str], paths: str, message: str, tmp_path: pathlib.Path) -> None:
    assert mended(tmp_path, files, paths, message) == {}
