"""A weight that two parts share is listed once, by the first."""

from __future__ import annotations

import pathlib

import pytest

from tests.fix.mending import run
from tests.fix.rewriting import best, changed_lines, failed, rewritten, write

pytest.importorskip("torch")
pytestmark = pytest.mark.torch

SOURCE = """import torch
from torch import nn
table = nn.Embedding(5, 3)
model = nn.ModuleDict({"a": nn.Sequential(table, nn.Linear(3, 3)), "b": nn.Sequential(table, nn.Linear(3, 5))})
groups = []
for name, rate in (("a", 0.5), ("b", 1.0)):
    PARAMS
    groups.append({"params": params, "lr": 0.5})
optimizer = torch.optim.SGD(groups)
"""
SAID = "some parameters appear in more than one parameter group"
TEST = 'not any(p is other for group in groups for other in group["params"])'


@pytest.mark.parametrize(
    ("made", "wanted"),
    [
        ("[p for p in model[name].parameters() if p.requires_grad]", f"[p for p in model[name].parameters() if p.requires_grad and {TEST}]"),
        ("[p for p in model[name].parameters()]", f"[p for p in model[name].parameters() if {TEST}]"),
    ],
)  # fmt: skip
def test_shared_weights(tmp_path: pathlib.Path, made: str, wanted: str) -> None:
    source = SOURCE.replace("PARAMS", f"params = {made}")
    with pytest.raises(ValueError, match=SAID):
        run(source, tmp_path / "broken.py")
    after = rewritten(tmp_path, "listed_by_one_part", source, "torch.optim.SGD", message=SAID)
    assert changed_lines(source, after) == [f"params = {wanted}"]
    groups = run(after, tmp_path / "mended.py")["optimizer"].param_groups
    assert [len(one["params"]) for one in groups] == [3, 2]
    assert rewritten(tmp_path, "listed_by_one_part", after, "torch.optim.SGD", message=SAID) == after


@pytest.mark.parametrize("options", ['"lr": rate', "**dict(lr=rate)"])
def test_whose_learning_rate_it_gets_is_not_chosen(tmp_path: pathlib.Path, options: str) -> None:
    """Parts with options of their own: the line is told, and nothing is edited."""
    made = "params = [p for p in model[name].parameters() if p.requires_grad]"
    source = SOURCE.replace("PARAMS", made).replace('"lr": 0.5', options)
    found = best("listed_by_one_part", write(tmp_path, {"train.py": source}), incident=failed(message=SAID))
    assert found is not None
    assert (found.edits, found.culprit.code) == ((), made)
