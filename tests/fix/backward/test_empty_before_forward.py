"""What forward hooks collect for the loss of a step is emptied where each step begins."""

from __future__ import annotations

import pathlib
from dataclasses import replace

import pytest

from explainer.fix.splice import splice
from explainer.model.incident import Incident
from explainer.model.trace import TAKEN, TracedLine
from tests.fix.rewriting import best, diff_lines, failed, line_of, rewritten, write

HEAD = """import functools
from collections import defaultdict, deque
import torch
from torch import nn
torch.manual_seed(0)


def make_net():
    return nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 4), nn.Tanh(), nn.Linear(4, 1))


data = [(torch.randn(4, 3), torch.randn(4, 1)) for _ in range(4)]
"""
PENALTY = """

class Penalty:
    def __init__(self, net, layers, weight=0.1):
        self.weight = weight
        self.taps = {{name: [] for name in layers}}
        for name in layers:
            net.get_submodule(name).register_forward_hook(functools.partial(self.collect, name))

    def collect(self, name, module, inputs, output):
        {added}

    def __call__(self):
        total = 0.0
        for taps in self.taps.values():
            {reads}
        return self.weight * total

    def silent(self):
        return [(taps[-1] <= 0).float().mean().item() for taps in self.taps.values()]
{method}
"""
TRAIN = """

def main():
    net = make_net()
    penalty = Penalty(net, ["1", "3"])
    opt = torch.optim.Adam(net.parameters())
    for step, (x, y) in enumerate(data):
{first}        loss = nn.functional.mse_loss(net(x), y) + penalty()
        opt.zero_grad()
        loss.backward()
        opt.step()
{last}        if step % 2 == 0:
            {looked}
{after}

main()
"""
ADDS = "self.taps[name].append(output)"
SUMS = "total = total + sum(one.abs().mean() for one in taps)"


def program(added: str = ADDS, reads: str = SUMS, method: str = "", **places: str) -> str:
    """A program whose penalty sums what its hooks have collected."""
    given = {"first": "", "last": "", "after": "", "looked": "print(penalty.silent())", **places}
    return HEAD + PENALTY.format(added=added, reads=reads, method=method) + TRAIN.format(**given)


