"""A loss that goes backward without GradScaler's factor beside one that has it: no error, and it trains next to nothing."""

from __future__ import annotations

import pathlib
from collections.abc import Callable, Iterator

import pytest

torch = pytest.importorskip("torch")
from explainer.live.unscaled import Unscaled  # noqa: E402
from tests.gate import some_at_gate  # noqa: E402
from tests.live.running import run  # noqa: E402

pytestmark = pytest.mark.torch
SCALER = "precision/scaler-misuse"


class Training:
    """A model with its optimizer and a scaler that is on."""

    def __init__(self, scale: float = 1024.0, *, enabled: bool = True) -> None:
        torch.manual_seed(0)
        self.net, self.head = torch.nn.Linear(3, 3), torch.nn.Linear(3, 1)
        self.optimizer = torch.optim.SGD([*self.net.parameters(), *self.head.parameters()], lr=0.1)
        self.scaler = torch.amp.GradScaler("cpu", init_scale=scale, enabled=enabled)

    def loss(self) -> torch.Tensor:
        return self.head(self.net(torch.randn(4, 3))).square().mean()

    def gap(self) -> torch.Tensor:
        return self.net(torch.randn(4, 3)).square().mean()

    def scaled(self) -> None:
        self.scaler.scale(self.loss()).backward()

    def end(self) -> None:
        self.scaler.step(self.optimizer)
        self.scaler.update()
        self.optimizer.zero_grad()


@pytest.fixture
def watched(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[Training], Unscaled]]:
    """What watches a training; nothing afterwards."""
    for name in ("scale", "unscale_", "step", "update"):
        monkeypatch.setattr(torch.amp.GradScaler, name, getattr(torch.amp.GradScaler, name))
    monkeypatch.setattr(torch.autograd, "backward", torch.autograd.backward)

    def watch(training: Training) -> Unscaled:
        watching = Unscaled(torch, lambda: [training.optimizer])
        watching.watch()
        return watching

    yield watch


def behind(it: Training) -> None:
    it.scaled()
    (10 * it.gap()).backward()


def before(it: Training) -> None:
    torch.autograd.backward(it.gap())
    it.scaled()


def of_each_batch(it: Training) -> None:
    for _ in range(2):
        it.scaled()
        it.gap().backward()


def clipped(it: Training) -> None:
    it.scaled()
    it.gap().backward()
    it.scaler.unscale_(it.optimizer)
    torch.nn.utils.clip_grad_norm_(it.net.parameters(), 1.0)


@pytest.mark.parametrize("step", [behind, before, of_each_batch, clipped])
def test_a_loss_without_the_factor(step: Callable[[Training], None], watched: Callable[[Training], Unscaled]) -> None:
    """Its line is told, with the factor that it lacks."""
    training = Training()
    watching = watched(training)
    for _ in range(3):
        step(training)
        training.end()
    (found,) = watching.at_the_end()
    assert (found["kind"], found["factor"], found["function"]) == ("unscaled", 1024.0, step.__name__)


def all_scaled(it: Training) -> None:
    it.scaled()
    it.scaler.scale(it.gap()).backward()


def divided(it: Training) -> None:
    it.scaled()
    ((it.scaler.scale(it.gap()) + it.scaler.scale(it.loss())) / 2).backward()


def scaled_by_hand(it: Training) -> None:
    it.scaled()
    (it.gap() * it.scaler.get_scale()).backward()


def behind_the_unscaling(it: Training) -> None:
    it.scaled()
    it.scaler.unscale_(it.optimizer)
    it.gap().backward()


def cleared_between(it: Training) -> None:
    it.gap().backward()
    it.optimizer.zero_grad()
    it.scaled()


def set_to_zero_between(it: Training) -> None:
    it.gap().backward()
    it.optimizer.zero_grad(set_to_none=False)
    it.scaled()


def stepped_between(it: Training) -> None:
    it.gap().backward()
    it.optimizer.step()
    for one in it.optimizer.param_groups[0]["params"]:
        one.grad = None
    it.scaled()


def of_other_parameters(it: Training) -> None:
    it.head(torch.randn(4, 3)).square().mean().backward()
    it.scaler.scale(it.gap()).backward()


def through_a_leaf(it: Training) -> None:
    """The gradient that goes on is the scaled one."""
    features = it.net(torch.randn(4, 3))
    leaf = features.detach().requires_grad_()
    it.scaler.scale(it.head(leaf).square().mean() + it.gap()).backward()
    (features * leaf.grad).sum().backward()


def with_a_gradient(it: Training) -> None:
    features = it.net(torch.randn(4, 3))
    leaf = features.detach().requires_grad_()
    it.scaler.scale(it.head(leaf).square().mean() + it.gap()).backward()
    features.backward(leaf.grad)


def checkpointed(it: Training) -> None:
    """A segment's own backward, inside of the scaled one."""
    x = torch.randn(4, 3, requires_grad=True)
    hidden = torch.utils.checkpoint.checkpoint(it.net, x, use_reentrant=True)
    it.scaler.scale(it.head(hidden).square().mean() + it.gap()).backward()


FINE = [
    all_scaled, divided, scaled_by_hand, behind_the_unscaling, cleared_between, set_to_zero_between, stepped_between,
    of_other_parameters, through_a_leaf, with_a_gradient, checkpointed,
]  # fmt: skip


@pytest.mark.parametrize("step", FINE)
def test_all_have_it(step: Callable[[Training], None], watched: Callable[[Training], Unscaled]) -> None:
    """Nothing is told."""
    training = Training()
    watching = watched(training)
    for _ in range(4):
        step(training)
        training.end()
    assert watching.at_the_end() == []


@pytest.mark.parametrize("training", [{"scale": 1.0}, {"enabled": False}])
def test_a_scaler_without_a_factor(training: dict, watched: Callable[[Training], Unscaled]) -> None:
    """Nor of a scaler that is off."""
    made = Training(**training)
    watching = watched(made)
    for _ in range(4):
        behind(made)
        made.end()
    assert watching.at_the_end() == []


PROGRAM = """import torch
torch.manual_seed(0)
net = torch.nn.Linear(3, 1)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)
for _ in range(4):
    opt.zero_grad()
    scaler.scale(net(torch.randn(4, 3)).pow(2).mean()).backward()
    GAP.backward()
    scaler.step(opt)
    scaler.update()
"""
GAP = "net(torch.randn(4, 3)).square().mean()"
CASES = {
    "without": (PROGRAM.replace("GAP", GAP), SCALER),
    "with": (PROGRAM.replace("GAP", f"scaler.scale({GAP})"), None),
}


@pytest.mark.parametrize(("source", "cause"), some_at_gate(CASES, ["without"]))
def test_a_run_that_ends_well(source: str, cause: str | None, tmp_path: pathlib.Path) -> None:
    """It is told with its line."""
    (tmp_path / "train.py").write_text(source)
    done, _ = run(tmp_path, "train.py")
    assert done.status == 0
    assert [(one.kind, one.line) for one in done.processes[0].misscaled] == ([("unscaled", 9)] if cause else [])
    assert (done.report.findings[0].cause if done.report is not None else None) == cause
