"""A loss that a function makes for one network takes what another loss trains detached, where a trace saw it stray there."""

from __future__ import annotations

import importlib.util
import pathlib
import sys
from dataclasses import replace

import pytest

from explainer.fix.codemod import Context, find_codemod
from explainer.fix.splice import splice
from tests.fix.rewriting import diff_lines, failed, write

pytestmark = pytest.mark.torch
torch = pytest.importorskip("torch")

PHASES = """import torch
from torch import nn

torch.manual_seed(0)
G, D = nn.Linear(3, 2), nn.Sequential(nn.Linear(2, 4), nn.Tanh(), nn.Linear(4, 1))


def d_loss(real, fake):
    return D(fake).mean() - D(real).mean()


def g_loss(real, fake):
    return -D(fake).mean()


class Phase:
    def __init__(self, loss_of, net):
        self.loss_of, self.opt = loss_of, torch.optim.SGD(net.parameters(), lr=0.1)

    def run(self, *batch):
        loss = self.loss_of(*batch)
        self.opt.zero_grad()
        loss.backward()
        self.opt.step()


phases = [Phase(d_loss, D), Phase(g_loss, G)]
for _ in range(2):
    fake = G(torch.randn(4, 3))
    for phase in phases:
        phase.run(torch.randn(4, 2), fake)
"""
OTHERS = {
    "what the first loss left there counts": PHASES.replace("        self.opt.zero_grad()\n", "").replace(
        "    fake = G", "    for phase in phases:\n        phase.opt.zero_grad()\n    fake = G"
    ),
    "one optimizer owns both": PHASES.replace("net.parameters()", "[*G.parameters(), *D.parameters()]"),
    "the function is given it by another name": PHASES.replace(
        "def d_loss(real, fake):", "def d_loss(real, made):"
    ).replace("return D(fake).mean() - D(real)", "return D(made).mean() - D(real)"),
}


def mended(folder: pathlib.Path, text: str) -> str:
    """The program with the one edit that its trace leads to; as it is where there is none."""
    import gradfix

    with pytest.raises(RuntimeError, match="second time|modified by an inplace"), gradfix.trace() as seen:
        run(folder, "train", text)
    context = Context(program=write(folder, {"train.py": text}), incident=replace(failed(), traced=seen.lines))
    found = list(find_codemod("detach_what_strayed")(context))
    after = splice(text, found[0].edits) if found else text
    assert after is not None
    return after


def run(folder: pathlib.Path, name: str, text: str) -> None:
    path = folder / f"{name}.py"
    path.write_text(text)
    spec = importlib.util.spec_from_file_location(f"{name}_of_{folder.name}", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)


def test_one_function_makes_each_loss(tmp_path: pathlib.Path) -> None:
    """The same lines go back and step for both; the program trains with the edit."""
    after = mended(tmp_path, PHASES)
    assert diff_lines(PHASES, after) == [
        "-    return D(fake).mean() - D(real).mean()",
        "+    return D(fake.detach()).mean() - D(real).mean()",
    ]
    run(tmp_path, "fixed", after)


def test_what_two_generators_made(tmp_path: pathlib.Path) -> None:
    """Both are detached at once: with one alone the other's graph is used up still."""
    text = PHASES.replace("G, D = nn.Linear(3, 2),", "G = nn.ModuleList([nn.Linear(3, 2), nn.Linear(3, 2)])\nD =")
    text = text.replace(
        "def d_loss(real, fake):\n    return D(fake).mean()",
        "def d_loss(real, fake, other):\n    return D(fake).mean() + D(other).mean()",
    )
    text = text.replace(
        "def g_loss(real, fake):\n    return -D(fake).mean()",
        "def g_loss(real, fake, other):\n    return -D(fake).mean() - D(other).mean()",
    )
    text = text.replace("fake = G(torch.randn(4, 3))", "fake, other = (one(torch.randn(4, 3)) for one in G)").replace(
        "torch.randn(4, 2), fake)", "torch.randn(4, 2), fake, other)"
    )
    after = mended(tmp_path, text)
    assert "return D(fake.detach()).mean() + D(other.detach()).mean() - D(real).mean()" in after
    run(tmp_path, "fixed", after)


@pytest.mark.parametrize("text", OTHERS.values(), ids=OTHERS)
def test_what_stays(tmp_path: pathlib.Path, text: str) -> None:
    assert mended(tmp_path, text) == text
