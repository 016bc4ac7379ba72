"""A parameter that two groups of an optimizer list stays in one of them."""

from __future__ import annotations

import pathlib

import pytest

from tests.fix.rewriting import best, changed_lines, failed, line_of, rewritten, write

HEAD = """import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed, self.body, self.head = nn.Embedding(9, 4), nn.Linear(4, 4), nn.Linear(4, 9, bias=False)
        self.head.weight = self.embed.weight

    def forward(self, x):
        return self.head(self.body(self.embed(x)))


net = Net()
"""
TAIL = """for _ in range(3):
    loss = net(torch.tensor([1, 2])).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
listed = [one for group in opt.param_groups for one in group["params"]]
"""
WRONG = {
    "a model and its head": (
        'opt = torch.optim.SGD([{"params": net.parameters()}, {"params": net.head.parameters(), "lr": 1.0}], lr=0.1)\n',
        [
            "taken = {id(one) for one in net.head.parameters()}",
            'opt = torch.optim.SGD([{"params": [one for one in net.parameters() if id(one) not in taken]}, {"params": net.head.parameters(), "lr": 1.0}], lr=0.1)',
        ],
    ),
    "a sequence and its last layer": (
        "net = nn.Sequential(nn.Embedding(9, 4), nn.Linear(4, 9))\n"
        'opt = torch.optim.SGD([{"params": list(net.parameters())}, {"params": net[-1].parameters(), "lr": 1.0}], lr=0.1)\n',
        [
            "taken = {id(one) for one in net[-1].parameters()}",
            'opt = torch.optim.SGD([{"params": [one for one in net.parameters() if id(one) not in taken]}, {"params": net[-1].parameters(), "lr": 1.0}], lr=0.1)',
        ],
    ),
    "two parts that share a weight": (
        'groups = [{"params": list(net.embed.parameters())}, {"params": list(net.head.parameters())}]\n'
        "opt = torch.optim.SGD(groups, lr=0.1)\n",
        [
            "taken = {id(one) for one in net.embed.parameters()}",
            'groups = [{"params": list(net.embed.parameters())}, {"params": [one for one in net.head.parameters() if id(one) not in taken]}]',
        ],
    ),
    "what is not to decay, sorted out by a loop": (
        "def groups(net):\n"
        "    decay, plain = [], []\n"
        "    for module in net.modules():\n"
        "        for name, one in module.named_parameters(recurse=False):\n"
        "            if isinstance(module, nn.Embedding) or 'bias' in name:\n"
        "                plain.append(one)\n"
        "            else:\n"
        "                decay.append(one)\n"
        '    return [{"params": decay, "weight_decay": 0.1}, {"params": plain, "weight_decay": 0.0}]\n'
        "opt = torch.optim.AdamW(groups(net), lr=0.1)\n",
        [
            "taken = {id(one) for one in plain}",
            'return [{"params": [one for one in decay if id(one) not in taken], "weight_decay": 0.1}, {"params": plain, "weight_decay": 0.0}]',
        ],
    ),
    "three parts of which two are tied": (
        "def groups(net):\n"
        '    return [{"params": net.embed.parameters()}, {"params": net.body.parameters()}, {"params": net.head.parameters()}]\n'
        "opt = torch.optim.SGD(groups(net), lr=0.1)\n",
        [
            "taken = {id(one) for one in net.embed.parameters()}",
            'return [{"params": net.embed.parameters()}, {"params": net.body.parameters()}, {"params": [one for one in net.head.parameters() if id(one) not in taken]}]',
        ],
    ),
    "names that overlap": (
        'weights = [p for n, p in net.named_parameters() if "weight" in n]\n'
        "opt = torch.optim.SGD(\n"
        '    [{"params": weights}, {"params": [p for n, p in net.named_parameters() if "body" in n]}], lr=0.1)\n',
        [
            "taken = {id(one) for one in weights}",
            '[{"params": weights}, {"params": [p for n, p in net.named_parameters() if "body" in n and id(p) not in taken]}], lr=0.1)',
        ],
    ),
    "a group added later": (
        "opt = torch.optim.SGD(net.embed.parameters(), lr=0.1)\n"
        'opt.add_param_group({"params": net.head.parameters()})\n',
        [
            "taken = {id(one) for one in net.embed.parameters()}",
            'opt.add_param_group({"params": [one for one in net.head.parameters() if id(one) not in taken]})',
        ],
    ),
}
TWICE = "some parameters appear in more than one parameter group"
RIGHT = {
    "a generator that would be used up": (
        "embed = net.embed.parameters()\n"
        'opt = torch.optim.SGD([{"params": embed}, {"params": net.head.parameters()}], lr=0.1)\n'
    ),
    "three parts, none seen to be tied": (
        'opt = torch.optim.SGD([{"params": a.parameters()}, {"params": b.parameters()}, {"params": c.parameters()}], lr=0.1)\n'
    ),
    "two parts with a learning rate each": (
        'opt = torch.optim.SGD([{"params": net.embed.parameters()}, {"params": net.head.parameters(), "lr": 1.0}], lr=0.1)\n'
    ),
    "one group": "opt = torch.optim.SGD(net.parameters(), lr=0.1)\n",
}


