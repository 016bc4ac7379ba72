"""One name where a list of names is gone through is gone through letter by letter."""

from __future__ import annotations

import pathlib

import pytest

from explainer.fix.splice import splice
from tests.fix.rewriting import best, diff_lines, failed, write

NAMES = "backbone.0.weight backbone.0.bias classifier.weight classifier.bias"
FREEZER = """import yaml
from torch import nn

cfg = yaml.safe_load(open("run.yaml"))

class Freezer:
    def __init__(self, prefixes):
        self.prefixes = prefixes

    def covers(self, name):
        return any(name.startswith(prefix) for prefix in self.prefixes)

    def freeze(self, model):
        for name, parameter in model.named_parameters():
            if self.covers(name):
                parameter.requires_grad_(False)

Freezer(cfg["freeze"]).freeze(model)
"""
IN_CODE = FREEZER.replace('Freezer(cfg["freeze"])', "Freezer(FROZEN)").replace(
    'cfg = yaml.safe_load(open("run.yaml"))', 'FROZEN = ("backbone")'
)
YAML = "lr: 0.1\nfreeze: backbone\n"
EDITS = {
    "a file": (FREEZER, YAML, ["-freeze: backbone", "+freeze: [backbone]"]),
    "quoted": (FREEZER, YAML.replace("backbone", '"backbone"'), ['-freeze: "backbone"', '+freeze: ["backbone"]']),
    "a tuple without its comma": (IN_CODE, YAML, ['-FROZEN = ("backbone")', '+FROZEN = ("backbone",)']),
    "an argument": (IN_CODE.replace("Freezer(FROZEN)", 'Freezer("backbone")'), YAML, ['-Freezer("backbone").freeze(model)', '+Freezer(["backbone"]).freeze(model)']),
}  # fmt: skip
STAYS = {
    "a list": (FREEZER, YAML.replace("backbone", "[backbone]"), NAMES),
    "one word that is compared": (FREEZER.replace("any(name.startswith(prefix) for prefix in self.prefixes)", "name.startswith(self.prefixes)"), YAML, NAMES),
    "letters that leave some": (FREEZER, YAML, NAMES.replace("classifier", "head")),
    "a word that takes none": (FREEZER, YAML.replace("backbone", "backclass"), NAMES),
    "several words": (FREEZER, YAML.replace("backbone", "backbone, classifier"), NAMES),
}  # fmt: skip


def mended(folder: pathlib.Path, source: str, config: str, names: str) -> list[str]:
    """The lines that the best edit changes, for a live model whose parameters have these names."""
    (folder / "run.yaml").write_text(config)
    program = write(folder, {"train.py": source})
    proposal = best("list_of_one_word", program, incident=failed(facts={"live_parameter_names": names}))
    files = {str(folder / "train.py"): source, str(folder / "run.yaml"): config}
    changed = [
        (one.file, splice(files[one.file], [one]) or "") for one in (proposal.edits if proposal is not None else ())
    ]
    return [line for path, after in changed for line in diff_lines(files[path], after)]


@pytest.mark.parametrize("name", EDITS)
def test_the_word_becomes_a_list(tmp_path: pathlib.Path, name: str) -> None:
    source, config, lines = EDITS[name]
    assert mended(tmp_path, source, config, NAMES) == lines


@pytest.mark.parametrize("name", STAYS)
def test_what_is_no_such_word_stays(tmp_path: pathlib.Path, name: str) -> None:
    assert mended(tmp_path, *STAYS[name]) == []
