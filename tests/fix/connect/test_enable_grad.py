"""Grad mode is on where a gradient is taken, and not left off behind an evaluation."""

from __future__ import annotations

import json
import pathlib
import traceback
from dataclasses import replace

import pytest

from explainer.fix.splice import splice
from explainer.model.incident import ExceptionRecord, Fact, Frame, Incident
from tests import forked
from tests.fix.rewriting import best, changed_lines, line_of, rewritten, write
from tests.verification.programs import gradfix

HEAD = """import torch
from torch import nn
from torch.nn import functional as F
net = nn.Linear(4, 3)
x, y = torch.randn(2, 4), torch.tensor([0, 1])
"""
RIGHT = {
    "switched on already": (
        HEAD
        + """def attack(x):
    x = x.clone().requires_grad_(True)
    with torch.enable_grad():
        (g,) = torch.autograd.grad(net(x).sum(), x)
    return g


with torch.no_grad():
    attack(x)
""",
        "autograd.grad",
    ),
    "an evaluation with a decorator": (
        HEAD
        + """@torch.no_grad()
def evaluate():
    return net(x)


evaluate()
loss = net(x).sum()
loss.backward()
""",
        "loss.backward()",
    ),
    "switched off and on": (
        HEAD
        + """def evaluate():
    torch.set_grad_enabled(False)
    net(x)
    torch.set_grad_enabled(True)


evaluate()
loss = net(x).sum()
loss.backward()
""",
        "loss.backward()",
    ),
    "a loss whose graph is cut": (
        HEAD
        + """def evaluate():
    torch.set_grad_enabled(False)
    net(x)


loss = net(x).sum().detach()
loss.backward()
""",
        "loss.backward()",
    ),
}
WRONG = {
    "left off": (
        HEAD
        + """def evaluate():
    torch.set_grad_enabled(False)
    return net(x)


evaluate()
loss = net(x).sum()
loss.backward()
""",
        "loss.backward()",
        ["@torch.no_grad()"],
    ),
    "left off in a method": (
        HEAD
        + """class Judge:
    def score(self, rows):
        torch.set_grad_enabled(False)
        return net(rows)


Judge().score(x)
loss = net(x).sum()
loss.backward()
""",
        "loss.backward()",
        ["@torch.no_grad()"],
    ),
}


@pytest.mark.parametrize(("source", "at"), RIGHT.values(), ids=RIGHT)
def test_right_programs_stay(tmp_path, source: str, at: str) -> None:
    """Evaluations that switch it on again are left alone."""
    assert rewritten(tmp_path, "enable_grad", source, at or None) == source


@pytest.mark.parametrize(("source", "at", "wanted"), WRONG.values(), ids=WRONG)
def test_faults_are_cured(tmp_path, source: str, at: str, wanted: list[str]) -> None:
    """Grad mode is off inside the evaluation only; a second time nothing is left to do."""
    after = rewritten(tmp_path, "enable_grad", source, at or None)
    assert changed_lines(source, after) == wanted
    again = at if at and at in after else None
    assert rewritten(tmp_path, "enable_grad", after, again) == after


