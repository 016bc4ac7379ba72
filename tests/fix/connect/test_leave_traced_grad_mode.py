"""What switched grad mode off is taken away where the tracer saw it, and nowhere else."""

from __future__ import annotations

import pathlib
from dataclasses import replace

import pytest

from explainer.fix.codemod import Context, find_codemod
from explainer.fix.graph.held_target import held_targets
from explainer.fix.graph.uncut import uncut
from explainer.fix.splice import splice
from explainer.model.trace import GRAD_OFF, STARVING_OFF, TracedLine
from explainer.source.graph.cut import grad_mode_cut
from tests.fix.rewriting import changed_lines, diff_lines, failed, line_of, rewritten, write

SOURCE = """import torch

class Base(torch.nn.Module):
    @torch.no_grad()
    def score(self, x):
        return self.rate(x)

    @torch.no_grad()
    def evaluate(self, x):
        return self.score(x).mean()

def features(net, x):
    with torch.no_grad():
        out = net(x)
        top = out.argmax()
    return out, top

def read(net, x):
    with torch.inference_mode():
        out = net(x)
    return out
"""


def proposed(folder: pathlib.Path, line: int) -> list[tuple[str, str | None]]:
    """The text after each edit that is proposed for a traced line, and whether it is unsafe."""
    program = write(folder, {"train.py": SOURCE})
    traced = TracedLine(kind=GRAD_OFF, operation="set_grad_enabled", file=str(folder / "train.py"), line=line)
    incident = replace(failed(), traced=(traced,))
    found = []
    for one in find_codemod("leave_traced_grad_mode")(Context(program=program, incident=incident)):
        (path,) = {edit.file for edit in one.edits}
        found.append((splice(program.files[path].text, one.edits) or "", one.applicability))
    return found


def test_a_decorator(tmp_path: pathlib.Path) -> None:
    """The one that was traced, not the other function's."""
    ((after, applicability),) = proposed(tmp_path, line_of(SOURCE, "@torch.no_grad()"))
    assert after == SOURCE.replace("    @torch.no_grad()\n    def score", "    def score")
    assert applicability is None


@pytest.mark.parametrize(
    ("words", "applicability"), [("with torch.no_grad", "unsafe"), ("with torch.inference_mode", None)]
)
def test_a_block(tmp_path: pathlib.Path, words: str, applicability: str | None) -> None:
    """Its lines move out; where there are several, what was meant to stay untracked is the author's to say."""
    ((after, found),) = proposed(tmp_path, line_of(SOURCE, words))
    assert words not in after
    assert found == applicability
    compile(after, "train.py", "exec")
    assert "out = net(x)" in changed_lines(SOURCE, after)


SEGMENT = """import torch
from torch import nn
from torch.utils.checkpoint import checkpoint
class Backbone(nn.Module):
    @torch.no_grad()
    def forward(self, x):
        return x * 2
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.backbone = Backbone()
    def forward(self, x):
        return checkpoint(self.backbone, x, use_reentrant=True)
"""


def test_what_a_segment_runs(tmp_path: pathlib.Path) -> None:
    """Asked for the segments: no trace is needed, and a function that no segment runs keeps its decorator."""
    segments = {"options": {"segments": True}}
    after = rewritten(tmp_path, "leave_traced_grad_mode", SEGMENT, **segments)
    assert diff_lines(SEGMENT, after) == ["-    @torch.no_grad()"]
    plain = SEGMENT.replace("checkpoint(self.backbone, x, use_reentrant=True)", "self.backbone(x)")
    assert rewritten(tmp_path, "leave_traced_grad_mode", plain, **segments) == plain


def test_another_line(tmp_path: pathlib.Path) -> None:
    """A line that switches nothing gives nothing."""
    assert proposed(tmp_path, line_of(SOURCE, "return self.rate")) == []


