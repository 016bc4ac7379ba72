"""Trainable parameters that get gradients and belong to no optimizer are seen, and what owns or writes them otherwise is not."""

from __future__ import annotations

import pathlib

import pytest

from explainer.catalog.bundle import load_catalog
from explainer.model.verification import Unowned
from explainer.run import Job, run_program
from tests import forked
from tests.conftest import PATH
from tests.gate import some_at_gate

pytestmark = pytest.mark.torch
pytest.importorskip("torch")

HEAD = """import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem, self.trunk, self.head = nn.Linear(3, 4), nn.Linear(4, 4), nn.Linear(4, 2)

    def forward(self, x):
        return self.head(torch.tanh(self.trunk(torch.tanh(self.stem(x)))))


def groups(model, names):
    return [{"params": [p for n, p in model.named_parameters() if n.startswith(name)]} for name in names]


torch.manual_seed(0)
net, x = Net(), torch.randn(8, 3)
"""
LOOP = """
for _ in range(5):
    loss = net(x).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
"""
EMPTY = 'NAMES = "stem.", "encoder.", "head."\nopt = torch.optim.Adam(groups(net, NAMES))\n'
SEEN = {
    "an empty group": HEAD + EMPTY + LOOP,
    "in a function that ends": HEAD
    + "def main():\n    net = Net()\n    NAMES = 'stem.', 'encoder.', 'head.'\n    opt = torch.optim.Adam(groups(net, NAMES))\n"
    + LOOP.replace("\n", "\n    ")
    + "\n\nmain()\n",
    "no group at all": HEAD + 'opt = torch.optim.Adam(groups(net, ["stem.", "head."]))\n'.replace('["stem.", "head."]', "NAMES")
    .replace("opt =", 'NAMES = "stem.", "head."\nopt =') + LOOP,
}  # fmt: skip
QUIET = {
    "all of it": HEAD + "opt = torch.optim.Adam(net.parameters())\n" + LOOP,
    "the head on purpose": HEAD + "opt = torch.optim.Adam(net.head.parameters())\n" + LOOP,
    "gradients of zero": HEAD + EMPTY + LOOP.replace("net(x)", "net.head(0 * net.trunk(net.stem(x)))"),
    "frozen": HEAD
    + "net.trunk.requires_grad_(False)\nopt = torch.optim.Adam(p for p in net.parameters() if p.requires_grad)\n"
    + LOOP,
    "an optimizer each": HEAD
    + 'NAMES = "stem.", "head."\nopt, other = torch.optim.Adam(groups(net, NAMES)), torch.optim.SGD(groups(net, ["trunk"]), lr=0.1)\n'
    + LOOP
    + "other.step()\n",
    "written by the program": HEAD
    + EMPTY
    + LOOP
    + "    with torch.no_grad():\n        for p in net.trunk.parameters():\n            p -= 0.1 * p.grad\n            p.grad = None\n",
    "an optimizer that comes later": HEAD + EMPTY + LOOP + "opt = torch.optim.Adam(net.parameters())\n" + LOOP,
}


def run(folder: pathlib.Path, source: str) -> tuple[int, list[Unowned], str | None]:
    """The exit status, what was seen, and the first finding of a program."""
    (folder / "train.py").write_text(source)
    job = Job(command=(forked.python(), "train.py"), root=str(folder), catalog=load_catalog(None))
    done = run_program(job, lambda *_: None, is_shown=False)
    seen = [one for process in done.processes for one in process.unowned]
    findings = done.report.findings if done.report is not None else ()
    return done.status, seen, findings[0].cause if findings else None