NET = """import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(2, 8), nn.Tanh(), nn.Linear(8, 1))
        self.lin = nn.Linear(2, 2)

"""
RUN = """

def fit(model):
    opt = torch.optim.SGD(model.parameters(), 0.1)
    model(torch.ones(4, 2)).square().mean().backward()
    opt.step()


def evaluate(model):
    with torch.no_grad():
        return model(torch.ones(4, 2)).square().mean().item()


torch.manual_seed(0)
model = Net()
fit(model)
out = evaluate(model)
"""
# A forward that takes a derivative, and the lines that its evaluation needs; a block moves the lines in it one step in.
FORWARDS = {
    "a force": (
        """    def forward(self, x):
        x = x.detach().requires_grad_(True)
        e = self.net(x)
        f = torch.autograd.grad(e.sum(), x, create_graph=True)[0]
        return self.lin(f)
""",
        ["with torch.enable_grad():", "e = self.net(x)", "f = torch.autograd.grad(e.sum(), x, create_graph=True)[0]"],
    ),
    "what stands between the leaf and the module": (
        """    def forward(self, x):
        x = x.clone()
        x.requires_grad = True
        n = x.shape[0]
        d = torch.sin(x)
        e = self.net(d).sum() / n
        f = torch.autograd.grad(e, x, create_graph=True)[0]
        return self.lin(f)
""",
        [
            "with torch.enable_grad():",
            "d = torch.sin(x)",
            "e = self.net(d).sum() / n",
            "f = torch.autograd.grad(e, x, create_graph=True)[0]",
        ],
    ),
    "a helper that is given both, twice": (
        """    def forward(self, x):
        x = x.clone().requires_grad_()
        u = self.net(x)
        du = gradient(u, x)
        u_t, u_x = du[:, :1], du[:, 1:]
        u_xx = gradient(u_x, x)[:, 1:]
        return u_t + u * u_x - u_xx


def gradient(y, x):
    return torch.autograd.grad(y, x, torch.ones_like(y), create_graph=True)[0]
""",
        [
            "with torch.enable_grad():",
            "u = self.net(x)",
            "du = gradient(u, x)",
            "u_t, u_x = du[:, :1], du[:, 1:]",
            "u_xx = gradient(u_x, x)[:, 1:]",
        ],
    ),
    "a method that is given what another computed": (
        """    def forces(self, h, pos):
        return -torch.autograd.grad(self.net(h).sum(), pos, create_graph=True)[0]

    def forward(self, x):
        pos = x.detach().requires_grad_(True)
        h = torch.tanh(self.lin(pos))
        f = self.forces(h, pos)
        return 2 * f
""",
        ["with torch.enable_grad():", "h = torch.tanh(self.lin(pos))", "f = self.forces(h, pos)"],
    ),
    "a method that ends with it": (
        """    def forward(self, x):
        x = x.clone().requires_grad_()
        e = self.net(x).sum()
        return -torch.autograd.grad(e, x, create_graph=True)[0]
""",
        ["@torch.enable_grad()"],
    ),
    "a leaf in each round": (
        """    def forward(self, x):
        for _ in range(2):
            x = x.detach().requires_grad_(True)
            e = self.net(x).sum()
            g = torch.autograd.grad(e, x)[0]
            x = x - g
        return self.lin(x)
""",
        ["with torch.enable_grad():", "e = self.net(x).sum()", "g = torch.autograd.grad(e, x)[0]"],
    ),
    "rounds that are differentiated through": (
        """    def forward(self, x):
        fast = list(self.lin.parameters())
        for _ in range(2):
            y = nn.functional.linear(x, *fast)
            grads = torch.autograd.grad(self.net(y).mean(), fast, create_graph=True)
            fast = [p - g for p, g in zip(fast, grads)]
        return nn.functional.linear(x, *fast)
""",
        [
            "with torch.enable_grad():",
            "for _ in range(2):",
            "y = nn.functional.linear(x, *fast)",
            "grads = torch.autograd.grad(self.net(y).mean(), fast, create_graph=True)",
            "fast = [p - g for p, g in zip(fast, grads)]",
        ],
    ),
    "a feature of a layer": (
        """    def forward(self, x):
        h = self.lin(x)
        g = torch.autograd.grad(self.net(h).sum(), h, create_graph=True)[0]
        return self.lin(g)
""",
        [
            "with torch.enable_grad():",
            "h = self.lin(x)",
            "g = torch.autograd.grad(self.net(h).sum(), h, create_graph=True)[0]",
        ],
    ),
}
FORCE = FORWARDS["a force"][0]
INFERENCE = RUN.replace("def evaluate", "@torch.inference_mode()\ndef evaluate").replace(
    "with torch.no_grad()", "if model"
)
SCORE = NET + FORWARDS["a method that ends with it"][0]
STEP = """

torch.manual_seed(0)
model = Net()
opt = torch.optim.SGD(model.parameters(), 0.1)


def step(x, y):
    seen = model(x)
    with torch.no_grad():
        goal = model(y)
    (seen - goal).square().mean().backward()
    opt.step()


step(torch.ones(4, 2), torch.zeros(4, 2))
out = [one.grad for one in model.parameters()]
"""


def frames_of(source: str, path: pathlib.Path, *, at: str = "", between: Frame | None = None) -> Incident:
    """What running a program raises, with a library's frame behind that of the line `at`; as seen where that is told."""
    path.write_text(source)
    space: dict[str, object] = {}
    with pytest.raises(RuntimeError, match="does not require grad") as caught:
        exec(compile(source, str(path), "exec"), space)  # noqa: S102 - the program of a test
    frames = [
        Frame(file="train.py" if one.filename == str(path) else one.filename, line=one.lineno, function=one.name,
              library=None if one.filename == str(path) else "torch")
        for one in traceback.extract_tb(caught.value.__traceback__)[1:]
    ]  # fmt: skip
    for place, one in enumerate(frames) if between is not None else ():
        if one.line == line_of(source, at):
            frames.insert(place + 1, between)
            break
    record = ExceptionRecord(type="RuntimeError", message=str(caught.value), frames=tuple(frames))
    return Incident(exceptions=(record,))


def after_edit(source: str, incident: Incident, folder: pathlib.Path) -> str:
    """The program after the best edit for a failure; as it was where there is none."""
    program = write(folder, {"train.py": source})
    proposal = best("enable_grad", program, incident=incident)
    after = splice(source, proposal.edits) if proposal is not None else source
    assert after is not None
    return after


