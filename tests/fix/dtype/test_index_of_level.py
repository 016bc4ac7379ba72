"""A target among levels becomes the index of its level, where the evaluation decodes classes by them."""

from __future__ import annotations

import pathlib

import pytest

from explainer.fix.splice import splice
from tests.fix.rewriting import best, changed_lines, failed, line_of, write

SOURCE = """import numpy as np
import torch
import torch.nn.functional as F

LEVELS = MADE


def evaluate(net, x, stars):
    probs = net(x).softmax(-1)
    return (DECODED - stars).abs().mean()


for x, stars in loader:
    logits = net(x)
    loss = F.cross_entropy(logits, stars)
"""
INDEX = "loss = F.cross_entropy(logits, torch.bucketize(stars, torch.as_tensor(LEVELS, dtype=stars.dtype, device=stars.device)))"
TOP, MEAN = "LEVELS[probs.argmax(-1)]", "probs @ torch.from_numpy(LEVELS)"
CASES = {
    "the most probable level": ("torch.arange(0.5, 5.01, 0.5)", TOP, "float32", INDEX),
    "the expected level": ("np.arange(1, 11, dtype=np.float32) / 2", MEAN, "float32", INDEX),
    "levels one by one": ("[0.0, 0.25, 1.0, 4.0]", TOP, "float64", INDEX),
    "levels by a step that has a name": ("torch.arange(1, 11) * STEP\nSTEP = 0.5", TOP, "float32", INDEX),
    "levels by a step of which nothing is known": ("torch.arange(1, 11) * STEP", TOP, "float32", None),
    "levels that fall": ("[4.0, 1.0, 0.25]", TOP, "float32", None),
    "levels that are turned": ("torch.arange(0.5, 5.01, 0.5) * -1", TOP, "float32", None),
    "whole numbers": ("torch.arange(0.5, 5.01, 0.5)", TOP, "int32", None),
    "nothing decodes": ("torch.arange(0.5, 5.01, 0.5)", "probs.argmax(-1)", "float32", None),
}


@pytest.mark.parametrize(("made", "decoded", "dtype", "wanted"), CASES.values(), ids=CASES)
def test_a_level_becomes_its_index(
    tmp_path: pathlib.Path, made: str, decoded: str, dtype: str, wanted: str | None
) -> None:
    """By the table of the evaluation, if that rises; a second time nothing is left to do."""
    source = SOURCE.replace("MADE", made).replace("DECODED", decoded)
    tensors = {"stars": f"[32] {dtype}", "logits": "[32, 10] float32"}
    incident = failed({"train.py": line_of(source, "loss = F")}, tensors=tensors)
    found = best("index_of_level", write(tmp_path, {"train.py": source}), incident=incident)
    after = splice(source, found.edits) if found is not None else source
    assert changed_lines(source, after) == ([wanted] if wanted else [])
    assert best("index_of_level", write(tmp_path, {"train.py": after}), incident=incident) is None or wanted is None


def test_levels_of_another_file(tmp_path: pathlib.Path) -> None:
    """By the name that the failing file imports."""
    source = SOURCE.replace("LEVELS = MADE\n", "from data import LEVELS\n").replace("DECODED", TOP)
    files = {"train.py": source, "data.py": "import torch\nLEVELS = torch.arange(0.5, 5.01, 0.5)\n"}
    incident = failed({"train.py": line_of(source, "loss = F")}, tensors={"stars": "[32] float32"})
    found = best("index_of_level", write(tmp_path, files), incident=incident)
    assert changed_lines(source, splice(source, found.edits)) == [INDEX]
    files["train.py"] = source.replace("from data", "from other")
    files["other.py"] = "LEVELS = load()\n"
    assert best("index_of_level", write(tmp_path, files), incident=incident) is None