ACTOR = """import torch
from torch.distributions import Categorical

class Agent(torch.nn.Module):
    @torch.no_grad()
    def act(self, x):
        policy = Categorical(logits=self.actor(x))
        action = policy.sample()
        return action, RETURNED
"""


@pytest.mark.parametrize(
    ("returned", "count"), [("policy.log_prob(action)", 1), ("policy.probs", 0)], ids=["scored", "drawn only"]
)
def test_layers_that_a_decorator_starves(tmp_path: pathlib.Path, returned: str, count: int) -> None:
    """A log-probability is there to be differentiated; what else runs under the decorator may be frozen on purpose."""
    source = ACTOR.replace("RETURNED", returned)
    program = write(tmp_path, {"train.py": source})
    line = line_of(source, "@torch.no_grad")
    traced = TracedLine(kind=STARVING_OFF, operation="no_grad", file=str(tmp_path / "train.py"), line=line)
    incident = replace(failed(), traced=(traced,))
    found = list(find_codemod("leave_traced_grad_mode")(Context(program=program, incident=incident)))
    assert len(found) == count
    for one in found:
        assert splice(source, one.edits) == source.replace("    @torch.no_grad()\n", "")


LAYERS = """import torch

class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.body = torch.nn.Linear(4, 4)BROUGHT

    @torch.no_grad()
    def encode(self, x):
        return self.body(x)

def check(net, x):
    net.eval()
    return net.encode(x).mean()

def train(net, x):
    net.encode(x).mean().backward()
"""


@pytest.mark.parametrize(
    ("brought", "count"),
    [
        ("", 1),
        ("  # grades like a teacher's", 1),
        ("\n        self.body.load_state_dict(torch.load('body.pt'))", 0),
        ("\n        self.teacher = self.body", 0),
    ],
    ids=["drawn", "a teacher in a text", "loaded", "a teacher"],
)
def test_layers_that_start_at_random(tmp_path: pathlib.Path, brought: str, count: int) -> None:
    """They were to train, unless the program brings weights along; an evaluation keeps the mode."""
    source = LAYERS.replace("BROUGHT", brought)
    program = write(tmp_path, {"train.py": source})
    line = line_of(source, "@torch.no_grad")
    traced = TracedLine(kind=STARVING_OFF, operation="no_grad", file=str(tmp_path / "train.py"), line=line)
    incident = replace(failed(), traced=(traced,))
    found = list(find_codemod("leave_traced_grad_mode")(Context(program=program, incident=incident)))
    assert [one.applicability for one in found] == ["unsafe"] * count
    for one in found:
        bare = source.replace("    @torch.no_grad()\n", "")
        assert splice(source, one.edits) == bare.replace("def check", "@torch.no_grad()\ndef check")


BLOCK = """import torch

class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.body = torch.nn.Linear(4, 4)

    def forward(self, x):
        with torch.no_grad():
            BODY
        return h.sum()
"""


@pytest.mark.parametrize(
    ("body", "count"),
    [
        ("h = self.body(x)", 1),
        ("h = self.body(x)  # stays a fixed random projection", 0),
        ("teacher = h = self.body(x)", 0),
        ("h = self.body(x)\n            top = h.argmax()", 0),
    ],
    ids=["drawn", "fixed", "a teacher", "more than the layer"],
)
def test_a_block_round_nothing_but_layers_that_start_at_random(tmp_path: pathlib.Path, body: str, count: int) -> None:
    """It goes where nothing says that the layers are to stay as they were drawn; only if the author agrees."""
    source = BLOCK.replace("BODY", body)
    program = write(tmp_path, {"train.py": source})
    line = line_of(source, "with torch.no_grad")
    traced = TracedLine(kind=STARVING_OFF, operation="no_grad", file=str(tmp_path / "train.py"), line=line)
    incident = replace(failed(), traced=(traced,))
    found = list(find_codemod("leave_traced_grad_mode")(Context(program=program, incident=incident)))
    assert [one.applicability for one in found] == ["unsafe"] * count
    for one in found:
        wanted = source.replace("        with torch.no_grad():\n", "").replace("            h =", "        h =")
        assert splice(source, one.edits) == wanted


