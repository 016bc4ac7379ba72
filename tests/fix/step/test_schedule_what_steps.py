"""A schedule that a run has seen move the rate of an optimizer that never steps is given the one that does."""

from __future__ import annotations

import pathlib

import pytest

from explainer.fix.splice import splice
from explainer.model.incident import Incident
from explainer.model.trace import IDLE, SCHEDULED, STEPPING, STEPPING_LATER, TracedLine
from tests.fix.rewriting import best, diff_lines, line_of, rewritten, write

HEAD = """import torch
from torch.optim import SGD, AdamW
from torch.optim.lr_scheduler import CosineAnnealingLR, LinearLR, SequentialLR, StepLR
"""
LOOP = "for x in data:\n    net(x).mean().backward()\n    optimizer.step()\n    schedule.step()\n"
MAIN = "optimizer = AdamW(net.parameters())\n"
MAKER = """def build(cfg, net):
    made = SGD(net.parameters(), lr=0.1)
    return made

"""
TRAINER = (
    MAKER
    + """class Trainer:
    def __init__(self, net, cfg):
        self.net = net
        self.optim = build(cfg, net)
        self.plan()

    def plan(self):
        self.schedule = StepLR(build(cfg, self.net), 10)
"""
)
HELPER = """def make_schedule(model, rate):
    other = SGD(model.parameters(), lr=rate)
    return StepLR(other, 10)

net = torch.nn.Linear(2, 1)
optimizer = AdamW(net.parameters())
schedule = make_schedule(net, 0.1)
"""
ANEW = """def train(net, epochs):
    optimizer = AdamW(net.head.parameters())
    schedule = CosineAnnealingLR(optimizer, epochs)
    thaw(net)
    optimizer = AdamW(net.parameters())
    fit(net, optimizer, schedule)
"""
LIGHTNING = """class Net(LightningModule):
    def configure_optimizers(self):
        first = AdamW(self.parameters(), lr=1e-3)
        second = AdamW(self.parameters(), lr=1e-4)
        warm = LinearLR(second, 0.1)
        then = CosineAnnealingLR(second, 10)
        return [first], [SequentialLR(second, [warm, then], [5])]
"""

