"""One loss gets one backward."""

from __future__ import annotations

import linecache
import pathlib

import pytest

from explainer.fix.codemod import Context, find_codemod
from explainer.fix.splice import splice
from explainer.model.trace import FREED_WHOLE
from explainer.verification.traced import with_trace
from tests.fix.rewriting import diff_lines, failed, line_of, rewritten, write

RIGHT = {
    "one call": (
        """import torch
from torch import nn, optim
from torch.nn import functional as F
net = nn.Linear(3, 2)
opt = optim.SGD(net.parameters(), 0.1)
x = torch.randn(4, 3)
loss = net(x).sum()
opt.zero_grad()
loss.backward()
opt.step()
""",
        "loss.backward",
    ),
    "a new loss under the same name": (
        """import torch
from torch import nn, optim
from torch.nn import functional as F
net = nn.Linear(3, 2)
opt = optim.SGD(net.parameters(), 0.1)
x = torch.randn(4, 3)
loss = net(x).sum()
loss.backward()
loss = net(x).mean()
loss.backward()
""",
        "loss.backward",
    ),
    "the graph kept on purpose": (
        """import torch
from torch import nn, optim
from torch.nn import functional as F
net = nn.Linear(3, 2)
opt = optim.SGD(net.parameters(), 0.1)
x = torch.randn(4, 3)
loss = net(x).sum()
loss.backward(retain_graph=True)
loss.backward()
""",
        "loss.backward",
    ),
    "a helper that only computes": (
        """import torch
from torch import nn, optim
from torch.nn import functional as F
net = nn.Linear(3, 2)
opt = optim.SGD(net.parameters(), 0.1)
x = torch.randn(4, 3)
def compute(x):
    return net(x).sum()
loss = compute(x)
loss.backward()
""",
        "loss.backward",
    ),
    "a helper that returns a number": (
        """import torch
from torch import nn, optim
from torch.nn import functional as F
net = nn.Linear(3, 2)
opt = optim.SGD(net.parameters(), 0.1)
x = torch.randn(4, 3)
def step(x):
    loss = net(x).sum()
    loss.backward()
    return net(x).mean()
other = step(x)
other.backward()
""",
        "other.backward",
    ),
}
WRONG = {
    "twice in a row": (
        """import torch
from torch import nn, optim
from torch.nn import functional as F
net = nn.Linear(3, 2)
opt = optim.SGD(net.parameters(), 0.1)
x = torch.randn(4, 3)
loss = net(x).sum()
opt.zero_grad()
loss.backward()
opt.step()
loss.backward()
""",
        "loss.backward",
        ["-loss.backward()"],
    ),
    "a helper has called it": (
        """import torch
from torch import nn


def train_step(model, inputs, target):
    loss = nn.functional.mse_loss(model(inputs), target)
    loss.backward()
    return loss


torch.manual_seed(0)
model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
inputs, target = torch.rand(16, 4), torch.rand(16, 1)
optimizer.zero_grad()
loss = train_step(model, inputs, target)
loss.backward()
optimizer.step()
""",
        "loss.backward()",
        ["-loss.backward()"],
    ),
    "plain call beside an accelerator": (
        """import torch
from torch import nn, optim
from torch.nn import functional as F
net = nn.Linear(3, 2)
opt = optim.SGD(net.parameters(), 0.1)
x = torch.randn(4, 3)
loss = net(x).sum()
loss.backward()
accelerator.backward(loss)
opt.step()
""",
        "accelerator.backward",
        ["-loss.backward()"],
    ),
    "a criterion that calls it": (
        """import torch
from torch import nn, optim
from torch.nn import functional as F
class Loss(nn.Module):
    def forward(self, out):
        loss = out.pow(2).mean()
        loss.backward()
        return loss
net, criterion = nn.Linear(3, 2), Loss()
loss = criterion(net(torch.ones(1, 3)))
loss.backward()
""",
        "loss.backward",
        ["-loss.backward()"],
    ),
    "a method that returns two values": (
        """import torch
from torch import nn, optim
from torch.nn import functional as F
class Runner:
    def step(self, x):
        out = self.net(x)
        loss = out.sum()
        loss.backward()
        return out, loss
    def fit(self, x):
        out, loss = self.step(x)
        loss.backward()
""",
        "loss.backward",
        ["-        loss.backward()"],
    ),
}


@pytest.mark.parametrize(("source", "at"), RIGHT.values(), ids=RIGHT)
def test_right_programs_stay(source: str, at: str | None, tmp_path: pathlib.Path) -> None:
    """Nothing is proposed where the fault is not."""
    assert rewritten(tmp_path, "drop_second_backward", source, at) == source


@pytest.mark.parametrize(("source", "at", "changes"), WRONG.values(), ids=WRONG)
def test_wrong_programs_are_mended(source: str, at: str | None, changes: list[str], tmp_path: pathlib.Path) -> None:
    """The best edit changes these lines; a second time nothing is left to do."""
    after = rewritten(tmp_path, "drop_second_backward", source, at)
    assert diff_lines(source, after) == changes
    still = at if at and at in after else None
    assert rewritten(tmp_path, "drop_second_backward", after, still) == after


