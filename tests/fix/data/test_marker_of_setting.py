"""A setting that names another marker than the labels have gets theirs; a label that nothing marks may be a class."""

from __future__ import annotations

import pathlib

import pytest

from explainer.fix.splice import splice
from tests.fix.rewriting import best, diff_lines, failed, line_of, write

REFUSED = "Target 255 is out of bounds."
TABLE = """import json
import torch.nn as nn
from data import batches

LOSSES = {"pixels": nn.CrossEntropyLoss, "edges": nn.BCEWithLogitsLoss}
options = dict(json.load(open("config.json"))["loss"])
criterion = LOSSES[options.pop("name")](**options)

def step(model):
    for image, mask in batches():
        criterion(model(image), mask).backward()
"""
SPREAD = TABLE.replace('LOSSES[options.pop("name")]', "nn.CrossEntropyLoss")
FLAG = """import argparse
import torch.nn.functional as F
from data import batches

parser = argparse.ArgumentParser()
parser.add_argument("--ignore-label", type=int, default=-1)
args = parser.parse_args()

def step(model):
    for image, mask in batches():
        F.cross_entropy(model(image), mask, ignore_index=args.ignore_label).backward()
"""
FIELDS = """from dataclasses import dataclass
import torch.nn.functional as F
from data import batches

@dataclass
class Settings:
    lr: float = 0.1
    ignore: int = -100

def step(model, cfg=Settings()):
    for image, mask in batches():
        F.cross_entropy(model(image), mask, ignore_index=cfg.ignore).backward()
"""
CONSTANT = """import torch.nn.functional as F
from data import batches

IGNORE_INDEX = -1

def step(model):
    for image, mask in batches():
        F.cross_entropy(model(image), mask, ignore_index=IGNORE_INDEX).backward()
"""
LITERAL = CONSTANT.replace("ignore_index=IGNORE_INDEX", "ignore_index=-1").replace("IGNORE_INDEX = -1", "")
DATA = "VOID = 255\n\ndef batches():\n    yield image, mask\n"
NAMELESS = "def batches():\n    mask[border] = 255\n    yield image, mask\n"
CONFIG = '{\n  "loss": {\n    "name": "pixels",\n    "ignore_index": -1\n  },\n  "lr": 0.1\n}\n'
MENDED = {
    "of a file": (TABLE, DATA, CONFIG, ['-    "ignore_index": -1', '+    "ignore_index": 255']),
    "of a file, its loss known": (SPREAD, DATA, CONFIG, ['-    "ignore_index": -1', '+    "ignore_index": 255']),
    "a marker that is a setting": (
        TABLE, NAMELESS, CONFIG.replace('"lr": 0.1', '"void_label": 255'), ['-    "ignore_index": -1', '+    "ignore_index": 255'],
    ),
    "of an argument": (
        FLAG, DATA, "{}\n",
        ['-parser.add_argument("--ignore-label", type=int, default=-1)', '+parser.add_argument("--ignore-label", type=int, default=255)'],
    ),
    "of a record": (FIELDS, DATA, "{}\n", ["-    ignore: int = -100", "+    ignore: int = 255"]),
    "of a constant": (CONSTANT, DATA, "{}\n", ["-IGNORE_INDEX = -1", "+IGNORE_INDEX = 255"]),
    "of the call": (
        LITERAL, DATA, "{}\n",
        ["-        F.cross_entropy(model(image), mask, ignore_index=-1).backward()",
         "+        F.cross_entropy(model(image), mask, ignore_index=255).backward()"],
    ),
    "the usual one": (CONSTANT, NAMELESS, "{}\n", ["-IGNORE_INDEX = -1", "+IGNORE_INDEX = 255"]),
}  # fmt: skip
LEFT = {
    "nothing is left out": (LITERAL.replace(", ignore_index=-1", ""), DATA, CONFIG, REFUSED),
    "another label": (TABLE, DATA, CONFIG, "Target 7 is out of bounds."),
    "a label of which nothing says that it is a marker": (TABLE, DATA, CONFIG, "Target 4 is out of bounds."),
    "both are markers": (
        LITERAL, DATA + "\ndef collate(rows):\n    return pad_sequence(rows, padding_value=-1)\n", "{}\n", REFUSED,
    ),
    "two settings of such a name": (TABLE, DATA, CONFIG.replace('"lr": 0.1', '"ignore_label": -1'), REFUSED),
    "it is left out": (CONSTANT.replace("-1", "255"), DATA, "{}\n", REFUSED),
}  # fmt: skip


def proposal_of(folder, source, data, config, message, tensors=None):
    program = write(folder, {"train.py": source, "data.py": data})
    (folder / "config.json").write_text(config)
    at = "criterion(model" if "criterion(model" in source else "F.cross"
    return program, best(
        "marker_of_setting", program, incident=failed({"train.py": line_of(source, at)}, message, tensors=tensors)
    )


@pytest.mark.parametrize(("source", "data", "config", "lines"), MENDED.values(), ids=MENDED)
def test_takes_the_marker_of_the_labels(source, data, config, lines, tmp_path: pathlib.Path) -> None:
    program, proposal = proposal_of(tmp_path, source, data, config, REFUSED)
    assert proposal is not None
    (path,) = {edit.file for edit in proposal.edits}
    before = program.editable([path])[path].text
    assert [line.rstrip(",") for line in diff_lines(before, splice(before, proposal.edits) or "")] == lines
    assert proposal.culprit.file == path


@pytest.mark.parametrize(("source", "data", "config", "message"), LEFT.values(), ids=LEFT)
def test_left_alone(source, data, config, message, tmp_path: pathlib.Path) -> None:
    assert proposal_of(tmp_path, source, data, config, message)[1] is None


def test_many_classes(tmp_path: pathlib.Path) -> None:
    """255 may be a class of a model that has about as many."""
    tensors = {"scores": "[4, 255, 8, 8] float32", "mask": "[4, 8, 8] int64"}
    assert proposal_of(tmp_path, CONSTANT, NAMELESS, "{}\n", REFUSED, tensors)[1] is None
