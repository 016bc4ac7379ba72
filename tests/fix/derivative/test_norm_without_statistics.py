"""Batch normalisation under the transforms of torch.func."""

from __future__ import annotations

import pathlib
from dataclasses import replace

import pytest

from explainer.fix.splice import splice
from explainer.model.incident import Frame
from tests.fix.mending import run
from tests.fix.rewriting import best, changed_lines, failed, line_of, write

NET = """import torch
from torch.func import functional_call, grad, vmap

torch.manual_seed(0)


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.body = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.BatchNorm1d(4), torch.nn.Linear(4, 1))

    def forward(self, x):
        return self.body(x)


def loss(params, model, x):
    return functional_call(model, params, (x,)).square().mean()


net = Net()
params = dict(net.named_parameters())
x = torch.randn(5, 6, 3)
out = CALL
"""
CALLS = {
    "grad": "grad(loss)(params, net, x[0])",
    "vmap": "vmap(loss, (None, None, 0))(params, net, x)",
    "both": "vmap(grad(loss), (None, None, 0))(params, net, x)",
}


@pytest.mark.torch
@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_running_statistics_go(tmp_path: pathlib.Path, call: str) -> None:
    """The model is changed where it is made, and the line of the normalisation is named."""
    pytest.importorskip("torch")
    source = NET.replace("CALL", call)
    with pytest.raises((RuntimeError, ValueError)) as caught:
        run(source, tmp_path / "train.py")
    program = write(tmp_path, {"train.py": source})
    incident = failed({"train.py": line_of(source, "out =")}, str(caught.value))
    below = Frame(file="/lib/torch/nn/modules/batchnorm.py", line=1, library="torch")
    record = replace(incident.exceptions[0], frames=(*incident.exceptions[0].frames, below))
    proposal = best("norm_without_statistics", program, incident=replace(incident, exceptions=(record,)))
    assert proposal is not None
    after = splice(source, proposal.edits) or ""
    assert changed_lines(source, after) == ["torch.func.replace_all_batch_norm_modules_(net)"]
    assert proposal.culprit.line == line_of(source, "BatchNorm1d")
    run(after, tmp_path / "after.py")


def test_other_writes_stay(tmp_path: pathlib.Path) -> None:
    """Where the message names a write that stands in no batch normalisation."""
    source = NET.replace("CALL", CALLS["grad"])
    program = write(tmp_path, {"train.py": source})
    incident = failed({"train.py": line_of(source, "out =")}, "in-place operation that would mutate a captured Tensor")
    assert best("norm_without_statistics", program, incident=incident) is None