ACCUMULATED = """import torch
net = torch.nn.Linear(3, 1)
opt = torch.optim.SGD(net.parameters(), 0.1)
def denoising_loss(x):
    loss = net(x).square().mean()
    loss.backward()
    return loss
for step in range(2):
    opt.zero_grad()
    for _ in range(4):
        loss = denoising_loss(torch.randn(5, 3))
        CALLED
    opt.step()
"""


@pytest.mark.parametrize(
    ("called", "gone"),
    [
        ("(loss / 4).backward()", "-    loss.backward()"),
        ("(0.25 * loss).backward()", "-    loss.backward()"),
        ("scaler.scale(loss).backward()", "-    loss.backward()"),
        ("loss.backward()", "-        loss.backward()"),
    ],
)
def test_the_call_that_scales_is_kept(called: str, gone: str, tmp_path: pathlib.Path) -> None:
    """The plain one goes, wherever it stands."""
    source = ACCUMULATED.replace("CALLED", called)
    assert diff_lines(source, rewritten(tmp_path, "drop_second_backward", source, called)) == [gone]


def test_a_helper_with_other_callers_keeps_its_own(tmp_path: pathlib.Path) -> None:
    """They rely on it."""
    source = ACCUMULATED.replace("CALLED", "(loss / 4).backward()") + "denoising_loss(torch.randn(2, 3))\n"
    assert rewritten(tmp_path, "drop_second_backward", source, "(loss / 4)") == source


BACKWARD = 'outputs["loss"].backward()'
RUNNER = """import torch

net = torch.nn.Linear(2, 1)


class Hook:
    def __init__(self):
        self.opt = torch.optim.SGD(net.parameters(), lr=0.1)

    def after(self, outputs):
        CLEARED
        outputs["loss"].backward()
        self.opt.step()


def run(hook, x):
    outputs = {"loss": net(x).square().mean()}
    outputs["loss"].backward()
    hook.after(outputs)


hook = Hook()
for _ in range(2):
    run(hook, torch.ones(3, 2))
"""


@pytest.mark.torch
@pytest.mark.parametrize(
    ("cleared", "left"), [("self.opt.zero_grad()", "after"), ("pass", "run")], ids=["cleared before it", "not cleared"]
)
def test_a_runner_and_its_hook(tmp_path: pathlib.Path, cleared: str, left: str) -> None:
    """A trace saw both go through one loss: the call stays behind which nothing is thrown away."""
    torch = pytest.importorskip("torch")
    from explainer.live.crash import look
    from explainer.live.trace.arm import arm

    source = RUNNER.replace("CLEARED", cleared)
    path = tmp_path / "train.py"
    program = write(tmp_path, {"train.py": source})
    linecache.checkcache()
    tracer, undo = arm(torch)
    with undo, pytest.raises(RuntimeError, match="second time") as error:
        exec(compile(source, str(path), "exec"), {"__name__": "program"})  # noqa: S102 - the program of a test
    incident = with_trace(failed({"train.py": line_of(source, BACKWARD)}), look(error.value, tracer)["traced"])
    first = 1 + source[: source.rindex(BACKWARD)].count("\n")
    assert [one.value for one in incident.facts if one.name == FREED_WHOLE] == [f"train.py:{first}"]
    found = list(find_codemod("drop_second_backward")(Context(program=program, incident=incident)))
    after = splice(source, found[0].edits)
    assert after is not None
    assert after.count(".backward()") == 1
    assert (after.index(".backward()") < after.index("def run")) is (left == "after")
    exec(compile(after, str(path), "exec"), {"__name__": "program"})  # noqa: S102 - the program of a test


@pytest.mark.torch
def test_a_scaler_that_scales_one_loss_twice(tmp_path: pathlib.Path) -> None:
    """Each product is a new tensor; a trace saw that it is the one loss, which one call goes back through."""
    torch = pytest.importorskip("torch")
    from explainer.live.crash import look
    from explainer.live.trace.arm import arm

    call = "scaler.scale(loss).backward()"
    source = f"""import torch

net, scaler = torch.nn.Linear(2, 1), torch.amp.GradScaler("cpu")
opt = torch.optim.SGD(net.parameters(), lr=0.1)
for _ in range(2):
    loss = net(torch.ones(3, 2)).square().mean()
    opt.zero_grad()
    {call}
    {call}
    scaler.step(opt)
    scaler.update()
"""
    path = tmp_path / "train.py"
    program = write(tmp_path, {"train.py": source})
    linecache.checkcache()
    tracer, undo = arm(torch)
    with undo, pytest.raises(RuntimeError, match="second time") as error:
        exec(compile(source, str(path), "exec"), {"__name__": "program"})  # noqa: S102 - the program of a test
    incident = with_trace(failed({"train.py": 9}), look(error.value, tracer)["traced"])
    assert [one.value for one in incident.facts if one.name == FREED_WHOLE] == ["train.py:8"]
    found = list(find_codemod("drop_second_backward")(Context(program=program, incident=incident)))
    after = splice(source, found[0].edits)
    assert after is not None
    assert after.count(call) == 1
    exec(compile(after, str(path), "exec"), {"__name__": "program"})  # noqa: S102 - the program of a test