@pytest.mark.torch
@pytest.mark.parametrize(("body", "wanted"), WRONG.values(), ids=WRONG)
def test_each_parameter_is_listed_once(tmp_path: pathlib.Path, body: str, wanted: list[str]) -> None:
    """The program fails before, and trains each parameter once after."""
    pytest.importorskip("torch")
    source = HEAD + body + TAIL
    with pytest.raises(ValueError, match="more than one parameter group") as raised:
        exec(compile(source, "before", "exec"), {})  # noqa: S102
    at = "opt.add_param_group" if "add_param_group" in body else "opt = torch.optim"
    after = rewritten(tmp_path, "each_parameter_once", source, at, message=str(raised.value))
    assert changed_lines(source, after) == wanted
    space: dict = {}
    exec(compile(after, "after", "exec"), space)  # noqa: S102
    assert len({id(one) for one in space["listed"]}) == len(space["listed"]) >= 1


@pytest.mark.parametrize("body", RIGHT.values(), ids=RIGHT)
def test_what_is_not_known_stays(tmp_path: pathlib.Path, body: str) -> None:
    """No edit reads a generator twice, guesses which of many groups overlap, or chooses a shared weight's learning rate."""
    at = "opt = torch.optim"
    assert rewritten(tmp_path, "each_parameter_once", HEAD + body, at, message=TWICE) == HEAD + body


def test_another_refusal_is_not_this_one(tmp_path: pathlib.Path) -> None:
    """An optimizer that refuses an option keeps its groups."""
    source, at = HEAD + next(iter(WRONG.values()))[0], "opt = torch.optim"
    assert rewritten(tmp_path, "each_parameter_once", source, at, message=TWICE) != source
    assert rewritten(tmp_path, "each_parameter_once", source, at, message="Invalid learning rate: -0.1") == source


def test_the_line_that_ties(tmp_path: pathlib.Path) -> None:
    """Where the groups cannot be read, the line that makes one parameter of two is told, and nothing is edited."""
    body = (
        HEAD
        + """groups = []
for part, lr in rates.items():
    groups.append({"params": list(getattr(net, part).parameters()), "lr": lr})
opt = torch.optim.AdamW(groups)
"""
    )
    incident = failed({"train.py": line_of(body, "opt =")}, "some parameters appear in more than one parameter group")
    found = best("each_parameter_once", write(tmp_path, {"train.py": body}), incident=incident)
    assert found is not None
    assert (found.culprit.code, found.edits) == ("self.head.weight = self.embed.weight", ())


PATTERNS = """import re
import torch
from torch import nn


def grouped(net, entries):
    groups, claimed = [], set()
    for entry in entries:
        pattern = re.compile(entry["match"])
        chosen = {n: p for n, p in net.named_parameters() if pattern.search(n)}
        groups.append({"params": list(chosen.values()), "lr": entry["lr"]})
        claimed.update(chosen)
    rest = [p for n, p in net.named_parameters() if n not in claimed]
    groups.append({"params": rest})
    return groups


net = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 1))
opt = torch.optim.SGD(grouped(net, [{"match": "^0", "lr": 0.1}, {"match": "bias", "lr": 0.2}]), lr=0.1)
"""


def test_patterns_of_a_loop_that_overlap(tmp_path: pathlib.Path) -> None:
    """The line that picks is told, not the list of what no pattern has picked; whose rate counts is the author's to say."""
    at = {"train.py": line_of(PATTERNS, "opt =")}
    program = write(tmp_path, {"train.py": PATTERNS})
    found = best(
        "each_parameter_once", program, incident=failed(at, "some parameters appear in more than one parameter group")
    )
    assert found is not None
    assert not found.edits
    assert found.culprit.line == line_of(PATTERNS, "chosen =")


