"""`gradfix run --fix`: a fix stays only when the program was seen to train with it."""

from __future__ import annotations

import json
import pathlib
import sys

import pytest

from explainer.catalog.bundle import load_catalog
from explainer.proof import Target, prove
from explainer.run import Job
from tests import forked
from tests.verification.programs import CARRIED, CHECKPOINTED, IN_PLACE, OUT_OF_PLACE, REENTRANT, chosen, gradfix

pytestmark = pytest.mark.torch
BROKEN = """import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(4, 4)
        self.second = nn.Linear(4, 4)

    def forward(self, x):
        h = torch.relu(self.first(x))
        h += self.second(h)
        return h


torch.manual_seed(0)
model = Net()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(20):
    optimizer.zero_grad()
    model(torch.randn(2, 4)).sum().backward()
    optimizer.step()
"""
RIGHT = BROKEN.replace("h += self.second(h)", "h = h + self.second(h)")


@pytest.fixture(autouse=True)
def _torch(tmp_path_factory, monkeypatch):
    pytest.importorskip("torch")
    monkeypatch.setenv("GRADFIX_STATE_DIR", str(tmp_path_factory.mktemp("state")))


def test_repaired_and_undone(tmp_path: pathlib.Path) -> None:
    """The edit is applied and proved; exit 0; undo gives the file back byte for byte."""
    (tmp_path / "train.py").write_text(BROKEN)
    done = gradfix(tmp_path, "run", "--fix", "--format", "json", "--no-probe", "--", forked.python(), "train.py")
    told = json.loads(done.stdout)
    assert (done.returncode, told["status"]) == (0, "verified")
    assert told["report"]["findings"][0]["culprits"][0]["line"] == 13
    assert told["verification"]["verdict"] == "green"
    assert (tmp_path / "train.py").read_text() == RIGHT
    assert "held against" not in done.stderr  # nothing is checkpointed: no run more
    assert gradfix(tmp_path, "undo").returncode == 0
    assert (tmp_path / "train.py").read_text() == BROKEN


@pytest.mark.slow
def test_without_fix_nothing_is_written(tmp_path: pathlib.Path) -> None:
    """`run` alone explains."""
    (tmp_path / "train.py").write_text(BROKEN)
    done = gradfix(tmp_path, "run", "--no-probe", "--", forked.python(), "train.py")
    assert done.returncode == 1
    assert "inplace/op-on-saved-tensor" in done.stderr
    assert (tmp_path / "train.py").read_text() == BROKEN


@pytest.mark.slow  # the interface's own test of it runs always
def test_a_red_verification_is_taken_back(tmp_path: pathlib.Path) -> None:
    """The in-place fault is cured and the program fails elsewhere all the same: the file is as it was."""
    text = BROKEN.replace("    optimizer.step()\n", "    optimizer.step()\n    open('no/such/folder')\n")
    (tmp_path / "train.py").write_text(text)
    done = gradfix(tmp_path, "run", "--fix", "--format", "json", "--no-probe", "--", forked.python(), "train.py")
    told = json.loads(done.stdout)
    assert (done.returncode, told["status"], told["applied"]) == (1, "unfixed", [])
    assert told["rounds"][0]["verdict"] == "red"
    assert (tmp_path / "train.py").read_text() == text


@pytest.mark.slow
def test_two_faults_one_behind_the_other(tmp_path: pathlib.Path) -> None:
    """A new failure behind a fix is the next round; both edits are kept when the end is green."""
    text = BROKEN.replace("        return h\n", "        g = torch.tanh(h)\n        g *= 0.5\n        return g\n")
    (tmp_path / "train.py").write_text(text)
    done = gradfix(tmp_path, "run", "--fix", "--format", "json", "--no-probe", "--", forked.python(), "train.py")
    told = json.loads(done.stdout)
    assert told["status"] == "verified"
    assert len(told["applied"]) == 2


CRITIC = """import torch
from torch import nn

torch.manual_seed(0)
critic = nn.Linear(3, 1)
optimizer = torch.optim.SGD(critic.parameters(), lr=0.1)
x, returns = torch.randn(8, 3), torch.randn(8)
for _ in range(4):
    optimizer.zero_grad()
    value = (critic(x) - returns).square().mean()
    near = nn.functional.smooth_l1_loss(critic(x), returns)
    (value + near).backward()
    optimizer.step()
"""


