"""DDP wraps a module again behind what thaws a part of it."""

from __future__ import annotations

import pathlib

import pytest

from explainer.fix.codemod import Context, find_codemod
from explainer.fix.splice import splice
from explainer.model.incident import Incident, LogLine
from explainer.model.verification import THAWED
from tests.fix.rewriting import diff_lines, line_of, write

SOURCE = """from torch.nn.parallel import DistributedDataParallel


def thaw(net, epoch):
    if epoch == 2:
        net.features.requires_grad_(True)


def train(net, loader):
    net.features.requires_grad_(False)
    model = DistributedDataParallel(net)
    for epoch in range(4):
        thaw(net, epoch)
        for x in loader:
            model(x).sum().backward()
"""
AGAIN = "+        model = DistributedDataParallel(net)"
FORMS = {
    "in a helper": (SOURCE, AGAIN),
    "in the loop": (
        SOURCE.replace("        thaw(net, epoch)\n", "        if epoch == 2:\n            for p in net.features.parameters():\n                p.requires_grad = True\n"),
        "+            model = DistributedDataParallel(net)",
    ),
    "under one name": (SOURCE.replace("    model = Dist", "    net = Dist").replace("model(x)", "net(x)"), "+        net = DistributedDataParallel(net.module)"),
}  # fmt: skip
OTHERS = {
    "thawed in two places": SOURCE.replace(
        "        thaw(net, epoch)\n", "        thaw(net, epoch)\n        thaw(net, 2)\n"
    ),
    "thawed elsewhere": SOURCE.replace("        thaw(net, epoch)\n", ""),
    "thawed before": SOURCE.replace("        thaw(net, epoch)\n", "").replace(
        "    model =", "    thaw(net, 2)\n    model ="
    ),
}


def mended(source: str, folder: pathlib.Path) -> str:
    line = line_of(source, "= DistributedDataParallel(")
    seen = LogLine(text=f"seen in the live program: train.py:{line} {THAWED}: a of Net differ between the ranks")
    context = Context(program=write(folder, {"train.py": source}), incident=Incident(log=(seen,)))
    (proposal,) = find_codemod("wrap_again")(context)
    assert proposal.culprit.line == line
    return splice(source, proposal.edits) or "" if proposal.edits else source


@pytest.mark.parametrize(("source", "line"), FORMS.values(), ids=FORMS)
def test_it_is_wrapped_again(tmp_path: pathlib.Path, source: str, line: str) -> None:
    """Behind the statement that thaws; of what is wrapped already, what stands within."""
    after = mended(source, tmp_path)
    compile(after, "train.py", "exec")
    assert [one for one in diff_lines(source, after) if one.startswith("+")] == [line]


@pytest.mark.parametrize("source", OTHERS.values(), ids=OTHERS)
def test_the_line_alone(tmp_path: pathlib.Path, source: str) -> None:
    """Where it is not known which statement thaws."""
    assert mended(source, tmp_path) == source
