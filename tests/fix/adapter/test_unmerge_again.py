"""An adapter that a function merges is taken out again where it ends."""

from __future__ import annotations

import pathlib

import pytest

from tests.fix.rewriting import diff_lines, rewritten

MERGED = {
    "a function": (
        "def preview(model, prompts):\n    model.merge_adapter()\n    for one in prompts:\n        print(model.generate(one))\n",
        ["+    model.unmerge_adapter()"],
    ),
    "before it returns": (
        "def preview(self, prompts):\n    self.model.merge_adapter()\n    texts = [self.model.generate(one) for one in prompts]\n    return texts\n",
        ["+    self.model.unmerge_adapter()"],
    ),
}  # fmt: skip
LEFT = {
    "taken out": "def preview(model):\n    model.merge_adapter()\n    model.generate()\n    model.unmerge_adapter()\n",
    "kept as a value": "def preview(model):\n    return model.merge_adapter()\n",
}


@pytest.mark.parametrize(("source", "lines"), MERGED.values(), ids=MERGED)
def test_taken_out(source: str, lines: list[str], tmp_path: pathlib.Path) -> None:
    after = rewritten(tmp_path, "unmerge_again", source, "merge_adapter")
    assert diff_lines(source, after) == lines
    assert rewritten(tmp_path, "unmerge_again", after, "merge_adapter") == after


@pytest.mark.parametrize("source", LEFT.values(), ids=LEFT)
def test_left_alone(source: str, tmp_path: pathlib.Path) -> None:
    assert rewritten(tmp_path, "unmerge_again", source, "merge_adapter") == source
