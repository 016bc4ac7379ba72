"""What a module keeps, or a process is sent, leaves the graph."""

from __future__ import annotations

import pytest

from explainer.fix.codemod import Context, find_codemod
from explainer.fix.splice import splice
from tests.fix.rewriting import best, changed_lines, failed, line_of, rewritten, write

HEAD = """import copy
import torch
from torch import nn
"""
RIGHT = {
    "a kept value": (
        HEAD
        + """class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 2)

    def forward(self, x):
        h = self.layer(x)
        self.last = h.detach()
        return h


model = Net()
model(torch.randn(2, 4))
other = copy.deepcopy(model)
""",
        "deepcopy",
    ),
    "kept data": (
        HEAD
        + """class Net(nn.Module):
    def forward(self, x):
        self.last = x * 2
        return self.last


other = copy.deepcopy(Net())
""",
        "deepcopy",
    ),
    "the parametrization": (
        HEAD
        + """from torch.nn.utils.parametrizations import weight_norm
model = weight_norm(nn.Linear(4, 2))
other = copy.deepcopy(model)
""",
        "deepcopy",
    ),
    "a sent value": (
        HEAD
        + """net = nn.Linear(4, 2)
queue.put(net(torch.randn(2, 4)).detach())
""",
        "queue.put",
    ),
}
WRONG = {
    "an activation": (
        HEAD
        + """class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 2)

    def forward(self, x):
        self.last = self.layer(x)
        return self.last.relu()


model = Net()
model(torch.randn(2, 4))
other = copy.deepcopy(model)
""",
        "deepcopy",
        ["last = self.layer(x)", "self.last = last.detach()", "return last.relu()"],
    ),
    "a local that is kept": (
        HEAD
        + """class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 2)

    def forward(self, x):
        h = self.layer(x)
        self.last = h
        return h


model = Net()
model(torch.randn(2, 4))
other = copy.deepcopy(model)
""",
        "deepcopy",
        ["self.last = h.detach()"],
    ),
    "a list of activations": (
        HEAD
        + """class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 2)
        self.seen = []

    def forward(self, x):
        h = self.layer(x)
        self.seen.append(h)
        return h


model = Net()
model(torch.randn(2, 4))
other = copy.deepcopy(model)
""",
        "deepcopy",
        ["self.seen.append(h.detach())"],
    ),
    "the old weight norm": (
        HEAD
        + """model = nn.utils.weight_norm(nn.Linear(4, 2))
other = copy.deepcopy(model)
""",
        "deepcopy",
        ["model = nn.utils.parametrizations.weight_norm(nn.Linear(4, 2))"],
    ),
    "a sent activation": (
        HEAD
        + """net = nn.Linear(4, 2)
queue.put((net(torch.randn(2, 4)), 3))
""",
        "queue.put",
        ["queue.put((net(torch.randn(2, 4)).detach(), 3))"],
    ),
}


@pytest.mark.parametrize(("source", "at"), RIGHT.values(), ids=RIGHT)
def test_right_programs_stay(tmp_path, source: str, at: str) -> None:
    """Detached values and data are left alone."""
    assert rewritten(tmp_path, "keep_detached", source, at or None) == source


@pytest.mark.parametrize(("source", "at", "wanted"), WRONG.values(), ids=WRONG)
def test_faults_are_cured(tmp_path, source: str, at: str, wanted: list[str]) -> None:
    """The kept value has no graph; a second time nothing is left to do."""
    after = rewritten(tmp_path, "keep_detached", source, at or None)
    assert changed_lines(source, after) == wanted
    again = at if at and at in after else None
    assert rewritten(tmp_path, "keep_detached", after, again) == after


WORKER = """import torch
import torch.multiprocessing as mp
from torch import nn

net = nn.Linear(4, 2)


def play(seed):
    state = torch.randn(4)
    value = net(state)
    return {"state": state, "value": value}


def main():
    with mp.get_context("fork").Pool(2) as pool:
        episodes = pool.map(play, range(4))
"""


