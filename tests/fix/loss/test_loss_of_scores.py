"""A loss on probabilities that was given scores."""

from __future__ import annotations

import pathlib
from dataclasses import replace

import pytest

from explainer.fix.splice import splice
from explainer.live.crash import look
from explainer.model.incident import Fact
from tests.fix.mending import run
from tests.fix.rewriting import best, changed_lines, failed, write

HEAD = "import torch\nfrom torch import nn\nfrom torch.nn import functional as F\n"
CLASS = """torch.manual_seed(0)
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.out = nn.Linear(4, 1)
    def forward(self, x):
        return LAST(self.out(x))
net = Net()
x, y = 9 * torch.randn(32, 4), torch.ones(32, 1)
"""
SEEN = (Fact(name="live_scores", value="input"),)


@pytest.mark.parametrize(
    ("loss", "wanted"),
    [
        ("criterion = nn.BCELoss()\nloss = criterion(net(x), y)", ["criterion = nn.BCEWithLogitsLoss()"]),
        ("loss = nn.BCELoss(reduction='sum')(net(x), y)", ["loss = nn.BCEWithLogitsLoss(reduction='sum')(net(x), y)"]),
        ("loss = F.binary_cross_entropy(net(x), y)", ["loss = F.binary_cross_entropy_with_logits(net(x), y)"]),
    ],
)
@pytest.mark.parametrize("last", ["", "torch.tanh", "nn.functional.relu"], ids=["scores", "tanh", "relu"])
def test_the_loss_that_takes_scores(tmp_path: pathlib.Path, loss: str, wanted: list[str], last: str) -> None:
    source = f"{HEAD}{CLASS.replace('LAST', last)}{loss}\n"
    program = write(tmp_path, {"train.py": source})
    incident = replace(failed({"train.py": len(source.splitlines())}), facts=SEEN)
    found = best("loss_of_scores", program, incident=incident)
    after = splice(source, found.edits) if found is not None else source
    assert changed_lines(source, after or "") == ([] if last else wanted)


@pytest.mark.parametrize(("value", "is_seen"), [("torch.tensor([2.0])", True), ("torch.tensor([float('nan')])", False)])
def test_scores_are_seen(tmp_path: pathlib.Path, value: str, *, is_seen: bool) -> None:
    source = f"{HEAD}F.binary_cross_entropy({value}, torch.ones(1))\n"
    with pytest.raises(RuntimeError) as caught:
        run(source, tmp_path / "train.py")
    assert ("scores" in look(caught.value)) == is_seen