@pytest.mark.slow
def test_a_fault_that_only_the_trace_sees_behind_one_that_warns(tmp_path: pathlib.Path) -> None:
    """Of two losses of all pairs one gives a warning; the other is seen when the first is mended, and mended too."""
    (tmp_path / "train.py").write_text(CRITIC)
    done = gradfix(tmp_path, "run", "--fix", "--format", "json", "--no-probe", "--", forked.python(), "train.py")
    told = json.loads(done.stdout)
    assert (told["status"], len(told["applied"])) == ("verified", 2)
    assert (tmp_path / "train.py").read_text() == CRITIC.replace("critic(x)", "critic(x).squeeze(-1)")


def test_silence_is_no_repair(tmp_path: pathlib.Path) -> None:
    """`use_reentrant=False` ends the error; a hidden write in place then falsifies gradients, and the edit is taken back."""
    text = CHECKPOINTED.format(act=IN_PLACE, call=REENTRANT)
    (tmp_path / "train.py").write_text(text)
    done = gradfix(tmp_path, "run", "--fix", "--format", "json", "--no-probe", "--", forked.python(), "train.py")
    told = json.loads(done.stdout)
    assert (told["status"], (tmp_path / "train.py").read_text()) == ("unfixed", text)
    assert told["rounds"][0]["verdict"] == "red"
    assert told["rounds"][0]["reasons"][0].startswith("gradients are not those without activation checkpointing")


INFERENCE = """import torch
from torch import nn

body, head = nn.Linear(4, 4), nn.Linear(4, 1)
optimizer = torch.optim.SGD([*body.parameters(), *head.parameters()], lr=0.1)
for _ in range(6):
    with torch.inference_mode():
        h = torch.relu(body(torch.randn(2, 4)))
    optimizer.zero_grad()
    head(h).pow(2).mean().backward()
    optimizer.step()
"""


@pytest.mark.slow
def test_what_inference_mode_kept_from_training_stays_untrained(tmp_path: pathlib.Path) -> None:
    """An optimizer may own it all the same: that `no_grad` cuts there too is no reason to take the edit back."""
    (tmp_path / "train.py").write_text(INFERENCE)
    done = gradfix(tmp_path, "run", "--fix", "--format", "json", "--no-probe", "--", forked.python(), "train.py")
    assert json.loads(done.stdout)["status"] == "verified"
    assert (tmp_path / "train.py").read_text() == INFERENCE.replace("inference_mode", "no_grad")


@pytest.mark.slow
def test_checkpointing_that_is_right_is_proved(tmp_path: pathlib.Path) -> None:
    """The same edit of a program that writes nothing in place is held against its twin and stays."""
    text = CHECKPOINTED.format(act=OUT_OF_PLACE, call=REENTRANT)
    (tmp_path / "train.py").write_text(text)
    done = gradfix(tmp_path, "run", "--fix", "--format", "json", "--no-probe", "--", forked.python(), "train.py")
    told = json.loads(done.stdout)
    assert (told["status"], told["verification"]["comparison"]["verdict"]) == ("verified", "same")
    assert (tmp_path / "train.py").read_text() == text.replace("reentrant=True", "reentrant=False")


@pytest.mark.slow
def test_a_program_that_passes(tmp_path: pathlib.Path) -> None:
    """Nothing is said about a run that needs nothing."""
    (tmp_path / "train.py").write_text(RIGHT)
    done = gradfix(tmp_path, "run", "--fix", "--no-probe", "--", forked.python(), "train.py")
    assert (done.returncode, done.stdout) == (0, "")
    assert done.stderr.splitlines() == ["gradfix: tracing: the same command again, each operation watched"]


