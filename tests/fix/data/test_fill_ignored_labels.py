"""What the loss ignores is no index of an embedding."""

from __future__ import annotations

import pathlib

import pytest

from tests.fix.rewriting import changed_lines, rewritten

OUT = "index out of range in self"
NET = """import torch
from torch import nn
from torch.nn import functional as F

IGNORE = {ignored}


def shift_right(labels):
    shifted = labels.new_full(labels.shape, 1)
    shifted[:, 1:] = labels[:, :-1]
    return shifted{filled}


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(9, 4)
        self.head = nn.Linear(4, 9)

    def forward(self, {name}):
        {line}
        return F.cross_entropy(self.head(h).flatten(0, 1), {name}.flatten(), ignore_index=IGNORE)
"""
SHIFTED = "h = self.embed(shift_right(labels))"


def net(line: str = SHIFTED, name: str = "labels", ignored: str = "-100", filled: str = "") -> str:
    return NET.format(line=line, name=name, ignored=ignored, filled=filled)


WRONG = {
    "shifted": (net(), ["h = self.embed(shift_right(labels).clamp_min(0))"]),
    "themselves": (net("h = self.embed(targets)", "targets"), ["h = self.embed(targets.clamp_min(0))"]),
    "in a name": (net("x = shift_right(labels); h = self.embed(x)"), ["x = shift_right(labels); h = self.embed(x.clamp_min(0))"]),
}  # fmt: skip
RIGHT = {
    "filled already": net(filled=".masked_fill(shifted == IGNORE, 0)"),
    "clamped": net("h = self.embed(shift_right(labels).clamp_min(0))"),
    "words": net("h = self.embed(words)", "words"),
    "nothing is ignored": net(ignored="0"),
}


@pytest.mark.parametrize(("source", "wanted"), WRONG.values(), ids=WRONG)
def test_labels_get_a_token(source: str, wanted: list[str], tmp_path: pathlib.Path) -> None:
    """And a second time nothing is left to do."""
    after = rewritten(tmp_path, "fill_ignored_labels", source, "self.embed(", message=OUT)
    assert changed_lines(source, after) == wanted
    assert rewritten(tmp_path, "fill_ignored_labels", after, "self.embed(", message=OUT) == after


@pytest.mark.parametrize("source", RIGHT.values(), ids=RIGHT)
def test_the_rest_stays(source: str, tmp_path: pathlib.Path) -> None:
    """Other indices are out of range for another reason."""
    assert rewritten(tmp_path, "fill_ignored_labels", source, "self.embed(", message=OUT) == source


@pytest.mark.torch
def test_the_mended_net_trains(tmp_path: pathlib.Path) -> None:
    """It refuses a row that ends in ignored places, and mended gives what it gave for one without."""
    torch = pytest.importorskip("torch")
    before, mended = {}, {}
    exec(net(), before)
    exec(rewritten(tmp_path, "fill_ignored_labels", net(), "self.embed(", message=OUT), mended)
    torch.manual_seed(0)
    old, new = before["Net"](), mended["Net"]()
    new.load_state_dict(old.state_dict())
    short = torch.tensor([[3, 4, 5, 6], [3, 4, -100, -100]])
    with pytest.raises(IndexError):
        old(short)
    assert torch.isfinite(new(short))
    assert torch.equal(new(short[:1]), old(short[:1]))
