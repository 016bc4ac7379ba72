"""A freeze that takes the modules which were put round layers moves before these."""

from __future__ import annotations

import pathlib

import pytest

from tests.fix.rewriting import changed_lines, rewritten

HEAD = """import torch
from torch import nn
from transformers import BertConfig, BertForSequenceClassification


class LoRA(nn.Module):
    def __init__(self, base):
        super().__init__()
        self.base = base
        self.down = nn.Parameter(torch.zeros(4, 4))

    def forward(self, x):
        return self.base(x) + x @ self.down


"""
LOOP = """for layer in model.bert.encoder.layer:
    layer.attention.self.query = LoRA(layer.attention.self.query)
"""
FREEZE = """for p in model.parameters():
    p.requires_grad = False
"""
OPT = "opt = torch.optim.SGD([p for p in model.parameters() if p.requires_grad], lr=0.1)\n"
MADE = "model = BertForSequenceClassification(BertConfig())\n"
HELPER = """def inject(net):
    for name, child in net.named_children():
        if isinstance(child, nn.Linear):
            setattr(net, name, LoRA(child))


"""
WRONG = {
    "in a loop": (f"{HEAD}{MADE}{LOOP}", f"{HEAD}{MADE}{FREEZE}{LOOP}{OPT}"),
    "by a function": (f"{HEAD}{HELPER}{MADE}inject(model)\n", f"{HEAD}{HELPER}{MADE}{FREEZE}inject(model)\n{OPT}"),
    "one layer": (
        f"{HEAD}{MADE}model.classifier = LoRA(model.classifier)\n",
        f"{HEAD}{MADE}{FREEZE}model.classifier = LoRA(model.classifier)\n{OPT}",
    ),
}


@pytest.mark.parametrize(("before", "wanted"), WRONG.values(), ids=WRONG)
def test_the_freeze_comes_first(before: str, wanted: str, tmp_path: pathlib.Path) -> None:
    """What was put round the layers trains, and nothing else."""
    source = f"{before}{FREEZE}{OPT}"
    assert (
        rewritten(tmp_path, "unfreeze", source, "torch.optim.SGD", message="optimizer got an empty parameter list")
        == wanted
    )


def test_a_freeze_of_another_function_stays(tmp_path: pathlib.Path) -> None:
    """The head is not thawed instead: the adapters were to train."""
    source = f"{HEAD}def freeze(net):\n    net.requires_grad_(False)\n\n\n{MADE}{LOOP}freeze(model)\n{OPT}"
    after = rewritten(tmp_path, "unfreeze", source, "torch.optim.SGD", message="optimizer got an empty parameter list")
    assert changed_lines(source, after) == []


@pytest.mark.parametrize(
    "line",
    ["setattr(args, name, float(text))\n", "model.config.width = int(model.config.width)\n"],
    ids=["set", "assigned"],
)
def test_a_setting_wraps_nothing(line: str, tmp_path: pathlib.Path) -> None:
    """The head trains as it does where no setting is read."""
    source = f"{HEAD}{MADE}{line}{FREEZE}{OPT}"
    after = rewritten(tmp_path, "unfreeze", source, "torch.optim.SGD", message="optimizer got an empty parameter list")
    assert changed_lines(source, after) == ["for p in model.base_model.parameters():"]