def run_of(source: str) -> object:
    """What a program leaves as `out`."""
    space: dict[str, object] = {}
    exec(compile(source, "train.py", "exec"), space)  # noqa: S102 - the program of a test
    return space["out"]


@pytest.mark.parametrize(("forward", "lines"), FORWARDS.values(), ids=FORWARDS)
def test_a_model_that_differentiates_is_evaluated(forward: str, lines: list[str], tmp_path: pathlib.Path) -> None:
    """The block holds what needs the graph, and the evaluation gives what it would with grad mode on."""
    source = NET + forward + RUN
    after = after_edit(source, frames_of(source, tmp_path / "train.py"), tmp_path)
    assert changed_lines(source, after) == lines
    assert run_of(after) == pytest.approx(run_of(source.replace("with torch.no_grad()", "if model")))


def test_inference_mode_becomes_no_grad_too(tmp_path: pathlib.Path) -> None:
    """Nothing that is enabled inside of inference mode has a graph."""
    source = NET + FORCE + INFERENCE
    after = after_edit(source, frames_of(source, tmp_path / "train.py"), tmp_path)
    assert changed_lines(source, after)[0::3] == ["with torch.enable_grad():", "@torch.no_grad()"]
    assert run_of(after) == pytest.approx(run_of(NET + FORCE + RUN.replace("with torch.no_grad()", "if model")))


TARGETS = {
    "a tensor": (SCORE + STEP, ["@torch.enable_grad()", "goal = model(y).detach()"]),
    "an entry": (
        SCORE.replace("return -torch.autograd.grad(e, x, create_graph=True)[0]",
                      'return {"score": -torch.autograd.grad(e, x, create_graph=True)[0]}')
        + STEP.replace("model(x)", 'model(x)["score"]').replace("model(y)", 'model(y)["score"]'),
        ["@torch.enable_grad()", 'goal = model(y)["score"].detach()'],
    ),
    "one that a function makes": (
        SCORE + STEP.replace("    with torch.no_grad():\n        goal = model(y)\n", "    goal = target(y)\n").replace(
            "def step", "@torch.no_grad()\ndef target(y):\n    return model(y)\n\n\ndef step"
        ),
        ["@torch.enable_grad()", "return model(y).detach()"],
    ),
    "two at once, of which none can be": (
        SCORE.replace("return -torch", "return e, -torch") + STEP.replace("model(x)", "model(x)[1]").replace(
            "goal = model(y)", "_, goal = model(y)"
        ),
        [],
    ),
}  # fmt: skip


@pytest.mark.parametrize(("source", "lines"), TARGETS.values(), ids=TARGETS)
def test_a_target_stays_a_constant(source: str, lines: list[str], tmp_path: pathlib.Path) -> None:
    """What a training step takes under no_grad sends no gradient back, though its own graph is open."""
    after = after_edit(source, frames_of(source, tmp_path / "train.py"), tmp_path)
    assert changed_lines(source, after) == lines
    if lines:
        path = tmp_path / "wanted.py"
        path.write_text(source)
        constant = "torch.autograd.grad(e, x, create_graph=torch.is_grad_enabled())"
        wanted = after.replace("torch.autograd.grad(e, x, create_graph=True)", constant)
        for got, one in zip(run_of(after), run_of(wanted), strict=True):  # type: ignore[call-overload]
            assert (got is None and one is None) or torch_close(got, one)


def test_a_step_that_trains_without_grad_is_the_fault(tmp_path: pathlib.Path) -> None:
    """Its own backward would fail next: the model is left as it is."""
    source = NET + FORCE + STEP.replace("def step", "@torch.no_grad()\ndef step")
    assert after_edit(source, frames_of(source, tmp_path / "train.py"), tmp_path) == source


def torch_close(one: object, other: object) -> bool:
    import torch

    return torch.allclose(one, other)  # type: ignore[arg-type]


BY_LIBRARY = (
    NET
    + FORCE
    + RUN.replace("    with torch.no_grad():\n        return model(", "    return predict(model, ").replace(
        "def evaluate",
        'def predict(model, x):\n    with OFF():\n        return model(x)\n\n\nOFF = getattr(torch, "no_grad")\n\n\ndef evaluate',
    )
)
LIBRARIES = {
    "a trainer of transformers": (Frame(file="trainer.py", function="prediction_step", library="transformers"), "", True),
    "batch norm's update": (Frame(file="torch/utils/_contextlib.py", function="decorate_context", library="torch"), "", True),
    "a library that does not say so": (Frame(file="a.py", function="run", library="skorch"), "", False),
    "one that was seen": (Frame(file="a.py", function="run", library="skorch"), "no", True),
    "seen with grad mode on": (Frame(file="a.py", function="run", library="skorch"), "yes", False),
    "Lightning's inference mode": (Frame(file="a.py", function="validation_step", library="lightning"), "no", False),
    "a checkpointed segment": (Frame(file="torch/utils/checkpoint.py", function="forward", library="torch"), "no", False),
}  # fmt: skip