EACH = ["+        for outputs in penalty.taps.values():", "+            outputs.clear()"]
CLOSURE = """

def tap(store, key):
    def hook(module, inputs, output):
        store[key].append(output)
    return hook


def smoothness(feats):
    return sum((one[1:] - one[:-1]).pow(2).mean() for ones in feats.values() for one in ones)


def fit(net, epochs=1):
    feats = {made}
    for name, layer in net.named_modules():
        if isinstance(layer, nn.Tanh):
            layer.register_forward_hook(tap(feats, name))
    opt = torch.optim.SGD(net.parameters(), lr=0.1)
    for _ in range(epochs):
        for x, y in data:
            opt.zero_grad()
            loss = (net(x) - y).pow(2).mean() + 0.1 * smoothness(feats)
            loss.backward()
            opt.step()


fit(make_net())
"""
LEARNER = """

class Spread(nn.Module):
    def __init__(self, net):
        super().__init__()
        self.seen = {{}}
        for name, layer in net.named_children():
            if isinstance(layer, nn.Tanh):
                layer.register_forward_hook(lambda m, i, o, name=name: self.see(name, o))

    def see(self, name, value):
        self.seen.setdefault(name, []).append(value)

    def forward(self):
        return torch.stack([torch.cat(ones).std() for ones in self.seen.values()]).sum()


class Objective(nn.Module):
    def __init__(self, net, spread):
        super().__init__()
        self.net = net
        self.spread = Spread(net) if spread else None

    def forward(self, x, y):
        loss = (self.net(x) - y).pow(2).mean()
        if self.spread is not None:
            loss = loss - 0.1 * self.spread()
        return loss


class Learner:
    def __init__(self):
        self.objective = Objective(make_net(), spread=True)
        self.opt = torch.optim.SGD(self.objective.parameters(), lr=0.1)

    def step(self, x, y):
        \"\"\"One update.\"\"\"
        loss = self.objective(x, y)
        self.opt.zero_grad()
        loss.backward()
        self.opt.step()
        return loss.item()


learner = Learner()
for x, y in data:
    learner.step(x, y)
"""
GLOBAL = """
ACTS = []


def grab(module, args, out):
{added}


net = make_net()
net[1].register_forward_hook(grab)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
for x, y in data:
    loss = (net(x) - y).pow(2).mean() + {read}
    loss.backward()
    opt.step()
    opt.zero_grad()
"""
DISTILL = """

class Taps:
    def __init__(self, net, places):
        self.places = places
        self.values = [[] for _ in places]
        for at, place in enumerate(places):
            net[place].register_forward_hook(self.keep(at))

    def keep(self, at):
        def hook(module, args, result):
            if isinstance(result, tuple):
                result = result[0]
            self.values[at].append(result)
        return hook


teacher, student = make_net(), make_net()
of_student = Taps(student, [1, 3])
of_teacher = Taps(teacher, [1, 3])
opt = torch.optim.SGD(student.parameters(), lr=0.1)
for epoch in range(2):
    for x, y in data:
        with torch.no_grad():
            teacher(x)
        loss = (student(x) - y).pow(2).mean()
        for mine, other in zip(of_student.values, of_teacher.values):
            loss = loss + sum((a - b).pow(2).mean() for a, b in zip(mine, other))
        opt.zero_grad()
        loss.backward()
        opt.step()
"""
EXTRACTOR = """

class Extractor(nn.Module):
    def __init__(self, net):
        super().__init__()
        self.net = net
        self.feats = []
        self.net[1].register_forward_hook(self.hook)

    def hook(self, module, args, output):
        self.feats += [output]

    def forward(self, x):
{first}        return self.net(x), self.feats


extractor = Extractor(make_net())
opt = torch.optim.SGD(extractor.parameters(), lr=0.1)
for x, y in data:
    out, feats = extractor(x)
    loss = (out - y).pow(2).mean() + 0.1 * torch.stack(feats).abs().mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
"""
LOSSES = """from torch import nn


class ActivityTerm(nn.Module):
    def __init__(self, probe):
        super().__init__()
        self.probe = probe

    def forward(self):
        return sum(one.pow(2).mean() for key in self.probe.record for one in self.probe.record[key])
"""
PROBE = """from collections import OrderedDict


class Probe:
    def __init__(self, model, kinds):
        self.record = OrderedDict()
        self.handles = []
        for key, part in model.named_modules():
            if isinstance(part, kinds):
                self.record[key] = []
                self.handles.append(part.register_forward_hook(lambda m, i, o, key=key: self.record[key].append(o)))
"""
RUN = (
    HEAD
    + """from losses import ActivityTerm
from probe import Probe


def train_step(model, term, opt, x, y):
    opt.zero_grad()
    out = model(x)
    loss = nn.functional.mse_loss(out, y)
    loss = loss + 0.1 * term()
    loss.backward()
    opt.step()
    return loss.detach()


def main():
    model = make_net()
    probe = Probe(model, (nn.Tanh,))
    term = ActivityTerm(probe)
    opt = torch.optim.SGD(model.parameters(), lr=0.1)
    for x, y in data:
        train_step(model, term, opt, x, y)


main()
"""
)
BESIDE = """
ours, theirs = [], []
net, teacher = make_net(), make_net()
net[1].register_forward_hook(lambda m, i, o: ours.append(o))
teacher[1].register_forward_hook(lambda m, i, o: theirs.append(o.detach()))
opt = torch.optim.SGD(net.parameters(), lr=0.1)
for x, y in data:
    teacher(x)
    loss = (net(x) - y).pow(2).mean() + {read}
    loss.backward()
    opt.step()
    opt.zero_grad()
"""
RIGHT = {
    "lists that the loss empties": program(reads=SUMS + "\n            taps.clear()", looked="print(step)"),
    "lists that a method empties, called at the end of a round": program(
        method="\n    def reset(self):\n        for one in self.taps.values():\n            one.clear()\n",
        last="        penalty.reset()\n",
        looked="print(step)",
    ),
    "lists that the caller empties": program(
        first="        for one in penalty.taps.values():\n            del one[:]\n"
    ),
    "lists that a hook before the forward empties": program(
        method="\n    def begin(self, module, args):\n        self.taps = {name: [] for name in self.taps}\n"
    ).replace("    opt = torch.optim", "    net.register_forward_pre_hook(penalty.begin)\n    opt = torch.optim"),
    "outputs that are detached": program(added="self.taps[name].append(output.detach())"),
    "outputs that are detached before": program(added="output = output.detach()\n        " + ADDS),
    "numbers that are kept": program(
        added="self.taps[name].append(output.abs().mean().item())",
        reads="total = total + sum(taps)",
        looked="print(step)",
    ),
    "the latest output of each": program(added="self.taps[name] = [output]"),
    "the loss reads the latest": program(reads="total = total + taps[-1].abs().mean()"),
    "a window of a few": program(added="self.taps[name] = deque(maxlen=1)\n        " + ADDS),
    "collected for the log": program().replace(" + penalty()", ""),
    "the loss takes numbers of them": program(reads="total = total + sum(one.detach().abs().mean() for one in taps)"),
    "made anew in each round": program().replace(
        "        loss =", '        penalty = Penalty(net, ["1", "3"])\n        loss ='
    ),
    "variables of a step": HEAD
    + """

def step(net, opt, x, y):
    feats = []
    handle = net[1].register_forward_hook(lambda m, i, o: feats.append(o))
    loss = (net(x) - y).pow(2).mean() + sum(one.abs().mean() for one in feats)
    handle.remove()
    opt.zero_grad()
    loss.backward()
    opt.step()


net = make_net()
opt = torch.optim.SGD(net.parameters(), lr=0.1)
for x, y in data:
    step(net, opt, x, y)
""",
    "a bank of features, which is to keep them": (
        HEAD + GLOBAL.format(added="    ACTS.append(out)", read="torch.cat(ACTS).std()")
    ).replace("ACTS", "MEMORY_BANK"),
    "a list that is cut to a length, which is to keep some": HEAD
    + GLOBAL.format(
        added="    ACTS.append(out)\n    if len(ACTS) > 8:\n        ACTS.pop(0)", read="torch.stack(ACTS).std()"
    ),
    "a list that is bound anew": HEAD
    + GLOBAL.format(
        added="    global ACTS\n    ACTS = [*ACTS[:0], out]\n    ACTS.append(out)", read="torch.stack(ACTS).std()"
    ),
    "lists that the step of a learner empties": HEAD
    + LEARNER.format().replace(
        "        loss = self.objective(x, y)\n",
        "        loss = self.objective(x, y)\n        self.objective.spread.seen.clear()\n",
    ),
    "an extractor that empties its lists as it runs": HEAD + EXTRACTOR.format(first="        self.feats.clear()\n"),
    "another class that has lists of that name": program()
    .replace("+ penalty()", "+ sum(other.taps)")
    .replace("def main", "class Other:\n    def __init__(self):\n        self.taps = [torch.ones(1)]\n\n\ndef main")
    .replace("    opt =", "    other = Other()\n    opt ="),
    "a backward every other round": program().replace(
        "        loss.backward()", "        if step % 2 == 1:\n            loss.backward()"
    ),
}
WRONG = {
    "lists of a dictionary that a method fills": (program(), EACH),
    "a method that nothing calls": (
        program(method="\n    def clear(self):\n        for one in self.taps.values():\n            one.clear()\n"),
        ["+        penalty.clear()"],
    ),
    "lists that are emptied once all is done": (
        program(
            method="\n    def close(self):\n        for one in self.taps.values():\n            one.clear()\n",
            after="    penalty.close()\n",
        ),
        EACH,
    ),
    "what is looked at as the round begins": (
        program(first="        if step:\n            print(penalty.silent())\n"),
        EACH,
    ),
    "a penalty that begins late": (
        program().replace("y) + penalty()", "y) + (penalty() if step > 0 else 0.0)"),
        EACH,
    ),
    "a closure with the dictionary": (
        HEAD + CLOSURE.format(made="defaultdict(list)"),
        ["+            feats.clear()"],
    ),
    "a closure with the lists": (
        HEAD + CLOSURE.format(made='{"1": [], "3": []}'),
        ["+            for outputs in feats.values():", "+                outputs.clear()"],
    ),
    "a loss in a loss, that may be left out": (
        HEAD + LEARNER.format(),
        ["+        if self.objective.spread is not None:", "+            self.objective.spread.seen.clear()"],
    ),
    "entries that the hook makes": (
        program(added="if name not in self.taps:\n            self.taps[name] = []\n        " + ADDS).replace(
            "{name: [] for name in layers}", "{}"
        ),
        EACH,
    ),
    "a list of the module": (
        HEAD + GLOBAL.format(added="    ACTS.append(out)", read="sum(a.pow(2).mean() for a in ACTS)"),
        ["+    ACTS.clear()"],
    ),
    "the first of a list": (
        HEAD + GLOBAL.format(added="    ACTS.append(out)", read="ACTS[0].pow(2).mean()"),
        ["+    ACTS.clear()"],
    ),
    "lists of a list, and those of a teacher without graph": (
        HEAD + DISTILL,
        [
            f"+        {line}"
            for name in ("of_student", "of_teacher")
            for line in (f"for outputs in {name}.values:", "    outputs.clear()")
        ],
    ),
    "a list without graphs beside it": (
        HEAD + BESIDE.format(read="sum((a - b).pow(2).mean() for a, b in zip(ours, theirs))"),
        ["+    ours.clear()", "+    theirs.clear()"],
    ),
    "two penalties of one class": (
        program()
        .replace("+ penalty()", "+ penalty() + other()")
        .replace("    opt =", '    other = Penalty(net, ["0"])\n    opt ='),
        [*EACH, *(line.replace("penalty", "other") for line in EACH)],
    ),
}  # fmt: skip
NO_PLACE = {
    "a closure that keeps the list to itself": HEAD
    + """

def build(layer):
    feats = []
    layer.register_forward_hook(lambda m, i, o: feats.append(o))

    def penalty():
        return sum(one.abs().mean() for one in feats)

    return penalty


net = make_net()
penalty = build(net[1])
opt = torch.optim.SGD(net.parameters(), lr=0.1)
for x, y in data:
    loss = (net(x) - y).pow(2).mean() + penalty()
    loss.backward()
    opt.step()
""",
    "a forward that is run elsewhere": program().replace(
        "        loss = nn.functional.mse_loss(net(x), y) + penalty()", "        loss = nn.functional.mse_loss(out, y) + penalty()"
    ),
    "steps of time that each read all": program().replace(
        "        loss = nn.functional.mse_loss(net(x), y) + penalty()",
        "        loss = 0.0\n        for _ in range(2):\n            loss = loss + net(x).mean() + penalty()",
    ),
    "a list without graphs that is read by itself": HEAD
    + BESIDE.format(read="(torch.stack(ours).mean() - torch.stack(list(theirs)).mean()).abs()").replace(
        "    loss =", "    mean = torch.stack(theirs).mean()\n    loss ="
    ).replace("torch.stack(list(theirs)).mean()", "mean"),
    "a list that the loop fills beside it": (
        HEAD + GLOBAL.format(added="    ACTS.append(out)", read="sum((a - y).mean() for a, y in zip(ACTS, targets))")
    )
    .replace("ACTS = []", "ACTS, targets = [], []")
    .replace("    loss =", "    targets.append(y)\n    loss ="),
    "an episode": program().replace(
        "        loss = nn.functional.mse_loss(net(x), y) + penalty()\n        opt.zero_grad()\n        loss.backward()\n",
        "        out = net(x)\n        if step == 3:\n            loss = (out - y).pow(2).mean() + penalty()\n            loss.backward()\n",
    ),
    "several penalties": program().replace("+ penalty()", "+ sum(each() for each in [penalty, penalty])"),
}  # fmt: skip