HIDDEN = """import torch
class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.body = torch.nn.Linear(4, 4)
    def forward(self, x):
        scores = self.body(x).softmax(-1)
        scores.data.masked_fill_(scores < 0.2, 0.0)
        return scores
torch.manual_seed(0)
net = Net()
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for _ in range(5):
    loss = net(torch.ones(2, 4)).square().sum()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""


@pytest.mark.slow
def test_a_silent_write_is_suspect(tmp_path: pathlib.Path) -> None:
    """A `.data` write that spoils the gradient without an error is traced, named, and the exit status stays the program's."""
    (tmp_path / "train.py").write_text(HIDDEN)
    done = gradfix(tmp_path, "run", "--trace", "--format", "json", "--no-probe", "--", forked.python(), "train.py")
    told = json.loads(done.stdout)
    assert (done.returncode, told["status"]) == (0, "suspect")
    finding = told["report"]["findings"][0]
    assert finding["cause"] == "inplace/op-on-saved-tensor"
    assert finding["culprits"][0]["line"] == 8


STAGES = """import os, torch
def train(name, previous=None):
    model = torch.nn.Linear(2, 1)
    if previous:
        model.load_state_dict(torch.load(previous))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(3):
        h = model(torch.ones(2, 2)).sigmoid()
        if previous:
            h += 1
        optimizer.zero_grad()
        h.sum().backward()
        optimizer.step()
    torch.save(model.state_dict(), name)
os.makedirs("out", exist_ok=True)
train("out/first.pt")
train("out/second.pt", "out/first.pt")
"""


@pytest.mark.slow
def test_a_second_stage_reads_what_the_first_saved(tmp_path: pathlib.Path) -> None:
    """What a stage saves can be read back under watch, an optimizer that is done need not step again, and nothing stays."""
    (tmp_path / "train.py").write_text(STAGES)
    done = gradfix(tmp_path, "run", "--fix", "--format", "json", "--no-probe", "--", forked.python(), "train.py")
    told = json.loads(done.stdout)
    assert told["status"] == "verified", told["rounds"]
    assert "h = h + 1" in (tmp_path / "train.py").read_text()


def test_a_cure_that_only_silences_is_red(tmp_path: pathlib.Path) -> None:
    """`.data` in place of the write that raised: healthy losses, no error, and a gradient of other values."""
    from explainer.catalog.bundle import load_catalog
    from explainer.proof import Target, prove
    from explainer.run import Job
    from explainer.workflow import apply, undo

    path = tmp_path / "train.py"
    hidden = BROKEN.replace("h += self.second(h)", "h.data.add_(self.second(h).detach())")
    assert hidden != BROKEN
    choice = chosen(path, BROKEN, hidden, "inplace/op-on-saved-tensor")
    job = Job(command=(forked.python(), "train.py"), root=str(tmp_path), catalog=load_catalog())
    record = apply(choice.fix, cause=choice.finding.cause, root=job.root)
    proof = prove(job, Target(), choice, lambda _: None)
    undo(record)
    assert (proof.verdict, "unseen by autograd" in proof.reasons[0]) == ("red", True)
    assert path.read_text() == BROKEN


@pytest.mark.parametrize(
    ("new", "verdict"),
    [
        ("head(hidden.detach())", "red"),
        pytest.param("head(hidden).sum()\n    hidden = hidden.detach()", "green", marks=pytest.mark.slow),
    ],
)
def test_what_had_a_gradient_before_the_edit_still_has(tmp_path: pathlib.Path, new: str, verdict: str) -> None:
    """A cut that silences the error and keeps a part of the model from training is red, though all else is well."""
    from explainer.catalog.bundle import load_catalog
    from explainer.proof import target_of
    from explainer.repair import _Attempt
    from explainer.run import Job, run_program

    old = "head(hidden).sum()" if "\n" in new else "head(hidden)"
    choice = chosen(tmp_path / "train.py", CARRIED, CARRIED.replace(old, new), "backward/state-carried-across-steps")
    job = Job(command=(forked.python(), "train.py"), root=str(tmp_path), catalog=load_catalog())
    run = run_program(job, lambda *_: None, is_shown=False)
    target = target_of(run, job.root)
    attempt = _Attempt(job, lambda _: None, target)
    assert (run.status, target.given, target.past) == (1, 6, (("0 SGD", 1),))
    assert attempt._apply(choice.finding, choice.fix)
    proof = attempt._verify(choice.finding, choice.fix)
    attempt.take_all_back()
    assert proof.verdict == verdict
    assert verdict == "green" or proof.reasons == ("2 parameters get a gradient where 6 did before the edit",)