DISTILLED = """import torch
from torch import nn

class Encoder(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.tokens = nn.Embedding(60, width)
        self.rnn = nn.GRU(width, width, batch_first=True)
        self.out = nn.Linear(width, 3)

    @torch.no_grad()
    def features(self, ids):
        return self.rnn(self.tokens(ids))[0].amax(1)

    def forward(self, ids):
        return self.out(self.features(ids))

class Teacher(Encoder):
    def forward(self, ids):
        return self.out(self.rnn(self.tokens(ids))[0].amax(1))

    def freeze(self):
        return self.eval().requires_grad_(False)

class Student(Encoder):
    pass

def main():
    teacher = Teacher(48)
    pretrain(teacher)
    teacher.freeze()
    student = Student(16)
    distil(student, teacher)
"""
INSIDE = DISTILLED.replace("class Encoder", "class Distiller(nn.Module):\n    def __init__(self, teacher):\n        super().__init__()\n        self.teacher = teacher\n        self.teacher.requires_grad_(False)\n\nclass Encoder").replace("    teacher.freeze()\n", "").replace(
    "\n    def freeze(self):\n        return self.eval().requires_grad_(False)\n", ""
)  # fmt: skip
BROUGHT_TO_STUDENT = {
    "the teacher is never frozen": DISTILLED.replace("    teacher.freeze()\n", ""),
    "only its head is frozen": DISTILLED.replace("self.eval().requires", "self.out.requires"),
    "it is frozen on some condition": INSIDE.replace("        self.teacher.req", "        if teacher.big:\n            self.teacher.req"),
    "the student gets weights": DISTILLED.replace("Student(16)\n", "Student(16)\n    student.tokens.load_state_dict(table)\n"),
    "the student gets a layer's copy": DISTILLED.replace("Student(16)\n", "Student(16)\n    student.rnn = copy.deepcopy(other)\n"),
    "the student follows by a momentum": DISTILLED.replace("Student(16)\n", "Student(16)\n    follow = lambda a, b: a.lerp_(b, 0.1)\n"),
    "the student is frozen too": DISTILLED.replace("Student(16)\n", "Student(16)\n    freeze_encoder(student)\n"),
    "a text says that it stays frozen": DISTILLED.replace("    @torch", "    # the embedding stays frozen\n    @torch"),
    "a fixed projection": DISTILLED.replace("    @torch", "    # fixed features, as in a probe\n    @torch"),
    "the class holds a teacher": DISTILLED.replace("self.out = nn", "self.teacher = None\n        self.out = nn"),
    "the method runs another's layers": DISTILLED.replace("def __init__(self, width)", "def __init__(self, width, tokens)").replace("nn.Embedding(60, width)", "tokens"),
    "the method gives targets": DISTILLED.replace("features(", "target_features("),
    "the layers are named for it": DISTILLED.replace("self.rnn", "self.frozen_rnn"),
    "a function for any model": DISTILLED.replace("    @torch.no_grad()\n    def features(self, ids):\n        return self.rnn(self.tokens(ids))[0].amax(1)\n\n", "").replace(
        "class Teacher", "@torch.no_grad()\ndef embed(model, ids):\n    return model.tokens(ids)\n\nclass Teacher"
    ),
}  # fmt: skip
BESIDE_A_TEACHER = {
    "frozen by a method of its class": DISTILLED,
    "frozen where it is held": INSIDE,
    "frozen by its name": DISTILLED.replace("teacher.freeze()", "teacher.eval().requires_grad_(False)"),
    "frozen in a loop": DISTILLED.replace("teacher.freeze()", "for p in teacher.parameters():\n        p.requires_grad = False"),
    "frozen by a function": DISTILLED.replace("def main", "def freeze(net):\n    for p in net.parameters():\n        p.requires_grad_(False)\n\ndef main").replace(
        "teacher.freeze()", "freeze(teacher)"
    ),
    "a layer of the program": DISTILLED.replace("nn.GRU(width, width, batch_first=True)", "Recurrent(width)").replace(
        "class Encoder", "class Recurrent(nn.Module):\n    pass\n\nclass Encoder"
    ),
}  # fmt: skip


