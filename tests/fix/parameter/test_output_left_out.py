"""DistributedDataParallel looks for what is unused where the loss leaves an output out on purpose."""

from __future__ import annotations

import pytest

from explainer.model.incident import Incident
from tests.fix.rewriting import best, changed_lines, failed, rewritten, write

HEAD = """import torch
import torch.nn.functional as F
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
CFG = {"heads": {"score": 1, "box": 4, "marks": 10}, "weights": {"score": 1.0, "box": 2.0}}


class Heads(nn.Module):
    def __init__(self, heads):
        super().__init__()
        self.trunk = nn.Linear(4, 8)
        self.heads = nn.ModuleDict({name: nn.Linear(8, width) for name, width in heads.items()})

    def forward(self, x):
        h = self.trunk(x)
        return {name: head(h) for name, head in self.heads.items()}


class Pair(nn.Module):
    def __init__(self):
        super().__init__()
        self.trunk, self.main, self.extra = nn.Linear(4, 8), nn.Linear(8, 3), nn.Linear(8, 2)

    def forward(self, x):
        h = self.trunk(x)
        return self.main(h), self.extra(h)


class Features(nn.Module):
    def __init__(self):
        super().__init__()
        self.trunk, self.main = nn.Linear(4, 8), nn.Linear(8, 3)

    def forward(self, x):
        h = self.trunk(x)
        return self.main(h), h


class Named(nn.Module):
    def __init__(self):
        super().__init__()
        self.trunk, self.main, self.extra = nn.Linear(4, 8), nn.Linear(8, 3), nn.Linear(8, 2)

    def forward(self, x):
        h = self.trunk(x)
        return {"logits": self.main(h), "depth": self.extra(h)}


"""
TASKS = """def total(outputs, target, weights):
    return sum(weight * F.mse_loss(outputs[name], target[name]) for name, weight in weights.items())


model = DDP(Heads(CFG["heads"]))
for x, y in []:
    loss = total(model(x), y, CFG["weights"])
    loss.backward()
"""
LOOP = """def train(model, batches):
    for x, y in batches:
        out = model(x)
        LOSS
        loss.backward()


net = NET()
model = DDP(net)
train(model, [])
"""
CURE = ["model = DDP(net, find_unused_parameters=True)"]
RIGHT = {
    "every head is weighed": TASKS.replace('CFG["weights"]', '{"score": 1.0, "box": 2.0, "marks": 1.0}'),
    "the heads' own names": TASKS.replace('CFG["weights"]', 'CFG["heads"]'),
    "names that are not known, of the heads themselves": (
        TASKS.replace("CFG", "cfg").replace("cfg =", "import json\ncfg =").replace('cfg["weights"]', 'cfg["heads"]')
    ),
    "a loss of all outputs": TASKS.replace("weights.items()", "weights.items() if outputs.values()"),
    "a library that gets all outputs": TASKS.replace("loss = total(model(x), y", "loss = torch.add(model(x), y"),
    "a search that is on": TASKS.replace('CFG["heads"]))', 'CFG["heads"]), find_unused_parameters=True)'),
    "a graph that is said to be static": TASKS.replace('CFG["heads"]))', 'CFG["heads"]), static_graph=True)'),
    "both outputs": LOOP.replace("NET", "Pair").replace("out = ", "out, more = ").replace("LOSS", "loss = out.sum() + more.sum()"),
    "an output that was forgotten": LOOP.replace("NET", "Pair").replace("out = ", "out, more = ").replace("LOSS", "loss = F.mse_loss(out, y)"),
    "a copy that was not adapted": LOOP.replace("NET", "Named").replace(
        "LOSS", 'loss = F.mse_loss(out["logits"], y["logits"]) + F.mse_loss(out["logits"], y["depth"])'
    ),
    "a copy whose target is a name": LOOP.replace("NET", "Named").replace("LOSS", 'depth_map = y; loss = F.mse_loss(out["logits"], depth_map)'),
    "features beside the scores": LOOP.replace("NET", "Features").replace("out = ", "out, _ = ").replace("LOSS", "loss = F.mse_loss(out, y)"),
}  # fmt: skip
WRONG = {
    "heads of a setting, weighed by another": (TASKS, ['model = DDP(Heads(CFG["heads"]), find_unused_parameters=True)']),
    "settings that are not in sight": (
        TASKS.replace("CFG", "cfg").replace("model = ", "cfg = torch.load('settings.pt')\nmodel = "),
        ['model = DDP(Heads(cfg["heads"]), find_unused_parameters=True)'],
    ),
    "a list of tasks": (
        LOOP.replace("NET()", 'Heads({"score": 1, "marks": 10})').replace("LOSS", 'loss = 0\n        for task in ["score"]:\n            loss = loss + F.mse_loss(out[task], y[task])'),
        CURE,
    ),
    "a criterion of the program": (
        """class Criterion(nn.Module):
    def __init__(self, tasks):
        super().__init__()
        self.tasks = tasks

    def forward(self, outputs, target):
        return sum(F.mse_loss(outputs[task], target[task]) for task in self.tasks)


criterion = Criterion(["box", "score"])
"""
        + LOOP.replace("NET()", 'Heads(CFG["heads"])').replace("LOSS", "loss = criterion(out, y)"),
        CURE,
    ),
    "an output that is thrown away": (
        LOOP.replace("NET", "Pair").replace("out = ", "out, _ = ").replace("LOSS", "loss = F.mse_loss(out, y)"),
        CURE,
    ),
    "the first output": (LOOP.replace("NET", "Pair").replace("LOSS", "loss = F.mse_loss(out[0], y)"), CURE),
    "an entry that nobody asks for": (LOOP.replace("NET", "Named").replace("LOSS", 'loss = F.mse_loss(out["logits"], y)'), CURE),
}  # fmt: skip