UNDERFLOWS = """import torch

torch.manual_seed(0)
net = torch.nn.Linear(3, 3)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
optimizer.zero_grad()
weights = (net(torch.randn(4, 3)).sum(-1) - 900.0).exp()
weights.mean().log().backward()
optimizer.step()
"""


@pytest.mark.parametrize(
    ("new", "verdict"),
    [
        ("(weights.mean() + 1e-8).log()", "red"),
        ("weights.clamp_min(1e-8).mean().log()", "red"),
        ("(net(torch.randn(4, 3)).sum(-1) - 900.0).logsumexp(0)", "green"),
    ],
)
def test_a_floor_that_leaves_no_gradient(tmp_path: pathlib.Path, new: str, verdict: str) -> None:
    """The loss is finite, and nothing trains: that shows in a single step too."""
    from explainer.workflow import apply, undo

    path = tmp_path / "train.py"
    cured = UNDERFLOWS.replace("weights.mean().log()", new)
    choice = chosen(path, UNDERFLOWS, cured, "nan/log-of-zero")
    job = Job(command=(forked.python(), "train.py"), root=str(tmp_path), catalog=load_catalog())
    record = apply(choice.fix, cause=choice.finding.cause, root=job.root)
    proof = prove(job, Target(), choice, lambda _: None)
    undo(record)
    assert proof.verdict == verdict, proof.reasons
    if verdict == "red":
        assert proof.reasons == ("all gradients are zero with the edit: it takes away what was to train",)


UNSEEN = """import torch
from torch import nn

torch.manual_seed(0)
first, second = nn.Linear(4, 4), nn.Linear(4, 4)
optimizer = torch.optim.SGD([*first.parameters(), *second.parameters()], lr=0.1)
for _ in range(5):
    optimizer.zero_grad()
    h = torch.tanh(first(torch.randn(2, 4)))
    h.data.mul_(0.5)
    g = torch.sigmoid(second(h))
    g.sum().backward()
    optimizer.step()
"""


@pytest.mark.slow
def test_a_write_that_autograd_does_not_see(tmp_path: pathlib.Path) -> None:
    """The program runs through; the trace finds the line, and finds nothing after the edit."""
    (tmp_path / "train.py").write_text(UNSEEN)
    words = ("run", "--fix", "--unsafe-fixes", "--format", "json", "--no-probe", "--", forked.python(), "train.py")
    told = json.loads(gradfix(tmp_path, *words).stdout)
    assert told["status"] == "verified"
    assert (tmp_path / "train.py").read_text() == UNSEEN.replace("h.data.mul_(0.5)", "h = h.mul(0.5)")


@pytest.mark.slow
def test_a_fix_that_leaves_another_such_write_is_taken_back(tmp_path: pathlib.Path) -> None:
    """A run that ends well proves nothing where the fault was silent: the trace is asked again."""
    text = UNSEEN.replace("    g.sum()", "    g.data.copy_(g.data * 0.5)\n    g.sum()")
    (tmp_path / "train.py").write_text(text)
    words = ("run", "--fix", "--unsafe-fixes", "--format", "json", "--no-probe", "--", forked.python(), "train.py")
    told = json.loads(gradfix(tmp_path, *words).stdout)
    assert told["status"] == "suspect"
    assert "unseen by autograd" in told["rounds"][0]["reasons"][0]
    assert (tmp_path / "train.py").read_text() == text


STARVING = """import torch
from torch import nn

torch.manual_seed(0)
items, users = nn.Linear(4, 3), nn.Linear(4, 3)
optimizer = torch.optim.SGD([*items.parameters(), *users.parameters()], lr=0.1)
x, rows = torch.randn(5, 4), {}
for step in range(6):
    rows.clear()
    for number, row in enumerate(items(x)):
        rows[number] = row.detach()
    loss = (users(x) * torch.stack(list(rows.values()))).sum()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print("done")
"""