def starved(folder: pathlib.Path, source: str) -> list[tuple[str | None, str | None]]:
    """The text after each edit for the line that starves layers, and whether it is unsafe."""
    program = write(folder, {"train.py": source})
    traced = TracedLine(
        kind=STARVING_OFF, operation="no_grad", file=str(folder / "train.py"), line=line_of(source, "torch.no_grad")
    )
    context = Context(program=program, incident=replace(failed(), traced=(traced,)))
    return [(splice(source, one.edits), one.applicability) for one in find_codemod("leave_traced_grad_mode")(context)]


@pytest.mark.parametrize("source", BROUGHT_TO_STUDENT.values(), ids=BROUGHT_TO_STUDENT)
def test_layers_that_a_student_may_freeze(tmp_path: pathlib.Path, source: str) -> None:
    """Nothing is proposed where the layers may be a teacher's, come from elsewhere, or are said to stay."""
    assert starved(tmp_path, source) == []


@pytest.mark.parametrize("source", BESIDE_A_TEACHER.values(), ids=BESIDE_A_TEACHER)
def test_layers_of_a_student_beside_a_frozen_teacher(tmp_path: pathlib.Path, source: str) -> None:
    """What a distillation says of its teacher does not speak for the student's own layers."""
    assert starved(tmp_path, source) == [(source.replace("    @torch.no_grad()\n", ""), "unsafe")]


def test_a_block_of_a_student_beside_a_frozen_teacher(tmp_path: pathlib.Path) -> None:
    """A block goes as the decorator does."""
    bare = DISTILLED.replace("    @torch.no_grad()\n", "").replace(
        "        return self.rnn(self.tokens(ids))[0].amax(1)\n\n    def forward(self, ids):\n        return self.out(self",
        "        WITHh = self.rnn(self.tokens(ids))[0]\n        return h.amax(1)\n\n    def forward(self, ids):\n        return self.out(self",
        1,
    )
    source = bare.replace("WITH", "with torch.no_grad():\n            ")
    assert starved(tmp_path, source) == [(bare.replace("WITH", ""), "unsafe")]


HELPER = """import torch
import torch.nn.functional as F

class Trainer:
    @torch.no_grad()
    def scores(self, x):
        return self.net(x)

    def objective(self, x, y, extra):
        loss = F.cross_entropy(self.scores(x), y)
{body}
"""


@pytest.mark.parametrize(
    ("body", "changed"),
    [
        (
            ["target = self.scores(extra).softmax(-1)", "return loss + F.mse_loss(self.scores(x).softmax(-1), target)"],
            ["target = self.scores(extra).softmax(-1).detach()"],
        ),
        (
            ["return loss + F.kl_div(self.scores(x).log_softmax(-1), self.scores(extra).softmax(-1))"],
            ["return loss + F.kl_div(self.scores(x).log_softmax(-1), self.scores(extra).softmax(-1).detach())"],
        ),
        (["target = self.scores(extra).argmax(-1)", "return loss + F.cross_entropy(self.scores(extra), target)"], []),
        (["other = self.scores(extra)", "return loss + F.mse_loss(self.scores(x), other)"], []),
    ],
    ids=["by its name", "by its place", "of classes", "both are pulled"],
)
def test_a_target_keeps_no_graph(body: list[str], changed: list[str], tmp_path: pathlib.Path) -> None:
    """What a function gave a target with grad mode off is held as it was."""
    source = HELPER.format(body="\n".join(f"        {one}" for one in body))
    program = write(tmp_path, {"train.py": source})
    line = line_of(source, "@torch.no_grad()")
    traced = TracedLine(kind=GRAD_OFF, operation="set_grad_enabled", file=str(tmp_path / "train.py"), line=line)
    incident = replace(failed(), traced=(traced,))
    (one,) = find_codemod("leave_traced_grad_mode")(Context(program=program, incident=incident))
    after = splice(program.order[0].text, one.edits) or ""
    assert changed_lines(source, after) == changed
    assert "no_grad" not in after
    (function,) = [one for _, one in program.functions() if one.name == "scores"]
    cut = grad_mode_cut(function.body[0], program.order[0], program)
    assert cut is not None
    assert splice(program.order[0].text, tuple(uncut(cut, program) or ())) == after