@pytest.mark.parametrize(("frame", "seen", "acts"), LIBRARIES.values(), ids=LIBRARIES)
def test_a_library_that_evaluates(frame: Frame, seen: str, acts: bool, tmp_path: pathlib.Path) -> None:  # noqa: FBT001
    """Its frame tells that grad mode is off, or the live program does; not where another edit is the right one."""
    source = BY_LIBRARY
    incident = frames_of(source, tmp_path / "train.py", at="return model(x)", between=frame)
    facts = (Fact(name="live_grad_enabled", value=seen),) if seen else ()
    after = after_edit(source, replace(incident, facts=facts), tmp_path)
    assert changed_lines(source, after) == (FORWARDS["a force"][1] if acts else [])


ADJOINT = """import torch
from torch import nn


class Adjoint(torch.autograd.Function):
    @staticmethod
    def forward(ctx, net, x, *weights):
        ctx.net = net
        ctx.save_for_backward(x, *weights)
        return net(x)

    @staticmethod
    def backward(ctx, grad):
        x, *weights = ctx.saved_tensors
        x = x.detach().requires_grad_(True)
        y = ctx.net(x)
        dx, *dw = torch.autograd.grad(y, (x, *weights), grad)
        return None, dx, *dw


torch.manual_seed(0)
net = nn.Linear(3, 2)
x = torch.randn(4, 3, requires_grad=True)


def step():
    Adjoint.apply(net, x, *net.parameters()).square().sum().backward()


step()
out = [one.grad for one in (x, *net.parameters())]
"""


def test_a_backward_of_a_function_that_differentiates(tmp_path: pathlib.Path) -> None:
    """Autograd runs it without grad mode: what it computes once more gets the block."""
    after = after_edit(ADJOINT, frames_with_grad_off(ADJOINT, tmp_path), tmp_path)
    assert changed_lines(ADJOINT, after)[0] == "with torch.enable_grad():"
    space: dict[str, object] = {}
    exec(compile(after, "after", "exec"), space)  # noqa: S102
    plain: dict[str, object] = {}
    exec(compile(ADJOINT.replace("Adjoint.apply(net, x, *net.parameters())", "net(x)"), "plain", "exec"), plain)  # noqa: S102
    assert all(map(torch_close, space["out"], plain["out"]))  # type: ignore[call-overload]


def frames_with_grad_off(source: str, folder: pathlib.Path) -> Incident:
    return replace(frames_of(source, folder / "train.py"), facts=(Fact(name="live_grad_enabled", value="no"),))


def test_lightning_without_inference_mode(tmp_path: pathlib.Path) -> None:
    """Under `no_grad` the model switches it on for itself."""
    source = BY_LIBRARY + "options = dict(inference_mode=False)\n"
    frame = Frame(file="a.py", function="validation_step", library="lightning")
    incident = frames_of(source, tmp_path / "train.py", at="return model(x)", between=frame)
    assert changed_lines(source, after_edit(source, incident, tmp_path)) == FORWARDS["a force"][1]


TRAINER = (
    NET.replace("from torch import nn\n", "from torch import nn\nfrom transformers import Trainer, TrainingArguments\n")
    + """
    def forward(self, x, labels=None):
        x = x.detach().requires_grad_(True)
        e = self.net(x)
        f = torch.autograd.grad(e.sum(), x, create_graph=True)[0]
        return {"loss": (f - labels).square().mean(), "force": f}


torch.manual_seed(0)
rows = [{"x": torch.randn(2), "labels": torch.randn(2)} for _ in range(16)]
options = TrainingArguments("out", num_train_epochs=1, per_device_train_batch_size=8, report_to="none", save_strategy="no",
                            eval_strategy="epoch", use_cpu=True, disable_tqdm=True)
Trainer(Net(), options, train_dataset=rows, eval_dataset=rows).train()
"""
)


@pytest.mark.slow
def test_the_evaluation_of_a_trainer(tmp_path: pathlib.Path) -> None:
    """The trainer's own frames and the live program tell it; the run goes on to the evaluation that failed."""
    pytest.importorskip("transformers")
    (tmp_path / "train.py").write_text(TRAINER)
    told = json.loads(
        gradfix(tmp_path, "run", "--fix", "--no-probe", "--format", "json", "--", forked.python(), "train.py").stdout
    )
    first = told["report"]["findings"][0]
    assert (told["status"], first["cause"]) == ("verified", "no-graph/grad-mode-off")
    assert first["culprits"][0]["code"].strip() == "e = self.net(x)"