@pytest.mark.slow
def test_a_silent_cut_is_repaired_with_leave(tmp_path: pathlib.Path) -> None:
    """A program that ends well and starves parameters: suspect without leave for an unsafe fix, with it traced again."""
    (tmp_path / "train.py").write_text(STARVING)
    words = ("run", "--fix", "--format", "json", "--no-probe")
    told = json.loads(gradfix(tmp_path, *words, "--", forked.python(), "train.py").stdout)
    assert told["status"] == "suspect"
    assert (tmp_path / "train.py").read_text() == STARVING
    told = json.loads(gradfix(tmp_path, *words, "--unsafe-fixes", "--", forked.python(), "train.py").stdout)
    assert told["status"] == "verified"
    assert told["report"]["findings"][0]["culprits"][0]["line"] == 11
    assert (tmp_path / "train.py").read_text() == STARVING.replace("row.detach()", "row")


RENEWED = """import torch
from torch import nn

torch.manual_seed(0)
rule, head = nn.Linear(4, 9), nn.Linear(3, 1)
optimizer = torch.optim.SGD([*rule.parameters(), *head.parameters()], lr=0.1)
for step in range(6):
    context, x = torch.randn(4), torch.randn(5, 3)
    mixing = nn.Parameter(rule(context).view(3, 3))
    loss = head(torch.tanh(x @ mixing)).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print("done")
"""


@pytest.mark.slow
def test_computed_weights_that_are_made_parameters(tmp_path: pathlib.Path) -> None:
    """A program that ends well and makes a new leaf of what a network computes in each step."""
    (tmp_path / "train.py").write_text(RENEWED)
    words = ("run", "--fix", "--unsafe-fixes", "--format", "json", "--no-probe", "--", forked.python(), "train.py")
    told = json.loads(gradfix(tmp_path, *words).stdout)
    finding = told["report"]["findings"][0]
    assert (told["status"], finding["cause"]) == ("verified", "no-graph/detached")
    assert finding["culprits"][0]["line"] == 9
    assert "mixing = rule(context).view(3, 3)\n" in (tmp_path / "train.py").read_text()


PENALTY = """import torch
from torch import nn

torch.manual_seed(0)
critic = nn.Sequential(nn.Linear(2, 8), nn.Softplus(), nn.Linear(8, 1))
optimizer = torch.optim.Adam(critic.parameters(), lr=1e-3)


def steepness(mixed):
    (slope,) = torch.autograd.grad(critic(mixed).sum(), mixed)
    return (slope.norm(dim=1) - 1).square().mean()


for _ in range(5):
    real, fake = torch.randn(8, 2), torch.randn(8, 2) + 1
    penalty = steepness(((real + fake) / 2).requires_grad_(True))
    loss = critic(fake).mean() - critic(real).mean() + 10 * penalty
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("text", "before", "after"),
    [
        (PENALTY, "mixed)\n    return", "mixed, create_graph=True)\n    return"),
        (PENALTY.replace("), mixed)\n", "), mixed, create_graph=True)\n").replace("* penalty", "* penalty.item()"), ".item()", ""),
    ],
    ids=["no graph of the gradient", "a number"],
)  # fmt: skip
def test_a_term_that_trains_nothing_is_repaired(text: str, before: str, after: str, tmp_path: pathlib.Path) -> None:
    """A penalty without a graph changes the loss, and no gradient."""
    (tmp_path / "train.py").write_text(text)
    words = ("run", "--fix", "--unsafe-fixes", "--format", "json", "--no-probe")
    told = json.loads(gradfix(tmp_path, *words, "--", forked.python(), "train.py").stdout)
    assert (told["status"], told["report"]["findings"][0]["confidence"]) == ("verified", "certain")
    assert (tmp_path / "train.py").read_text() == text.replace(before, after)


RATES = """import torch
from torch import nn


def groups(model, specs):
    made = []
    for spec in specs:
        part = spec["part"]
        made.append({"params": [p for n, p in model.named_parameters() if n.startswith(part)], "lr": spec["lr"]})
    return made


torch.manual_seed(0)
net = nn.Sequential()
for name in ("stem", "trunk", "head"):
    net.add_module(name, nn.Linear(4, 4))