Way = tuple[list[str], str, list[str], str]
# The program and its lines: the way to the schedule, the idle optimizer, the way to the one that steps, and when that is made.
STAYS: dict[str, tuple[str, Way]] = {
    "the optimizer that steps has no name": (
        "optimizers = [AdamW(net.parameters())]\nschedule = StepLR(SGD(net.parameters(), lr=0.1), 10)\n",
        (["StepLR("], "StepLR(", ["AdamW("], STEPPING),
    ),
    "it has one in one branch only": (
        "if big:\n    optimizer = AdamW(net.parameters())\nelse:\n    optimizer = wrapped(net)\nschedule = StepLR(SGD(net.parameters(), lr=0.1), 10)\n",
        (["StepLR("], "StepLR(", ["AdamW("], STEPPING),
    ),
    "its name has become another's": (
        MAIN + "optimizer = None\nschedule = StepLR(SGD(net.parameters(), lr=0.1), 10)\n",
        (["StepLR("], "StepLR(", ["AdamW("], STEPPING),
    ),
    "it is in another object": (
        TRAINER + "trainer = Trainer(net, cfg)\nschedule = StepLR(SGD(net.parameters(), lr=0.1), 10)\n",
        (["schedule = StepLR(SGD"], "schedule = StepLR(SGD", ["trainer =", "self.optim =", "made ="], STEPPING),
    ),
    "a list of optimizers": (
        MAKER + "optimizer = [build(cfg, net)]\nschedule = StepLR(SGD(net.parameters(), lr=0.1), 10)\n",
        (["schedule"], "schedule", ["optimizer =", "made ="], STEPPING),
    ),
    "the helper is called twice": (
        HELPER + "second = make_schedule(net, 0.2)\n",
        (["schedule = make_", "return StepLR"], "other =", ["optimizer ="], STEPPING),
    ),
    "the schedule is needed before the second optimizer": (
        ANEW.replace("    thaw(net)\n", "    thaw(net, schedule)\n"),
        (["CosineAnnealingLR("], "AdamW(net.head", ["AdamW(net.p"], STEPPING_LATER),
    ),
    "what it reads is made anew": (
        ANEW.replace("    thaw(net)\n", "    epochs = 3\n"),
        (["CosineAnnealingLR("], "AdamW(net.head", ["AdamW(net.p"], STEPPING_LATER),
    ),
    "the second optimizer is made in a branch": (
        ANEW.replace("    optimizer = AdamW(net.p", "    if thawed:\n        optimizer = AdamW(net.p"),
        (["CosineAnnealingLR("], "AdamW(net.head", ["AdamW(net.p"], STEPPING_LATER),
    ),
    "both in one statement": (
        "def configure(net):\n    return [AdamW(net.parameters())], [StepLR(AdamW(net.parameters()), 3)]\n",
        (["return ["], "return [", ["return ["], STEPPING),
    ),
}  # fmt: skip
GIVEN: dict[str, tuple[str, Way, list[str]]] = {
    "made as an argument": (
        MAIN + "schedule = StepLR(SGD(net.parameters(), lr=0.1), 10)\n",
        (["StepLR("], "StepLR(", ["AdamW("], STEPPING),
        ["-schedule = StepLR(SGD(net.parameters(), lr=0.1), 10)", "+schedule = StepLR(optimizer, 10)"],
    ),
    "made by the program's function, out of a table": (
        MAKER + "self.opt = build(cfg, net)\nself.plan = TABLE.build(cfg['plan'], optimizer=build(cfg, net), total=3)\n",
        (["self.plan"], "self.plan", ["self.opt", "made ="], STEPPING),
        ["-self.plan = TABLE.build(cfg['plan'], optimizer=build(cfg, net), total=3)",
         "+self.plan = TABLE.build(cfg['plan'], optimizer=self.opt, total=3)"],
    ),
    "with a name of its own": (
        MAIN + "other = SGD(net.parameters(), lr=0.1)\nschedule = StepLR(other, 10)\n",
        (["StepLR("], "other =", ["AdamW("], STEPPING),
        ["-other = SGD(net.parameters(), lr=0.1)", "-schedule = StepLR(other, 10)", "+schedule = StepLR(optimizer, 10)"],
    ),
    "with a name that is read elsewhere": (
        MAIN + "other = SGD(net.parameters(), lr=0.1)\nschedule = StepLR(other, 10)\nprint(other.defaults)\n",
        (["StepLR("], "other =", ["AdamW("], STEPPING),
        ["-schedule = StepLR(other, 10)", "+schedule = StepLR(optimizer, 10)"],
    ),
    "unpacked": (
        "def build():\n    net = Net()\n    return net, AdamW(net.parameters())\n\nnet, optimizer = build()\nschedule = StepLR(SGD(net.parameters(), lr=0.1), 10)\n",
        (["schedule = "], "schedule =", ["net, optimizer", "return net"], STEPPING),
        ["-schedule = StepLR(SGD(net.parameters(), lr=0.1), 10)", "+schedule = StepLR(optimizer, 10)"],
    ),
    "in another method": (
        TRAINER,
        (["self.plan()", "StepLR(build"], "StepLR(build", ["self.optim =", "made ="], STEPPING),
        ["-        self.schedule = StepLR(build(cfg, self.net), 10)", "+        self.schedule = StepLR(self.optim, 10)"],
    ),
    "in a helper": (
        HELPER,
        (["schedule = make_", "return StepLR"], "other =", ["optimizer ="], STEPPING),
        ["-def make_schedule(model, rate):", "-    other = SGD(model.parameters(), lr=rate)", "-    return StepLR(other, 10)",
         "+def make_schedule(model, rate, optimizer):", "+    return StepLR(optimizer, 10)",
         "-schedule = make_schedule(net, 0.1)", "+schedule = make_schedule(net, 0.1, optimizer)"],
    ),
    "in a helper with a default": (
        HELPER.replace("model, rate)", "model, rate=0.1)").replace("(net, 0.1)", "(net)"),
        (["schedule = make_", "return StepLR"], "other =", ["optimizer ="], STEPPING),
        ["-def make_schedule(model, rate=0.1):", "-    other = SGD(model.parameters(), lr=rate)", "-    return StepLR(other, 10)",
         "+def make_schedule(model, rate=0.1, *, optimizer):", "+    return StepLR(optimizer, 10)",
         "-schedule = make_schedule(net)", "+schedule = make_schedule(net, optimizer=optimizer)"],
    ),
    "in a helper that has it already": (
        HELPER.replace("model, rate)", "model, opt)").replace("(net, 0.1)", "(net, optimizer)"),
        (["schedule = make_", "return StepLR"], "other =", ["optimizer ="], STEPPING),
        ["-    other = SGD(model.parameters(), lr=rate)", "-    return StepLR(other, 10)", "+    return StepLR(opt, 10)"],
    ),
    "several schedules of Lightning": (
        LIGHTNING,
        (["warm ="], "second =", ["first ="], STEPPING),
        ["-        second = AdamW(self.parameters(), lr=1e-4)", "-        warm = LinearLR(second, 0.1)", "-        then = CosineAnnealingLR(second, 10)",
         "-        return [first], [SequentialLR(second, [warm, then], [5])]", "+        warm = LinearLR(first, 0.1)",
         "+        then = CosineAnnealingLR(first, 10)", "+        return [first], [SequentialLR(first, [warm, then], [5])]"],
    ),
    "an optimizer that is made anew": (
        ANEW,
        (["CosineAnnealingLR("], "AdamW(net.head", ["AdamW(net.p"], STEPPING_LATER),
        ["-    schedule = CosineAnnealingLR(optimizer, epochs)", "+    schedule = CosineAnnealingLR(optimizer, epochs)"],
    ),
}  # fmt: skip