THAWED = """import torch
from torch import nn

net = nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 2))


def trainable():
    return [one for one in net.parameters() if one.requires_grad]


net[0].requires_grad_(False)
opt = torch.optim.SGD(trainable(), lr=0.1)
for epoch in range(2):
    if epoch == 1:
        net[0].requires_grad_(True)
        opt.add_param_group({"params": GIVEN, "lr": 0.01})
    loss = net(torch.ones(3, 4)).sum()
    opt.zero_grad()
    loss.backward()
    opt.step()
"""
THAWED_BY = {
    "by a function": ("trainable()", "[one for one in trainable() if id(one) not in taken]"),
    "by a comprehension": (
        "[p for p in net.parameters() if p.requires_grad]",
        "[p for p in net.parameters() if p.requires_grad and id(p) not in taken]",
    ),
}


@pytest.mark.torch
@pytest.mark.parametrize(("given", "wanted"), THAWED_BY.values(), ids=THAWED_BY)
def test_what_is_thawed_later_is_added_alone(tmp_path: pathlib.Path, given: str, wanted: str) -> None:
    """The optimizer has the head already; with the edit the program runs, and each parameter has one group."""
    pytest.importorskip("torch")
    source = THAWED.replace("GIVEN", given)
    after = rewritten(tmp_path, "each_parameter_once", source, "opt.add_param_group", message=TWICE)
    assert changed_lines(source, after) == [
        'taken = {id(one) for group in opt.param_groups for one in group["params"]}',
        f'opt.add_param_group({{"params": {wanted}, "lr": 0.01}})',
    ]
    names: dict[str, object] = {}
    exec(compile(after, "train.py", "exec"), names)  # noqa: S102
    assert [len(one["params"]) for one in names["opt"].param_groups] == [2, 2]


PHASES = """import torch
from torch import nn

net = nn.ModuleDict({"head": nn.Linear(4, 2), "stem": nn.Linear(4, 4)})

class Phased:
    def __init__(self):
        self.sgd = None

    def enter(self, parts):
        joining = [p for part in parts for p in net[part].parameters()]
        group = {"params": joining, "lr": 0.1}
        if self.sgd is None:
            self.sgd = torch.optim.SGD([group])
        else:
            self.sgd.add_param_group(group)

phased = Phased()
phased.enter(["head"])
phased.enter(["stem", "head"])
"""


@pytest.mark.torch
def test_a_group_that_has_a_name(tmp_path: pathlib.Path) -> None:
    """A later phase adds what no earlier one has."""
    pytest.importorskip("torch")
    after = rewritten(tmp_path, "each_parameter_once", PHASES, "self.sgd.add_param_group", message=TWICE)
    assert changed_lines(PHASES, after) == [
        'taken = {id(one) for group_ in self.sgd.param_groups for one in group_["params"]}',
        'group["params"] = [one for one in group["params"] if id(one) not in taken]',
    ]
    space: dict = {}
    exec(after, space)  # noqa: S102 - the program of a test
    assert [len(one["params"]) for one in space["phased"].sgd.param_groups] == [2, 2]


IN_STAGES = """import torch
from torch import nn

torch.manual_seed(0)
net = nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 2))
for stage in [net[0]]:
    stage.requires_grad_(False)
opt = torch.optim.SGD(net.parameters(), lr=0.1)


def thaw(optimizer, stage):
    stage.requires_grad_(True)
    optimizer.add_param_group({"params": list(stage.parameters()), "lr": 0.01})


for epoch in range(2):
    if epoch == 1:
        thaw(opt, net[0])
    loss = net(torch.ones(3, 4)).sum()
    opt.zero_grad()
    loss.backward()
    opt.step()
"""


@pytest.mark.torch
def test_a_stage_that_is_added_with_a_rate_of_its_own(tmp_path: pathlib.Path) -> None:
    """What the optimizer had already would never get that rate: it is given what trains at first."""
    pytest.importorskip("torch")
    at = "optimizer.add_param_group"
    after = rewritten(tmp_path, "each_parameter_once", IN_STAGES, at, message=TWICE)
    assert changed_lines(IN_STAGES, after) == [
        "opt = torch.optim.SGD([p for p in net.parameters() if p.requires_grad], lr=0.1)"
    ]
    names: dict[str, object] = {}
    exec(compile(after, "train.py", "exec"), names)  # noqa: S102
    assert [(one["lr"], len(one["params"])) for one in names["opt"].param_groups] == [(0.1, 2), (0.01, 2)]