specs = [
    {"part": "stem.", "lr": 0.1},
    {"part": "encoder.", "lr": 0.1},
    {"part": "head.", "lr": 0.2},
]
optimizer = torch.optim.SGD(groups(net, specs), lr=0.1)
for _ in range(6):
    optimizer.zero_grad()
    net(torch.randn(8, 4)).pow(2).mean().backward()
    optimizer.step()
"""


@pytest.mark.slow
def test_a_part_without_an_optimizer(tmp_path: pathlib.Path) -> None:
    """An empty group leaves a part of the model untrained: suspect, and repaired with leave."""
    (tmp_path / "train.py").write_text(RATES)
    words = ("run", "--fix", "--format", "json", "--no-probe")
    told = json.loads(gradfix(tmp_path, *words, "--", forked.python(), "train.py").stdout)
    assert told["status"] == "suspect"
    finding = told["report"]["findings"][0]
    assert (finding["cause"], finding["culprits"][0]["line"]) == ("no-graph/empty-parameter-list", 19)
    assert (tmp_path / "train.py").read_text() == RATES
    told = json.loads(gradfix(tmp_path, *words, "--unsafe-fixes", "--", forked.python(), "train.py").stdout)
    assert told["status"] == "verified"
    assert (tmp_path / "train.py").read_text() == RATES.replace('"encoder."', '"trunk."')


EARLY = """import torch
from torch import nn
torch.manual_seed(0)
model = nn.Linear(3, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
schedule = torch.optim.lr_scheduler.StepLR(optimizer, 1)
{more}
def fit():
    for _ in range(2):
        loss = model(torch.ones(4, 3)).square().mean()
        optimizer.zero_grad()
        {backward}
for epoch in range(3):
    schedule.step()
    fit()
print("ended well")
"""
PLAIN = EARLY.format(more="", backward="loss.backward(); optimizer.step()")
SCALED = EARLY.format(
    more='scaler = torch.amp.GradScaler("cpu", init_scale=2.0)',
    backward="scaler.scale(loss).backward(); scaler.step(optimizer); scaler.update()",
)


@pytest.mark.slow
def test_a_warning_that_tells_is_suspect(tmp_path: pathlib.Path) -> None:
    """A program that ends well, and has warned that it trains otherwise than meant; silencing the warning is no repair."""
    (tmp_path / "train.py").write_text(PLAIN)
    done = gradfix(tmp_path, "run", "--no-probe", "--format", "json", "--", forked.python(), "train.py")
    told = json.loads(done.stdout)
    assert (done.returncode, told["status"]) == (0, "suspect")
    assert told["report"]["findings"][0]["cause"] == "optimizer/scheduler-order"
    done = gradfix(tmp_path, "run", "--fix", "--no-probe", "--format", "json", "--", forked.python(), "train.py")
    assert json.loads(done.stdout)["status"] == "verified"
    assert (tmp_path / "train.py").read_text().endswith('    fit()\n    schedule.step()\nprint("ended well")\n')


@pytest.mark.slow
def test_a_scaler_makes_it_harmless(tmp_path: pathlib.Path) -> None:
    """Its first steps may be left out, and then the schedule is ahead."""
    (tmp_path / "train.py").write_text(SCALED)
    done = gradfix(tmp_path, "run", "--no-probe", "--format", "json", "--", forked.python(), "train.py")
    assert json.loads(done.stdout)["status"] == "passed"


def test_a_warning_that_stays_is_red(tmp_path: pathlib.Path) -> None:
    """An edit behind which the program warns as before has cured nothing."""
    path = tmp_path / "train.py"
    after = PLAIN.replace("lr=0.1", "lr=0.2")
    chosen_fix = chosen(path, PLAIN, after, "optimizer/scheduler-order")
    path.write_text(after)
    job = Job(command=(forked.python(), "train.py"), root=str(tmp_path), catalog=load_catalog(None))
    proof = prove(job, Target(past=(("0 SGD", 2),), is_silent=True), chosen_fix, lambda _: None)
    assert (proof.verdict, proof.reasons) == ("red", ("the program still gives the warning",))