@pytest.mark.parametrize("source", RIGHT.values(), ids=RIGHT)
def test_right_programs_stay(tmp_path, source: str) -> None:
    """Where the loss takes every output, or may have forgotten one, DDP is left as it is."""
    assert rewritten(tmp_path, "reach_every_parameter", HEAD + source) == HEAD + source


@pytest.mark.parametrize(("source", "wanted"), WRONG.values(), ids=WRONG)
def test_outputs_that_the_loss_leaves_out(tmp_path, source: str, wanted: list[str]) -> None:
    """DDP looks for them; a second time nothing is left to do."""
    after = rewritten(tmp_path, "reach_every_parameter", HEAD + source)
    assert changed_lines(HEAD + source, after) == wanted
    assert rewritten(tmp_path, "reach_every_parameter", after) == after


def _live(names: str) -> Incident:
    return failed(facts={"live_unreduced": names})


def test_the_live_names_are_of_that_output(tmp_path) -> None:
    """The culprit names the head that the live module says got no gradient."""
    proposal = best(
        "reach_every_parameter",
        write(tmp_path, {"train.py": HEAD + TASKS}),
        incident=_live("heads.marks.weight heads.marks.bias"),
    )
    assert proposal is not None and "`heads.marks`" in proposal.culprit.why


def test_live_names_of_something_else(tmp_path) -> None:
    """Where the trunk got no gradient, or a head that is weighed, there is another fault."""
    program = write(tmp_path, {"train.py": HEAD + TASKS})
    for names in ("trunk.weight heads.marks.weight", "heads.box.weight"):
        assert best("reach_every_parameter", program, incident=_live(names)) is None


def test_names_of_a_configuration(tmp_path) -> None:
    """The names of heads and weights are read out of a file."""
    (tmp_path / "run.yaml").write_text("heads:\n  score: 1\n  marks: 10\nweights:\n  score: 1.0\n")
    source = (HEAD + TASKS).replace("CFG =", "import yaml\nCFG = yaml.safe_load(open('run.yaml'))\nUNUSED =")
    program = write(tmp_path, {"train.py": source})
    for names, found in (("heads.marks.bias", True), ("heads.score.bias", False)):
        assert (best("reach_every_parameter", program, incident=_live(names)) is not None) == found