def mended(source: str, way: Way, folder: pathlib.Path) -> str:
    """The program after the edit; its culprit is the line that makes the schedule."""
    made_by, idle, stepping_by, kind = way
    kinds = [*((SCHEDULED, one) for one in made_by), (IDLE, idle), *((kind, one) for one in stepping_by)]
    body = source.removeprefix(HEAD)
    traced = tuple(
        TracedLine(kind=one, operation="", file="train.py", line=line_of(body, words) + HEAD.count("\n"))
        for one, words in kinds
    )
    proposal = best("schedule_what_steps", write(folder, {"train.py": HEAD + body}), incident=Incident(traced=traced))
    assert proposal is not None
    assert proposal.culprit.line == line_of(body, made_by[-1]) + HEAD.count("\n")
    after = splice(HEAD + body, proposal.edits)
    assert after is not None
    return after


@pytest.mark.parametrize(("source", "way"), STAYS.values(), ids=STAYS)
def test_it_stays(source: str, way: Way, tmp_path: pathlib.Path) -> None:
    """Only the line is told where the optimizer that steps has no name there, or not yet."""
    assert mended(source, way, tmp_path) == HEAD + source


@pytest.mark.parametrize(("source", "way", "wanted"), GIVEN.values(), ids=GIVEN)
def test_it_is_given(source: str, way: Way, wanted: list[str], tmp_path: pathlib.Path) -> None:
    """By the name that it has at the schedule, as a parameter, or behind the line that makes it."""
    after = mended(source, way, tmp_path)
    assert diff_lines(HEAD + source, after) == wanted
    compile(after, "train.py", "exec")


def test_nothing_is_told_unseen(tmp_path: pathlib.Path) -> None:
    """Two optimizers in the text alone may both step."""
    assert best("schedule_what_steps", write(tmp_path, {"train.py": HEAD + HELPER + LOOP})) is None


MODULE = (
    HEAD
    + """from lightning import LightningModule
class Net(LightningModule):
    def configure_optimizers(self):
        main = AdamW(self.parameters(), lr=1e-3)
"""
)
REFUSED = "Some schedulers are attached with an optimizer that wasn't returned from `configure_optimizers`."
# What follows in `configure_optimizers`, and the lines that change.
RETURNED: dict[str, tuple[str, list[str]]] = {
    "the schedule is of one that is returned": ("        return [main], [StepLR(main, 10)]\n", []),
    "two are returned": (
        "        other, third = SGD(self.a), SGD(self.b)\n        return [main, self.other], [StepLR(self.third, 10)]\n",
        [],
    ),
    "the optimizer is in a list": ("        own = [main]\n        return own, [StepLR(AdamW(self.parameters()), 10)]\n", []),
    "made as an argument": (
        "        return [main], [StepLR(AdamW(self.parameters()), 10)]\n",
        ["-        return [main], [StepLR(AdamW(self.parameters()), 10)]", "+        return [main], [StepLR(main, 10)]"],
    ),
    "in a dictionary": (
        "        return {'optimizer': main, 'lr_scheduler': StepLR(optimizer=SGD(self.parameters()), step_size=1)}\n",
        ["-        return {'optimizer': main, 'lr_scheduler': StepLR(optimizer=SGD(self.parameters()), step_size=1)}",
         "+        return {'optimizer': main, 'lr_scheduler': StepLR(optimizer=main, step_size=1)}"],
    ),
    "with a name of its own": (
        "        spare = SGD(self.parameters())\n        plan = {'scheduler': StepLR(spare, 2), 'interval': 'step'}\n        return [main], [plan]\n",
        ["-        spare = SGD(self.parameters())", "-        plan = {'scheduler': StepLR(spare, 2), 'interval': 'step'}",
         "+        plan = {'scheduler': StepLR(main, 2), 'interval': 'step'}"],
    ),
}  # fmt: skip


@pytest.mark.parametrize(("source", "wanted"), RETURNED.values(), ids=RETURNED)
def test_lightning_refuses_it(source: str, wanted: list[str], tmp_path: pathlib.Path) -> None:
    """The schedule is given the one optimizer that `configure_optimizers` returns by its name."""
    after = rewritten(tmp_path, "schedule_what_steps", MODULE + source, message=REFUSED)
    assert diff_lines(MODULE + source, after) == wanted
    assert rewritten(tmp_path, "schedule_what_steps", MODULE + source) == MODULE + source
