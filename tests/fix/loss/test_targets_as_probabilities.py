"""A loss that is given targets outside of 0 to 1 is named, and nothing is edited."""

from __future__ import annotations

import pathlib

import pytest

from explainer.fix.codemod import Context, find_codemod
from tests.fix.rewriting import failed, line_of, write

SAID = "all elements of target should be between 0 and 1"
CASES = {
    "a function": ("loss = F.binary_cross_entropy(out, mask)", SAID, "is given `mask`"),
    "a module": ("loss = nn.BCELoss()(out, target=mask / 2)", SAID, "is given `mask / 2`"),
    "the prediction": ("loss = F.binary_cross_entropy(out, mask)", SAID.replace("target", "input"), None),
    "a loss of classes": ("loss = F.cross_entropy(out, mask)", SAID, None),
}


@pytest.mark.parametrize(("line", "message", "said"), CASES.values(), ids=CASES)
def test_the_loss_is_named(tmp_path: pathlib.Path, line: str, message: str, said: str | None) -> None:
    """With what it is given."""
    source = f"import torch.nn.functional as F\nfrom torch import nn\nout, mask = net(x), load()\n{line}\n"
    program = write(tmp_path, {"train.py": source})
    incident = failed({"train.py": line_of(source, "loss =")}, message)
    found = list(find_codemod("targets_as_probabilities")(Context(program=program, incident=incident)))
    assert [(one.edits, one.culprit.line) for one in found] == ([((), 4)] if said else [])
    assert all(said is not None and said in one.culprit.why for one in found)
