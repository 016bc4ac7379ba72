"""An optimizer that was made before the model's layers were replaced is made behind them, where nothing stands in the way."""

from __future__ import annotations

import pathlib

import pytest

from explainer.fix.splice import splice
from explainer.model.incident import Fact, Incident
from explainer.model.trace import UNOWNED, TracedLine
from tests.fix.rewriting import best, diff_lines, line_of, rewritten, write

HEAD = """import torch
from torch import nn
from layers import replace_head


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Linear(4, 8)
        self.fc = nn.Linear(8, 20)


class Trainer:
    def __init__(self, model, lr):
        self.optimizer = torch.optim.SGD(model.parameters(), lr=lr)  # of the class


model = Net()
"""
LAYERS = """from torch import nn


def replace_head(model, classes):
    model.fc = nn.Linear(8, classes)
    return model
"""
MAKES = {
    "there": "optimizer = torch.optim.SGD(model.parameters(), lr=0.1)  # here\n",
    "in a class": "trainer = Trainer(model, 0.1)\n",
}
REPLACES = {
    "there": "model.fc = nn.Linear(8, 7)\n",
    "a weight alone": "model.fc.weight = nn.Parameter(torch.zeros(20, 8))\n",
    "in a helper": "replace_head(model, 7)\n",
    "in a helper that hands it back": "model = replace_head(model, 7)\n",
}


def edited(folder: pathlib.Path, makes: str, between: str, replaces: str) -> tuple[str, str]:
    """The program's last lines before and after the edit, for a run in which `fc` belonged to no optimizer."""
    source = HEAD + makes + between + replaces
    program = write(folder, {"train.py": source, "layers.py": LAYERS})
    line = line_of(source, "# here" if "# here" in makes else "# of the class")
    seen = TracedLine(
        kind=UNOWNED,
        operation="Optimizer",
        file=str(folder / "train.py"),
        line=line,
        function="f",
        says="",
        is_guess=True,
    )
    incident = Incident(traced=(seen,), facts=(Fact(name="live_parts", value="fc"),))
    proposal = best("optimizer_behind_layers", program, incident=incident)
    after = splice(source, proposal.edits) if proposal is not None else source
    assert after is not None
    return source.removeprefix(HEAD), after.removeprefix(HEAD)


@pytest.mark.parametrize("makes", MAKES.values(), ids=MAKES)
@pytest.mark.parametrize("replaces", REPLACES.values(), ids=REPLACES)
def test_the_optimizer_comes_last(tmp_path: pathlib.Path, makes: str, replaces: str) -> None:
    """What stands between them stays where it was, unless it uses the optimizer: then the layers move."""
    assert edited(tmp_path, makes, "print(model)\n", replaces)[1] == f"print(model)\n{replaces}{makes}"
    name = makes.partition(" ")[0]
    assert edited(tmp_path, makes, f"print({name})\n", replaces)[1] == f"{replaces}{makes}print({name})\n"


@pytest.mark.parametrize("makes", MAKES.values(), ids=MAKES)
def test_what_cannot_be_moved_stays(tmp_path: pathlib.Path, makes: str) -> None:
    """The optimizer is used before there is what the layers are made of."""
    name = makes.partition(" ")[0]
    before, after = edited(tmp_path, makes, f"classes = len({name}.state_dict())\n", "replace_head(model, classes)\n")
    assert after == before


def test_an_entry_of_a_sequence(tmp_path: pathlib.Path) -> None:
    """`model[-1] = nn.Linear(...)` replaces a layer too."""
    source = (
        "from torch import nn, optim\nmodel = nn.Sequential(nn.Linear(2, 2))\nopt = optim.SGD(model.parameters(), 1)\n"
    )
    source += "print(model)\nmodel[-1] = nn.Linear(2, 3)\n"
    program = write(tmp_path, {"train.py": source})
    seen = TracedLine(
        kind=UNOWNED,
        operation="Optimizer",
        file=str(tmp_path / "train.py"),
        line=3,
        function="f",
        says="",
        is_guess=True,
    )
    incident = Incident(traced=(seen,), facts=(Fact(name="live_parts", value="0"),))
    proposal = best("optimizer_behind_layers", program, incident=incident)
    assert proposal is not None
    after = (splice(source, proposal.edits) or "").splitlines()
    assert after[2:] == ["print(model)", "model[-1] = nn.Linear(2, 3)", "opt = optim.SGD(model.parameters(), 1)"]


STAGES = """from torch import nn, optim

class Machine:
    def __init__(self):
        self.net = Net()
        self.opt = optim.SGD(self.net.parameters(), lr=0.1)

    def adapt(self):
        self.net.task = nn.Linear(12, 4)
        self.train()
"""
LOOPED = """from torch import nn, optim
model = Net()
opt = optim.SGD(model.parameters(), lr=0.1)
for epoch in range(3):
    if epoch == 1:
        model.task = nn.Linear(12, 4)
"""
JOINS = {
    "of the same object": (STAGES, '+        self.opt.add_param_group({"params": self.net.task.parameters()})'),
    "of the same function": (LOOPED, '+        opt.add_param_group({"params": model.task.parameters()})'),
    "of another object": (STAGES.replace("    def adapt", "class Other:\n    def adapt"), None),
}


@pytest.mark.parametrize(("source", "line"), JOINS.values(), ids=JOINS)
def test_what_a_later_stage_makes_joins(tmp_path: pathlib.Path, source: str, line: str | None) -> None:
    """The optimizer has stepped by then: it gets the new layer beside what it has."""
    program = write(tmp_path, {"train.py": source})
    at, path = line_of(source, "optim.SGD"), str(tmp_path / "train.py")
    seen = TracedLine(kind=UNOWNED, operation="Optimizer", file=path, line=at, function="f", says="", is_guess=True)
    incident = Incident(traced=(seen,), facts=(Fact(name="live_parts", value="stem task"),))
    proposal = best("optimizer_behind_layers", program, incident=incident)
    after = splice(source, proposal.edits) if proposal is not None else source
    assert diff_lines(source, after or "") == ([line] if line else [])


PROBE = """import torch
from torch import nn

class Probe(nn.Module):
    def __init__(self, classes):
        super().__init__()
        self.backbone = nn.Linear(3, 4).requires_grad_(False)
        self.reset(classes)

    def reset(self, classes):
        self.head = nn.Linear(4, classes)

def build(model, name):
    cls = getattr(torch.optim, name)
    return cls([p for p in model.parameters() if p.requires_grad], lr=0.1)

class Runner:
    def __init__(self, data):
        self.model = Probe(2)
        self.optimizer = build(self.model, "Adam")
        self.data = data
        if len(data) != 2:
            self.model.reset(len(data))
        self.steps = 0
"""


@pytest.mark.parametrize("said", ["Adam: elsewhere, 0 steps before", "Adam: frozen, 0 steps before", None])
def test_an_optimizer_whose_gradients_are_elsewhere(said: str | None, tmp_path: pathlib.Path) -> None:
    """What a scaler could not step was made before a method gave the model its layer anew."""
    facts = {"live_idle_optimizer": said} if said is not None else {}
    after = rewritten(tmp_path, "optimizer_behind_layers", PROBE, "self.steps", facts=facts)
    moved = diff_lines(PROBE, after)
    line = '        self.optimizer = build(self.model, "Adam")'
    assert moved == ([f"-{line}", f"+{line}"] if said is not None and "elsewhere" in said else [])
    if moved:
        assert after.index("self.optimizer") > after.index("self.model.reset")