@pytest.mark.parametrize("source", RIGHT.values(), ids=RIGHT)
def test_right_programs_stay(tmp_path: pathlib.Path, source: str) -> None:
    """What is emptied in a round, holds no graph, is a memory, or is no part of the loss is left alone, and not accused."""
    assert best("empty_before_forward", write(tmp_path, {"train.py": source})) is None


@pytest.mark.parametrize(("source", "wanted"), WRONG.values(), ids=WRONG)
def test_faults_are_cured(tmp_path: pathlib.Path, source: str, wanted: list[str]) -> None:
    """The collection is empty where the step begins; a second time nothing is left to do."""
    after = rewritten(tmp_path, "empty_before_forward", source)
    assert diff_lines(source, after) == wanted
    assert rewritten(tmp_path, "empty_before_forward", after) == after


@pytest.mark.parametrize("source", NO_PLACE.values(), ids=NO_PLACE)
def test_only_the_line_is_named_where_no_place_is_honest(tmp_path: pathlib.Path, source: str) -> None:
    """Where the list has no name in the step, or it is not known what fills it again, the line that adds to it is told."""
    found = best("empty_before_forward", write(tmp_path, {"train.py": source}))
    assert found is not None
    assert not found.edits
    assert ".append(" in (found.culprit.code or "")


