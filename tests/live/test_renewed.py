"""Parameters that are made anew for each step: they get gradients, and no optimizer trains them."""

from __future__ import annotations

import copy
import pathlib
from collections.abc import Callable, Iterator

import pytest
import torch
from torch import nn

from explainer.live.renewed import Renewed
from tests.live.running import run

pytestmark = pytest.mark.torch
Model = Callable[[torch.Tensor], torch.Tensor]
Watched = Callable[[nn.Module, Callable[[nn.Module], torch.Tensor]], list[tuple[str, str]]]


@pytest.fixture
def watched() -> Iterator[Watched]:
    """Runs five steps of a model by its loss; the kind and the function of each line that is told."""
    watcher = Renewed(torch)
    before = vars(nn.Parameter)["__new__"], torch.autograd.backward, torch.autograd.grad

    def steps(model: nn.Module, loss: Callable[[nn.Module], torch.Tensor]) -> list[tuple[str, str]]:
        optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
        optimizer.register_step_pre_hook(lambda one, *_: watcher.before_step(one))
        for _ in range(5):
            optimizer.zero_grad()
            loss(model).backward()
            optimizer.step()
        return [(one["kind"], one["function"]) for one in watcher.told]

    yield steps
    assert (vars(nn.Parameter)["__new__"], torch.autograd.backward, torch.autograd.grad) == before


def plain(model: nn.Module) -> torch.Tensor:
    return model(torch.ones(2, 3)).pow(2).sum()


