"""A run that ends well without training: parameters that no module holds, steps that GradScaler leaves out."""

from __future__ import annotations

import pathlib

import pytest

from tests.conftest import PATH
from tests.gate import some_at_gate
from tests.live.test_unowned import run

pytestmark = pytest.mark.torch
pytest.importorskip("torch")

LOST = """import torch
from torch import nn

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(3, 2)
        self.scale = nn.Parameter(torch.ones(2)).reshape(1, 2)

    def forward(self, x):
        return self.fc(x) * self.scale

torch.manual_seed(0)
net = Net()
opt = torch.optim.SGD(net.parameters(), lr=0.1)
for _ in range(5):
    loss = net(torch.randn(8, 3)).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
"""
CAST = "self.scale = nn.Parameter(torch.ones(2)).reshape(1, 2)"
PLAIN = LOST.replace(CAST, "self.scale = torch.ones(1, 2, requires_grad=True)")
HELD = {
    "held by the module as well": LOST.replace(CAST, "self.raw = nn.Parameter(torch.ones(2))\n        self.scale = self.raw[None]")
    .replace("loss.backward()", "loss.backward(retain_graph=True)"),
    "stepped by an optimizer": LOST.replace(CAST, "self.made = [nn.Parameter(torch.ones(2))]\n        self.scale = self.made[0][None]")
    .replace("net.parameters()", "[*net.parameters(), *net.made]").replace("loss.backward()", "loss.backward(retain_graph=True)"),
    "a tensor that the program steps": PLAIN.replace("opt.step()", "opt.step()\n    net.scale.data -= 0.1 * net.scale.grad"),
    "a tensor with an optimizer of its own": PLAIN.replace("net.parameters()", "[*net.parameters(), net.scale]"),
    "an input whose gradient is asked for": LOST.replace(CAST, "self.scale = None").replace(
        "return self.fc(x) * self.scale", "self.x = x.clone().requires_grad_()\n        return self.fc(self.x)"
    ),
    "frozen": LOST.replace("torch.ones(2)", "torch.ones(2), requires_grad=False"),
}  # fmt: skip
SCALED = """import torch

torch.manual_seed(0)
net = torch.nn.Linear(3, 2)
opt = torch.optim.SGD(net.parameters(), lr=0.01)
scaler = torch.amp.GradScaler("cpu", init_scale=65536.0)
for step in range(30):
    loss = net(torch.randn(8, 3)).pow(2).mean() * FACTOR
    opt.zero_grad()
    scaler.scale(loss).backward()
    scaler.step(opt)
    scaler.update()
"""


OWN = """import torch

class Descent:
    def __init__(self, parameters):
        self.param_groups = [{"params": list(parameters)}]
    def step(self):
        with torch.no_grad():
            for p in self.param_groups[0]["params"]:
                p -= 0.01 * p.grad
"""


@pytest.fixture(autouse=True)
def _here(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", PATH)


def test_a_parameter_that_no_module_holds(tmp_path: pathlib.Path) -> None:
    """It is named by what the module keeps of it."""
    status, seen, cause = run(tmp_path, LOST)
    assert (status, cause) == (0, "no-graph/non-leaf-in-optimizer")
    assert [(one.model, one.names, one.is_lost) for one in seen] == [("Net", ("scale",), True)]


def test_a_tensor_that_is_no_parameter(tmp_path: pathlib.Path) -> None:
    """An attribute that requires grad and is a mere tensor is named as it is."""
    status, seen, cause = run(tmp_path, PLAIN)
    assert (status, cause) == (0, "no-graph/empty-parameter-list")
    assert [(one.model, one.names, one.is_plain) for one in seen] == [("Net", ("scale",), True)]


@pytest.mark.parametrize("source", some_at_gate(HELD, ["held by the module as well"]))
def test_a_parameter_that_somebody_holds(tmp_path: pathlib.Path, source: str) -> None:
    """A module, an optimizer or nobody's gradient: nothing is said."""
    assert run(tmp_path, source) == (0, [], None)


@pytest.mark.parametrize(
    ("factor", "cause"),
    [
        ("float('nan')", True),
        pytest.param("1e36 * (step < 4) + 1", False, marks=pytest.mark.slow),
        pytest.param("1.0", False, marks=pytest.mark.slow),
    ],
)
def test_steps_that_a_scaler_leaves_out(tmp_path: pathlib.Path, factor: str, cause: bool) -> None:  # noqa: FBT001
    """All of them is a fault; a few at the beginning are how it finds its scale."""
    status, _, found = run(tmp_path, SCALED.replace("FACTOR", f"({factor})"))
    assert (status, (found or "").startswith("nan/")) == (0, cause)


def test_an_optimizer_whose_steps_are_not_seen(tmp_path: pathlib.Path) -> None:
    """A class of the program's own that GradScaler takes for one: that no step was counted says nothing."""
    source = OWN + SCALED.removeprefix("import torch\n").replace("FACTOR", "1.0")
    source = source.replace("torch.optim.SGD(net.parameters(), lr=0.01)", "Descent(net.parameters())")
    assert run(tmp_path, source.replace("opt.zero_grad()", "net.zero_grad()")) == (0, [], None)