def test_parts_in_other_files(tmp_path: pathlib.Path) -> None:
    """The name that the collection has in the step is put together from the objects that lead to it."""
    found = best("empty_before_forward", write(tmp_path, {"train.py": RUN, "losses.py": LOSSES, "probe.py": PROBE}))
    assert found is not None
    after = splice(RUN, found.edits)
    assert after is not None
    assert diff_lines(RUN, after) == ["+    for outputs in term.probe.record.values():", "+        outputs.clear()"]


def test_what_is_read_over_many_steps_is_not_emptied_unasked(tmp_path: pathlib.Path) -> None:
    """A program that shows all that it has collected, once it has trained, would show the last step's."""
    source = program(after="    print([torch.cat(one).mean().item() for one in penalty.taps.values()])\n")
    found = best("empty_before_forward", write(tmp_path, {"train.py": source}))
    assert found is not None
    assert found.applicability == "unsafe"


def test_a_line_that_a_trace_saw_leads(tmp_path: pathlib.Path) -> None:
    """The line that took up an earlier step's graph, as a trace saw it, makes the collection that it reads more probable."""
    source = program()
    seen = TracedLine(kind=TAKEN, operation="abs", file="train.py", line=line_of(source, SUMS), is_guess=True)
    plain, traced = failed(), replace(failed(), traced=(seen,))
    files = write(tmp_path, {"train.py": source})
    found = [best("empty_before_forward", files, incident=one) for one in (plain, traced)]
    assert found[0] is not None
    assert found[1] is not None
    assert found[1].belief > found[0].belief


def test_nothing_is_said_of_a_program_that_has_not_failed(tmp_path: pathlib.Path) -> None:
    """A list that grows is no failure by itself."""
    assert best("empty_before_forward", write(tmp_path, {"train.py": program()}), incident=Incident()) is None
