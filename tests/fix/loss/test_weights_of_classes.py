"""A loss whose weights are for another number of classes is named, and nothing is edited."""

from __future__ import annotations

import pathlib
from dataclasses import replace

import pytest

from explainer.fix.codemod import Context, find_codemod
from explainer.model.incident import Frame, Incident
from tests.fix.rewriting import failed, line_of, write

SIZES = "The size of tensor a (3) must match the size of tensor b (4) at non-singleton dimension 1"
CLASSES = "weight tensor should be defined either for all 5 classes or no classes but got weight tensor of shape: [4]"
LOGITS = "binary_cross_entropy_with_logits"
NAMED = {
    "pos_weight": ("nn.BCEWithLogitsLoss(pos_weight=counts)", SIZES, LOGITS),
    "weight": ("nn.BCEWithLogitsLoss(weight=counts)", SIZES, LOGITS),
    "classes": ("nn.CrossEntropyLoss(weight=counts, ignore_index=0)", CLASSES, "cross_entropy"),
}
OTHER = {
    "no weights": ("nn.BCEWithLogitsLoss()", SIZES, LOGITS),
    "another loss": ("nn.MSELoss()", SIZES, "mse_loss"),
    "weights of a loss that compares nothing before": ("nn.NLLLoss(weight=counts)", SIZES, "nll_loss"),
}


def lines(folder: pathlib.Path, made: str, message: str, function: str) -> list[int | None]:
    source = (
        f"import torch\nfrom torch import nn\ncounts = torch.ones(3)\ncrit = {made}  # here\nloss = crit(net(x), y)\n"
    )
    program = write(folder, {"train.py": source})
    incident: Incident = failed({"train.py": line_of(source, "loss =")}, message)
    record = incident.exceptions[0]
    inner = Frame(file="/site-packages/torch/nn/functional.py", line=1, function=function, library="torch")
    incident = replace(incident, exceptions=(replace(record, frames=(*record.frames, inner)),))
    found = list(find_codemod("weights_of_classes")(Context(program=program, incident=incident)))
    assert all(one.edits == () for one in found)
    return [one.culprit.line for one in found]


@pytest.mark.parametrize(("made", "message", "function"), NAMED.values(), ids=NAMED)
def test_what_gives_the_weights(tmp_path: pathlib.Path, made: str, message: str, function: str) -> None:
    """Where the loss is made."""
    assert lines(tmp_path, made, message, function) == [4]


@pytest.mark.parametrize(("made", "message", "function"), OTHER.values(), ids=OTHER)
def test_nothing_else(tmp_path: pathlib.Path, made: str, message: str, function: str) -> None:
    """The prediction and the target may be what does not fit."""
    assert lines(tmp_path, made, message, function) == []