def test_a_worker_of_a_pool(tmp_path) -> None:
    """What it gives back has a graph; one that trains by itself, or gives back data, is left alone."""
    after = rewritten(tmp_path, "keep_detached", WORKER)
    assert changed_lines(WORKER, after) == ["@torch.no_grad()"]
    assert after.index("@torch.no_grad()") < after.index("def play")
    assert rewritten(tmp_path, "keep_detached", after) == after
    found = best("keep_detached", write(tmp_path, {"train.py": WORKER}))
    assert found is not None
    assert found.culprit.code == 'return {"state": state, "value": value}'
    partial = WORKER.replace("map(play,", "map(functools.partial(play),").replace(
        "import torch\n", "import functools\n", 1
    )
    assert "@torch.no_grad()" in rewritten(tmp_path, "keep_detached", partial)
    for other in (
        WORKER.replace("net(state)\n", "net(state).detach()\n"),
        WORKER.replace("    return {", "    value.sum().backward()\n    return {"),
    ):
        assert rewritten(tmp_path, "keep_detached", other) == other


FOCUS = """class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 2)

    def forward(self, x):
        self.weights = self.layer(x).softmax(-1)
        return self.weights.sum(-1)


model, teacher = Net(), None
for step in range(3):
    if step == 1:
        teacher = copy.deepcopy(model)
    loss = model(torch.randn(2, 4)).sum() + USE
    loss.backward()
"""


def test_a_schedule_that_is_made_late_is_no_activation(tmp_path) -> None:
    """It holds the optimizer with its weights; what cannot be copied is in the module."""
    run = """class Run:
    def __init__(self):
        self.model = Net()
        self.opt = torch.optim.SGD(self.model.parameters(), 0.1)

    def begin(self):
        self.average = copy.deepcopy(self.model)
        self.rate = torch.optim.lr_scheduler.ExponentialLR(self.opt, 0.9)
"""
    source = HEAD + FOCUS.partition("\n\nmodel, teacher")[0] + "\n\n" + run
    program = write(tmp_path, {"train.py": source})
    found = find_codemod("keep_detached")(
        Context(program=program, incident=failed({"train.py": line_of(source, "deepcopy")}))
    )
    assert {one.culprit.line for one in found} == {line_of(source, "self.weights =")}


@pytest.mark.parametrize(
    ("use", "changed"),
    [
        ("model.weights.log().mean()", ["        model.weights = model.weights.detach()"]),
        (
            "model.weights.detach().mean()",
            ["weights = self.layer(x).softmax(-1)", "self.weights = weights.detach()", "return weights.sum(-1)"],
        ),
    ],
    ids=["trained on", "read as a value"],
)
def test_an_attribute_that_the_loss_reads_is_detached_at_the_copy(use: str, changed: list[str], tmp_path) -> None:
    """In the forward it needs its graph, or the loss would train less without a word."""
    source = HEAD + FOCUS.replace("USE", use)
    after = rewritten(tmp_path, "keep_detached", source, "deepcopy")
    assert [one.strip() for one in changed_lines(source, after)] == [one.strip() for one in changed]


BAGS = """import copy
from torch.optim.swa_utils import AveragedModel

class Pooling(nn.Module):
    def __init__(self):
        super().__init__()
        self.score = nn.Linear(4, 1)
        self.attention = None

    def forward(self, h):
        self.attention = torch.softmax(self.score(h), 0)
        return (self.attention * h).sum(0)


class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.pool = Pooling()

    def forward(self, h):
        return self.pool(h)


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = Encoder()
        self.head = nn.Linear(4, 1)

    def forward(self, h):
        return self.head(self.encoder(h))


model = Model()
loss = model(torch.randn(5, 4)).sum() + model.encoder.pool.attention.max()
loss.backward()
averaged = COPY(model)
"""


