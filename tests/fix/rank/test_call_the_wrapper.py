"""A module that is called past its DDP wrapper is called through it."""

from __future__ import annotations

import pathlib

import pytest

from explainer.fix.codemod import Context, find_codemod
from explainer.fix.splice import splice
from explainer.model.incident import Incident, LogLine
from explainer.model.verification import BYPASSED
from tests.fix.rewriting import changed_lines, line_of, write

SOURCE = """import torch
from torch.nn.parallel import DistributedDataParallel


def train(net, loader):
    model = DistributedDataParallel(net)
    for x in loader:
        loss = net(x).sum()
        loss.backward()
    with torch.no_grad():
        print(net(x))
"""
OWN = """from torch.nn.parallel import DistributedDataParallel


class Trainer:
    def __init__(self, net):
        self.net = net
        self.model = DistributedDataParallel(self.net)

    def step(self, x):
        self.net(x).sum().backward()
"""
FORMS = {
    "its own name": (SOURCE, ["loss = model(x).sum()"]),
    "within the wrapper": (SOURCE.replace("loss = net(x)", "loss = model.module(x)"), ["loss = model(x).sum()"]),
    "one name": (SOURCE.replace("model = Dist", "net = Dist").replace("loss = net(x)", "loss = net.module(x)"), ["loss = net(x).sum()"]),
    "attributes": (OWN, ["self.model(x).sum().backward()"]),
}  # fmt: skip


@pytest.mark.parametrize(("source", "lines"), FORMS.values(), ids=FORMS)
def test_the_wrapper_is_called(tmp_path: pathlib.Path, source: str, lines: list[str]) -> None:
    """Where a graph is recorded; what is only evaluated stays."""
    line = line_of(source, "= DistributedDataParallel(")
    seen = LogLine(text=f"seen in the live program: train.py:{line} {BYPASSED}: a of Net differ between the ranks")
    context = Context(program=write(tmp_path, {"train.py": source}), incident=Incident(log=(seen,)))
    (proposal,) = find_codemod("call_the_wrapper")(context)
    assert changed_lines(source, splice(source, proposal.edits)) == lines
