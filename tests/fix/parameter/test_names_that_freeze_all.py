"""The names that freeze every parameter are pointed at."""

from __future__ import annotations

import pathlib
from dataclasses import replace

import pytest

from explainer.fix.codemod import Context, find_codemod
from explainer.model.incident import Fact
from tests.fix.rewriting import failed, write

SOURCE = """import fnmatch
import yaml
cfg = yaml.safe_load(open("train.yaml"))
for name, param in model.named_parameters():
    param.requires_grad_(not any(fnmatch.fnmatch(name, pattern) for pattern in cfg["freeze"]))
"""


@pytest.mark.parametrize(
    ("names", "lines"), [("encoder.w decoder.w", [3, 2]), ("encoder.w decoder.w head.w", []), ("", [])]
)
def test_the_words(tmp_path: pathlib.Path, names: str, lines: list[int]) -> None:
    """Only where they take all parameters that the live model has."""
    (tmp_path / "train.yaml").write_text("freeze:\n  - encoder.*\n  - decoder.*\n")
    program = write(tmp_path, {"train.py": SOURCE})
    facts = (Fact(name="live_parameter_names", value=names),) if names else ()
    found = find_codemod("names_that_freeze_all")(Context(program=program, incident=replace(failed(), facts=facts)))
    assert [(pathlib.Path(one.culprit.file).name, one.culprit.line) for one in found] == [
        ("train.yaml", at) for at in lines
    ]
