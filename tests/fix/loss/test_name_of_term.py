"""Weights of a loss get the names of its terms."""

from __future__ import annotations

import json
import pathlib

import pytest

from explainer.fix.splice import splice
from tests.fix.rewriting import best, write

TRAIN = """import json
import torch
from model import Net, total_of
cfg = json.load(open("config.json"))
net = Net()
total = total_of(net.losses(torch.ones(2, 3)), WEIGHTS)
total.backward()
"""
MODEL = """import torch
from torch import nn


class Net(nn.Module):
    def losses(self, x):
        return {"loss_box": self(x).sum(), "loss_class": self(x).mean()}


def total_of(terms, weights):
    total = torch.zeros(())
    for name, value in terms.items():
        if name in weights:
            total = total + weights[name] * value
    return total
"""


def named(
    folder: pathlib.Path, weights: dict[str, float], model: str = MODEL, *, in_code: bool = False
) -> list[str] | None:
    """The names of the weights after the edit, in a configuration file or in the program; None without one."""
    source = TRAIN.replace("WEIGHTS", json.dumps(weights) if in_code else 'cfg["weights"]')
    text = json.dumps({"lr": 0.1, "weights": weights}, indent=2)
    (folder / "config.json").write_text(text)
    program = write(folder, {"train.py": source, "model.py": model})
    proposal = best("name_of_term", program)
    if proposal is None:
        return None
    assert proposal.culprit.file.endswith("train.py" if in_code else "config.json")
    after = splice(source if in_code else text, proposal.edits) or ""
    if in_code:
        start = after.index("{", after.index("total_of("))
        return list(json.loads(after[start : after.index("}") + 1]))
    return list(json.loads(after)["weights"])


@pytest.mark.parametrize("in_code", [False, True], ids=["a file", "the program"])
@pytest.mark.parametrize(
    ("weights", "wanted"),
    [
        ({"box_loss": 1.0, "class_loss": 0.5}, ["loss_box", "loss_class"]),
        ({"box": 1.0, "class": 0.5}, ["loss_box", "loss_class"]),
        ({"weight_class": 0.5}, ["loss_class"]),
        ({"classLoss": 0.5}, ["loss_class"]),
    ],
)
def test_each_name_is_a_term(
    weights: dict[str, float], wanted: list[str], in_code: bool, tmp_path: pathlib.Path
) -> None:
    """Another order of its words, or those that say what it is of."""
    assert named(tmp_path, weights, in_code=in_code) == wanted


RIGHT = {
    "one that fits": ({"loss_box": 1.0, "class_loss": 0.5}, MODEL),
    "another word": ({"box_loss": 1.0, "label_loss": 0.5}, MODEL),
    "two for one": ({"box_loss": 1.0, "box_weight": 0.5}, MODEL),
    "terms that are not seen": ({"box_loss": 1.0}, MODEL.replace('{"loss_box": self(x).sum(), "loss_class": self(x).mean()}', "self.terms(x)")),
    "no question for the name": ({"box_loss": 1.0}, MODEL.replace("if name in weights", "if value > 0")),
}  # fmt: skip


@pytest.mark.parametrize(("weights", "model"), RIGHT.values(), ids=RIGHT)
def test_what_is_not_sure_stays(weights: dict[str, float], model: str, tmp_path: pathlib.Path) -> None:
    """A name that fits, that means nothing here or two things, and terms of which nothing is known."""
    assert named(tmp_path, weights, model) is None
