"""What a verification reports of a run: modules, precision, device, time, and the first gradients of every kind of optimizer."""

from __future__ import annotations

import pathlib

import pytest

from explainer.model.verification import ModuleHealth, ParameterHealth
from explainer.verification.module import modules_of
from explainer.verification.verify import Watch, verify_command
from tests import forked
from tests.verification.programs import LOOP, LOSS

pytestmark = pytest.mark.torch
CLOSURE = """import torch
torch.manual_seed(0)
model = torch.nn.Linear(3, 1)
x = torch.randn(8, 3)
optimizer = torch.optim.LBFGS(model.parameters(), lr=0.1)
def closure():
    optimizer.zero_grad()
    loss = model(x).square().mean()
    loss.backward()
    return loss
for _ in range(20):
    optimizer.step(closure)
"""
OVERFLOWING = """import torch
torch.manual_seed(0)
model = torch.nn.Linear(3, 1)
optimizer = torch.optim.AdamW(model.parameters(), fused=True)
scaler = torch.amp.GradScaler("cpu", init_scale=2.0**120)
for _ in range(40):
    optimizer.zero_grad()
    out = 1000 * model(torch.randn(4, 3)).mean()
    scaler.scale(out - out.detach()).backward()
    scaler.step(optimizer)
    scaler.update()
"""
ADVERSARIES = """import torch
maker = torch.nn.Sequential(torch.nn.Linear(2, 2))
judge = torch.nn.Sequential(torch.nn.Linear(2, 1))
of_maker, of_judge = torch.optim.Adam(maker.parameters()), torch.optim.Adam(judge.parameters())
for _ in range(20):
    of_judge.zero_grad()
    judge(maker(torch.randn(4, 2)).detach()).mean().backward()
    of_judge.step()
    of_maker.zero_grad()
    judge(maker(torch.randn(4, 2))).square().mean().backward()
    of_maker.step()
"""


@pytest.fixture(autouse=True)
def _torch():
    pytest.importorskip("torch")


def run(folder: pathlib.Path, text: str, **watch):
    (folder / "train.py").write_text(text)
    proof = verify_command((forked.python(), "train.py"), str(folder), Watch(**watch))
    assert proof.verdict == "green"
    return proof.processes[0]


def test_precision_device_and_losses(tmp_path: pathlib.Path) -> None:
    """Autocast is told where it is entered; memory and name of the device are there; each step has its loss."""
    text = LOOP.format(before="context = torch.autocast('cpu', torch.bfloat16)\ncontext.__enter__()", loss=LOSS)
    process = run(tmp_path, text)
    assert (process.dtypes, process.autocast, process.uses) == (("float32",), ("cpu bfloat16",), ())
    assert (process.machine.device, process.machine.memory_of, process.machine.bf16) == ("cpu", "process", None)
    assert process.machine.memory > 1 << 20
    assert [row.loss for row in process.rows] == list(process.losses)
    assert process.rows[0].seconds is None
    assert process.step_seconds > 0


def test_a_closure_is_looked_into(tmp_path: pathlib.Path) -> None:
    """LBFGS makes its gradients inside of the step: those of the first evaluation count, also in the first step."""
    process = run(tmp_path, CLOSURE)
    assert [row.given for row in process.rows] == [2, 2, 2]
    assert process.first[0].losses == process.losses[:1]
    assert all(one.norm for one in process.first[0].gradients)


def test_a_step_that_a_scaler_makes_void_is_none(tmp_path: pathlib.Path) -> None:
    """A fused optimizer's hooks fire all the same when float16 overflows; the first completed step has finite gradients."""
    process = run(tmp_path, OVERFLOWING)
    assert process.steps == (("0 AdamW", 3),)
    assert len(process.losses) > 3  # some steps were void
    assert all(0 < one.norm < 1e5 for one in process.first[0].gradients)


def test_two_models_of_one_class(tmp_path: pathlib.Path) -> None:
    """Their parameters are told apart, by the order in which their optimizers step."""
    process = run(tmp_path, ADVERSARIES)
    assert [(one.name, one.optimizer) for one in process.parameters][::2] == [
        ("Sequential.0.weight", "0 Adam"), ("Sequential(2).0.weight", "1 Adam"),
    ]  # fmt: skip
    assert [len(one.losses) for one in process.first] == [1, 1]


def parameter(name: str, **health) -> ParameterHealth:
    return ParameterHealth(
        name=name, optimizer="0 SGD", **{"trains": True, "given": 2, "moved": 2, "bad": 0, "norm": 3.0, **health}
    )


def test_modules() -> None:
    """A numbered layer holds all below it; frozen parameters do not count; a zero gradient is a gradient."""
    found = modules_of(
        [
            parameter("Net.layers.0.up.weight"),
            parameter("Net.layers.0.down.weight", norm=4.0),
            parameter("Net.layers.1.up.weight", moved=0, norm=0.0),
            parameter("Net.head.weight", bad=1, norm=None),
            parameter("Net.head.bias", given=0, moved=0, norm=None),
            parameter("Net.embed.weight", trains=False, given=0, moved=0, norm=None),
        ]
    )
    assert found == (
        ModuleHealth(name="Net.layers.0", parameters=2, given=2, zero=0, bad=0, norm=5.0),
        ModuleHealth(name="Net.layers.1", parameters=1, given=1, zero=1, bad=0, norm=0.0),
        ModuleHealth(name="Net.head", parameters=2, given=1, zero=0, bad=1, norm=None),
    )