@pytest.mark.parametrize("copies", ["copy.deepcopy", "AveragedModel"])
def test_a_copied_model_holds_the_module_that_keeps_it(copies: str, tmp_path) -> None:
    """The way to it is found through the attributes of the model; where it has two such modules, so are both."""
    source = HEAD + BAGS.replace("COPY", copies)
    after = rewritten(tmp_path, "keep_detached", source, "averaged =")
    assert changed_lines(source, after) == ["model.encoder.pool.attention = model.encoder.pool.attention.detach()"]
    found = best(
        "keep_detached",
        write(tmp_path, {"train.py": source}),
        incident=failed({"train.py": line_of(source, "averaged =")}),
    )
    assert found is not None
    assert found.culprit.code == "self.attention = torch.softmax(self.score(h), 0)"  # leads, wherever the edit is made
    two = source.replace(
        "        self.pool = Pooling()", "        self.pool = Pooling()\n        self.other = Pooling()"
    )
    other = "model.encoder.other.attention = model.encoder.other.attention.detach()"
    assert changed_lines(two, rewritten(tmp_path, "keep_detached", two, "averaged =")) == [
        "model.encoder.pool.attention = model.encoder.pool.attention.detach()",
        other,
    ]


LAYERS = """class Expert(nn.Module):
    def __init__(self):
        super().__init__()
        self.gate = nn.Linear(4, 4)
        self.balance = None

    def forward(self, h):
        self.balance = self.gate(h).softmax(-1).square().mean()
        return h


class Net(nn.Sequential):
    def balance(self):
        return sum(one.balance for one in self[:2])


def keep(best, model):
    best["model"] = copy.deepcopy(model)


layers = nn.ModuleList(Expert() for _ in range(2))
model = Net(*layers, nn.Linear(4, 1))
loss = model(torch.randn(5, 4)).sum() + model.balance()
loss.backward()
keep({}, model)
"""


@pytest.mark.torch
def test_layers_of_a_list_are_detached_at_the_copy(tmp_path) -> None:
    """Where the class of what is copied is not known, each of its modules is asked, one of which has a method of that name; the program then runs to its end."""
    pytest.importorskip("torch")
    source = HEAD + LAYERS
    after = rewritten(tmp_path, "keep_detached", source, 'best["model"]')
    assert [one.strip() for one in changed_lines(source, after)] == [
        "for part in model.modules():",
        'if hasattr(getattr(part, "balance", None), "detach"):',
        "part.balance = part.balance.detach()",
    ]
    with pytest.raises(RuntimeError, match="deepcopy"):
        exec(source, {})  # noqa: S102 - the program of a test
    exec(after, {})  # noqa: S102


NORMED = """import copy
from torch import nn
from torch.nn.utils import spectral_norm

net = nn.Sequential(spectral_norm(nn.Linear(4, 4)), nn.Linear(4, 2))
net(torch.randn(2, 4)).sum().backward()
average = copy.deepcopy(net)
"""


@pytest.mark.torch
def test_a_computed_weight_is_detached_before_the_copy(tmp_path) -> None:
    """Behind the parametrized form, which trains otherwise; the copy and the network compute what they did."""
    torch = pytest.importorskip("torch")
    source = f"import torch\n{NORMED}"
    line = line_of(source, "copy.deepcopy(net)")
    context = Context(
        program=write(tmp_path, {"train.py": source}), incident=failed({str(tmp_path / "train.py"): line})
    )
    found = sorted(find_codemod("keep_detached")(context), key=lambda one: -one.belief)
    assert "parametrizations" in (splice(source, found[0].edits) or "")
    after = splice(source, found[1].edits) or ""
    torch.manual_seed(0)
    space: dict[str, object] = {}
    exec(compile(after, "train.py", "exec"), space)  # noqa: S102 - the program that was just written
    net, average = space["net"], space["average"]
    x = torch.randn(2, 4)
    assert torch.equal(net.eval()(x), average.eval()(x))
    assert [name for name, _ in net.named_parameters()] == [name for name, _ in average.named_parameters()]