def test_a_target_alone_stays_without_a_graph(tmp_path: pathlib.Path) -> None:
    """Where the function gives nothing but targets it is they that lose what they were cut for: nothing is put on them."""
    source = HELPER.format(body="        return loss").replace(
        "loss = F.cross_entropy(self.scores(x), y)", "target = self.scores(x)"
    )
    program = write(tmp_path, {"train.py": source})
    (function,) = [one for _, one in program.functions() if one.name == "scores"]
    assert list(held_targets(function, program.order[0], program)) == []


def test_what_a_function_makes_targets_of(tmp_path: pathlib.Path) -> None:
    """It says so by its own name; the prediction of another call keeps its graph."""
    source = """import torch

class Critic(torch.nn.Module):
    @torch.no_grad()
    def values(self, obs):
        return self.net(obs)

def td_targets(critic, roll):
    values = critic.values(roll.obs)
    return roll.reward + 0.9 * values[1:]

def loss_of(critic, roll):
    prediction = critic.values(roll.obs[:-1])
    return (td_targets(critic, roll) - prediction).square().mean()

critic = Critic()
loss_of(critic, roll).backward()
"""
    program = write(tmp_path, {"train.py": source})
    (function,) = [one for _, one in program.functions() if one.name == "values"]
    after = splice(program.order[0].text, tuple(held_targets(function, program.order[0], program))) or ""
    assert changed_lines(source, after) == ["values = critic.values(roll.obs).detach()"]


def test_a_target_beside_what_it_is_held_against(tmp_path: pathlib.Path) -> None:
    """The function makes both."""
    source = """import torch

class Learner:
    @torch.no_grad()
    def estimates(self, x, reward, after):
        value = self.critic(x)
        target = reward + 0.9 * self.critic(after)
        return value, target
"""
    program = write(tmp_path, {"train.py": source})
    (function,) = [one for _, one in program.functions() if one.name == "estimates"]
    after = splice(program.order[0].text, tuple(held_targets(function, program.order[0], program))) or ""
    assert changed_lines(source, after) == ["target = (reward + 0.9 * self.critic(after)).detach()"]


@pytest.mark.parametrize(
    ("label", "changed"),
    [
        (
            "reward + gamma * values(net, after).max(1).values",
            ["label = (reward + gamma * values(net, after).max(1).values).detach()"],
        ),
        ("values(net, after).max(1).values", []),
        ("reward + gamma * known", []),
    ],
    ids=["bootstrapped", "another output", "data"],
)
def test_what_a_temporal_difference_is_held_against(label: str, changed: list[str], tmp_path: pathlib.Path) -> None:
    """Whatever it is called: one helper gives the prediction and, under a discount, the value that comes next."""
    source = f"""import torch
import torch.nn.functional as F

@torch.no_grad()
def values(net, x):
    return net(x)

def loss_of(net, x, action, after, reward, gamma, known):
    q = values(net, x).gather(1, action)
    label = {label}
    return F.smooth_l1_loss(q, label)
"""
    program = write(tmp_path, {"train.py": source})
    (function,) = [one for _, one in program.functions() if one.name == "values"]
    after = splice(program.order[0].text, tuple(held_targets(function, program.order[0], program))) or ""
    assert changed_lines(source, after) == changed