class Scaled(nn.Module):
    """Its layer is registered; `scale` is what a case adds."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(3, 3)

    def scale(self, h: torch.Tensor) -> torch.Tensor:
        return h

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.scale(self.first(x))


class Fresh(Scaled):
    def scale(self, h: torch.Tensor) -> torch.Tensor:
        return h * nn.Parameter(torch.ones(3))


class Layer(Scaled):
    def scale(self, h: torch.Tensor) -> torch.Tensor:
        return nn.Sequential(nn.Linear(3, 3), nn.Tanh())(h)


class Table(Scaled):
    def scale(self, h: torch.Tensor) -> torch.Tensor:
        return h + nn.Embedding(4, 3)(torch.tensor([0, 2]))


class Several(Scaled):
    def scale(self, h: torch.Tensor) -> torch.Tensor:
        heads = [nn.Linear(3, 3) for _ in range(2)]
        return torch.cat([head(h) for head in heads])


class Replaced(Scaled):
    def scale(self, h: torch.Tensor) -> torch.Tensor:
        self.head = nn.Linear(3, 3)
        return self.head(h)


class Frozen(Scaled):
    def scale(self, h: torch.Tensor) -> torch.Tensor:
        return h * nn.Parameter(torch.ones(3), requires_grad=False)


class MadeOnce(Scaled):
    def scale(self, h: torch.Tensor) -> torch.Tensor:
        if not hasattr(self, "head"):
            self.head = nn.Linear(3, 3)
        return self.head(h)


class Unused(Scaled):
    """As a checkpointed segment gets it to have an input with a gradient."""

    def scale(self, h: torch.Tensor) -> torch.Tensor:
        return h + 0.0 * nn.Parameter(torch.ones(3))


class Fitted(Scaled):
    """Fits a code by an optimizer of its own, and goes on with it."""

    def scale(self, h: torch.Tensor) -> torch.Tensor:
        code = nn.Parameter(torch.zeros(3))
        inner = torch.optim.SGD([code], lr=0.1)
        (code - h.detach()).pow(2).sum().backward()
        inner.step()
        return h * code


class FittedByHand(Scaled):
    def scale(self, h: torch.Tensor) -> torch.Tensor:
        code = nn.Parameter(torch.zeros(3))
        (slope,) = torch.autograd.grad((code - h.detach()).pow(2).sum(), code)
        code.data -= 0.1 * slope
        return h * code


class Fast(Scaled):
    """Puts a copy of its weights in, and reads their gradients."""

    def scale(self, h: torch.Tensor) -> torch.Tensor:
        self.fast = nn.Parameter(self.first.weight.detach().clone())
        return h @ self.fast


def first_order(model: nn.Module) -> torch.Tensor:
    """The gradients of a learner that is copied for each task are those of its model."""
    learner = copy.deepcopy(model)
    plain(learner).backward()
    for own, other in zip(model.parameters(), learner.parameters(), strict=True):
        own.grad = other.grad
    return torch.zeros(1, requires_grad=True).sum()


def anew_of_weights(model: nn.Module) -> torch.Tensor:
    learner = Scaled()
    learner.load_state_dict(model.state_dict())
    plain(learner).backward()
    for own, other in zip(model.parameters(), learner.parameters(), strict=True):
        own.grad = other.grad.clone()
    return torch.zeros(1, requires_grad=True).sum()


def adversarial(model: nn.Module) -> torch.Tensor:
    noise = nn.Parameter(torch.zeros(2, 3))
    model(torch.ones(2, 3) + noise).sum().backward()
    return model(torch.ones(2, 3) + noise.grad.sign()).pow(2).sum()


def generated(model: nn.Module) -> torch.Tensor:
    """Where a graph ends in a parameter is another fault."""
    weight = nn.Parameter(model(torch.ones(2, 3)))
    return plain(model) + (weight.detach() * 2).sum()


class Centres:
    """A loss with centres of its own."""

    def __call__(self, out: torch.Tensor) -> torch.Tensor:
        centres = nn.Parameter(torch.zeros(3))
        return (out - centres).pow(2).sum()


def with_centres(model: nn.Module) -> torch.Tensor:
    return Centres()(model(torch.ones(2, 3)))


MEANT = {
    "what is registered": (Scaled, plain),
    "a constant": (Frozen, plain),
    "a layer that is made in the first forward": (MadeOnce, plain),
    "without a gradient": (Unused, plain),
    "fitted by an optimizer": (Fitted, plain),
    "fitted by hand": (FittedByHand, plain),
    "fast weights": (Fast, plain),
    "a copied learner": (Scaled, first_order),
    "a learner that loads weights": (Scaled, anew_of_weights),
    "noise whose gradient is read": (Scaled, adversarial),
    "made of what a graph computes": (Scaled, generated),
}
ANEW = {
    "a parameter": (Fresh, plain, [("Parameter", "scale")]),
    "a part of a sequence": (Layer, plain, [("Linear", "scale")]),
    "a table": (Table, plain, [("Embedding", "scale")]),
    "several": (Several, plain, None),
    "an attribute": (Replaced, plain, [("Linear", "scale")]),
    "of a loss": (Scaled, with_centres, [("Parameter", "__call__")]),
}


@pytest.mark.parametrize(("kind", "loss"), MEANT.values(), ids=MEANT)
def test_what_is_meant(kind: type[nn.Module], loss: Callable[[nn.Module], torch.Tensor], watched: Watched) -> None:
    """Nothing is told of what is made once, asked for its gradient, stepped, or has none."""
    assert watched(kind(), loss) == []


@pytest.mark.parametrize(("kind", "loss", "told"), ANEW.values(), ids=ANEW)
def test_what_is_made_anew(
    kind: type[nn.Module],
    loss: Callable[[nn.Module], torch.Tensor],
    told: list[tuple[str, str]] | None,
    watched: Watched,
) -> None:
    """Its line is told with what it makes there."""
    found = watched(kind(), loss)
    assert found == told if told is not None else [one for one, _ in found] == ["Linear"]


def test_a_compiled_model(watched: Watched) -> None:
    """It is compiled and trained as ever."""
    assert watched(torch.compile(Scaled(), backend="eager"), plain) == []


SCRIPT = """import torch
from torch import nn
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(3, 3)
    def forward(self, x):
        return nn.Linear(3, 1)(self.first(x))
net = Net()
opt = torch.optim.SGD(net.parameters(), lr=0.01)
for step in range(4):
    opt.zero_grad()
    net(torch.ones(2, 3)).sum().backward()
    opt.step()
"""


def test_a_program_is_told_its_line(tmp_path: pathlib.Path) -> None:
    """The cause leads, with the line that makes the layer."""
    (tmp_path / "train.py").write_text(SCRIPT)
    done, _ = run(tmp_path, "train.py")
    assert (done.status, done.report.findings[0].cause) == (0, "no-graph/empty-parameter-list")
    (one,) = done.processes[0].renewed
    assert (pathlib.Path(one.file).name, one.line, one.kind) == ("train.py", 8, "Linear")