@pytest.fixture(autouse=True)
def _here(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", PATH)


@pytest.mark.parametrize("source", some_at_gate(SEEN, ["an empty group"]))
def test_parameters_without_an_optimizer(tmp_path, source: str) -> None:
    """The part that no group has is named, with the line that made the optimizer."""
    status, seen, cause = run(tmp_path, source)
    assert (status, cause) == (0, "no-graph/empty-parameter-list")
    (one,) = seen
    assert (one.model, one.count, one.whole) == ("Net", 2, ("trunk",))
    assert one.children == ("stem", "trunk", "head")
    assert one.empty == ((("1", "Adam"),) if "encoder" in source else ())
    assert one.line == source[: source.index("opt = torch")].count("\n") + 1


@pytest.mark.parametrize("source", some_at_gate(QUIET, ["the head on purpose"]))
def test_nothing_is_said(tmp_path, source: str) -> None:
    """What is owned, frozen, chosen, or written by the program itself is in order."""
    status, _, cause = run(tmp_path, source)
    assert (status, cause) == (0, None)


LISTED = """import torch
from torch import nn


class Mixture(nn.Module):
    def __init__(self):
        super().__init__()
        self.gate = nn.Linear(3, 3)
        self.experts = [nn.Linear(3, 2) for _ in range(COUNT)]

    def forward(self, x):
        weights = self.gate(x).softmax(1)
        return sum(weights[:, i : i + 1] * expert(x) for i, expert in enumerate(self.experts))


torch.manual_seed(0)
net, x = Mixture(), torch.randn(8, 3)
opt = torch.optim.Adam(net.parameters())
"""


def test_layers_in_a_plain_list(tmp_path) -> None:
    """No module holds them, so that no `parameters()` gives them; one alone in a list is kept out on purpose."""
    status, (seen,), cause = run(tmp_path, LISTED.replace("COUNT", "3") + LOOP)
    assert (status, cause) == (0, "no-graph/empty-parameter-list")
    assert (seen.count, seen.names[0]) == (6, "experts.0.weight")


@pytest.mark.slow
def test_layers_in_a_list_that_are_meant_to_be(tmp_path) -> None:
    """One alone, and those that an optimizer was given."""
    assert run(tmp_path, LISTED.replace("COUNT", "1") + LOOP) == (0, [], None)
    owned = "opt.add_param_group({'params': [p for e in net.experts for p in e.parameters()]})\n"
    assert run(tmp_path, LISTED.replace("COUNT", "3") + owned + LOOP) == (0, [], None)


WEIGHED = """import torch
from torch import nn


class Weigher(nn.Module):
    def __init__(self):
        super().__init__()
        self.log_vars = [torch.zeros(1, requires_grad=True) for _ in range(2)]

    def forward(self, losses):
        return sum(torch.exp(-s) * loss + s for s, loss in zip(self.log_vars, losses))


torch.manual_seed(0)
layer, weigher, x = nn.Linear(3, 4), Weigher(), torch.randn(8, 3)
opt = torch.optim.Adam([*layer.parameters(), *weigher.parameters()])
net = lambda x: weigher([layer(x).square().mean(), layer(x).abs().mean()])
"""


def test_tensors_in_a_plain_list(tmp_path) -> None:
    """Of a module that has no parameter at all."""
    status, (seen,), cause = run(tmp_path, WEIGHED + LOOP)
    assert (status, cause) == (0, "no-graph/empty-parameter-list")
    assert (seen.model, seen.names, seen.is_plain) == ("Weigher", ("log_vars.0", "log_vars.1"), True)


REPLACED = """import torch
from torch import nn

torch.manual_seed(0)
net = nn.Sequential(nn.Linear(3, 8), nn.ReLU(), nn.Linear(8, 4))
net[0].requires_grad_(False)
opt = torch.optim.Adam(p for p in net.parameters() if p.requires_grad)
KEPT[2] = nn.Linear(8, 2)
x = torch.randn(6, 3)
for _ in range(4):
    net.zero_grad()
    net(x).square().mean().backward()
    opt.step()
"""


@pytest.mark.parametrize("kept", ["net", "old = net[2]\nnet"], ids=["let go", "kept"])
def test_a_head_that_was_replaced(tmp_path, kept: str) -> None:
    """The optimizer owns what no model has any more, and the new head has none."""
    status, seen, cause = run(tmp_path, REPLACED.replace("KEPT", kept))
    assert (status, cause) == (0, "no-graph/empty-parameter-list")
    (one,) = seen
    assert (one.model, one.count) == ("Sequential", 2)


THAWED = """
for step in range(STEPS):
    if step == 3:
        net.requires_grad_(True)
    loss = net(x).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
"""
FILTERED = (
    HEAD
    + "net.requires_grad_(False)\nnet.head.requires_grad_(True)\n"
    + "opt = torch.optim.Adam(p for p in net.parameters() if p.requires_grad)\n"
)


def test_what_is_thawed_later(tmp_path) -> None:
    """The optimizer has what required grad when it was made."""
    status, seen, cause = run(tmp_path, FILTERED + THAWED.replace("STEPS", "9"))
    assert (status, cause) == (0, "no-graph/empty-parameter-list")
    (one,) = seen
    assert (one.count, one.whole) == (4, ("stem", "trunk"))


@pytest.mark.slow
def test_what_is_thawed_and_joins(tmp_path) -> None:
    """An optimizer gets it in the same step, or is made anew, or had it all along."""
    joins = "        opt.add_param_group({'params': [*net.stem.parameters(), *net.trunk.parameters()]})\n"
    thawed = THAWED.replace("STEPS", "9")
    here = "        net.requires_grad_(True)\n"
    assert run(tmp_path, FILTERED + thawed.replace(here, here + joins)) == (0, [], None)
    anew = "        opt = torch.optim.Adam(net.parameters())\n"
    assert run(tmp_path, FILTERED + thawed.replace(here, here + anew)) == (0, [], None)
    whole = FILTERED.replace("p for p in net.parameters() if p.requires_grad", "net.parameters()")
    assert run(tmp_path, whole + thawed) == (0, [], None)


LATER = """
for step in range(10):
    if step == 3:
        for name, p in net.named_parameters():
            if "trunk" in name:
                p.requires_grad = False
        net.head = nn.Linear(4, 3)
    loss = net(x).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
"""


def test_what_is_made_later(tmp_path) -> None:
    """Fewer parameters train than before, and the new ones for nobody; a freeze by name is no choice of what an optimizer has."""
    status, seen, cause = run(tmp_path, HEAD + "opt = torch.optim.Adam(net.parameters())\n" + LATER)
    assert (status, cause) == (0, "no-graph/empty-parameter-list")
    assert [(one.count, one.whole) for one in seen] == [(2, ("head",))]