SIDES = """import torch
import torch.nn.functional as F
from torch import nn

encoder, predictor = nn.Linear(4, 3), nn.Linear(3, 3)

@torch.no_grad()
def sides(view):
    z = encoder(view)
    guess = predictor(z)
    return guess, z

@torch.no_grad()
def soft(view, labels):
    hard = encoder(view + 1).softmax(-1)
    weight = 1 - hard.gather(1, labels[:, None])
    logits = encoder(view)
    labels = labels.clone()
    return logits, hard, weight, labels

def step(first, second, labels):
    guess1, target1 = sides(first)
    guess2, target2 = sides(second)
    logits, hard, weight, labels = soft(first, labels)
    apart = (guess1 * target2).sum() + (guess2 * target1).sum() - F.cross_entropy(logits, labels)
    return F.kl_div(logits.log_softmax(-1), hard) * weight.mean() - apart

def triplet(x):
    anchor, positive = sides(x)
    return F.mse_loss(anchor, positive)
"""


@pytest.mark.parametrize(
    ("name", "changed"),
    [
        ("sides", ["return guess, z.detach()"]),
        ("soft", ["hard = encoder(view + 1).softmax(-1).detach()"]),
    ],
)
def test_a_target_that_callers_take_apart(name: str, changed: list[str], tmp_path: pathlib.Path) -> None:
    """By its name or its place there; what a module goes on from is detached where it is handed out, others where they are made."""
    program = write(tmp_path, {"train.py": SIDES})
    (function,) = [one for _, one in program.functions() if one.name == name]
    after = splice(program.order[0].text, tuple(held_targets(function, program.order[0], program))) or ""
    assert changed_lines(SIDES, after) == changed


def test_outputs_of_which_none_is_a_target(tmp_path: pathlib.Path) -> None:
    """A distance between two outputs may be meant to train both."""
    source = SIDES[: SIDES.index("def step")] + SIDES[SIDES.index("def triplet") :]
    program = write(tmp_path, {"train.py": source})
    for function in (one for _, one in program.functions()):
        assert list(held_targets(function, program.order[0], program)) == []


POLICY = """import torch

class Policy(torch.nn.Module):
    @torch.no_grad()
    def heads(self, obs):
        return torch.distributions.Normal(self.mu(obs), 1.0)

    def act(self, obs):
        dist = self.heads(obs)
        action = dist.sample()
        return action, dist.log_prob(action)

    def evaluate(self, obs, action):
        return self.heads(obs).log_prob(action)

def loss_of(policy, roll):
    ratio = (policy.evaluate(roll.obs, roll.action) - roll.logp).exp()
    return -(ratio * roll.advantage).mean()
"""


@pytest.mark.parametrize("ratio", [True, False])
def test_what_acts_by_shared_heads_stays_without_grad(ratio: bool, tmp_path: pathlib.Path) -> None:
    """Old probabilities with a graph would have the derivatives of the ratio cancel; without a ratio they are what trains."""
    source = POLICY if ratio else POLICY.replace(".exp()", ".square()")
    program = write(tmp_path, {"train.py": source})
    traced = TracedLine(kind=GRAD_OFF, operation="set_grad_enabled", file=str(tmp_path / "train.py"), line=4)
    context = Context(program=program, incident=replace(failed(), traced=(traced,)))
    (one,) = find_codemod("leave_traced_grad_mode")(context)
    after = splice(source, one.edits) or ""
    wanted = source.replace("    @torch.no_grad()\n", "")
    assert after == (wanted.replace("    def act", "    @torch.no_grad()\n    def act") if ratio else wanted)
