"""A term of a loss that compares data with data is told beside an output of that shape that nothing reads, and neither by itself."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

pytestmark = pytest.mark.torch
torch = pytest.importorskip("torch")

from torch.nn import functional as F  # noqa: E402, N812

from tests.live.tracing import lines  # noqa: E402

Loss = Callable[[dict[str, Any], dict[str, Any]], Any]


class Heads(torch.nn.Module):
    """A trunk with a head that trains and a second one."""

    def __init__(self) -> None:
        super().__init__()
        self.trunk, self.first, self.second = (torch.nn.Linear(4, 4) for _ in range(3))

    def forward(self, x: Any) -> dict[str, Any]:
        h = self.trunk(x).tanh()
        return {"first": self.first(h), "second": self.second(h)}


def told(loss_of: Loss) -> list[tuple[str, str]]:
    """Kind and operation of what a trace of three steps shows."""
    torch.manual_seed(0)
    model = Heads()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    def train() -> None:
        for _ in range(3):
            batch = {"x": torch.randn(8, 4), "second": torch.randn(8, 4), "label": torch.arange(8) % 4}
            optimizer.zero_grad()
            loss_of(model(batch["x"]), batch).backward()
            optimizer.step()

    return [(one.kind, one.operation) for one in lines(train, fails=False)]


def fitted(out: dict[str, Any], batch: dict[str, Any]) -> Any:
    return F.cross_entropy(out["first"], batch["label"])


def merged(out: dict[str, Any], batch: dict[str, Any]) -> Any:
    seen = {**out, **batch}
    return fitted(out, batch) + 0.5 * (seen["second"] - batch["second"]).abs().mean()


def updated(out: dict[str, Any], batch: dict[str, Any]) -> Any:
    out.update(batch)
    terms = {"first": fitted(out, batch), "second": F.mse_loss(out["second"], batch["second"])}
    return sum({"first": 1.0, "second": 2.0}[name] * one for name, one in terms.items())


def stacked(out: dict[str, Any], batch: dict[str, Any]) -> Any:
    seen = out | batch
    return torch.stack([fitted(out, batch), F.smooth_l1_loss(seen["second"], batch["second"].clone())]).sum()


def teacher_kept(out: dict[str, Any], batch: dict[str, Any]) -> Any:
    """The batch holds scores that a teacher has left, under the name of the student's."""
    return F.cross_entropy({**out, **batch}["second"], batch["label"]) + fitted(out, batch)


def given_twice(out: dict[str, Any], batch: dict[str, Any]) -> Any:
    target = batch["second"]
    return fitted(out, batch).add(F.l1_loss(target, target), alpha=0.3)


WRONG = {
    "sub": merged,
    "mse_loss": updated,
    "smooth_l1_loss": stacked,
    "cross_entropy": teacher_kept,
    "l1_loss": given_twice,
}


@pytest.mark.parametrize(("operation", "loss_of"), WRONG.items(), ids=WRONG)
def test_data_that_meets_itself(operation: str, loss_of: Loss) -> None:
    assert ("data-term", operation) in told(loss_of)


TEACHER = torch.nn.Linear(4, 4).requires_grad_(False)
HEALTHY: dict[str, Loss] = {
    "an output that nothing reads": fitted,
    "a constant of data, and all outputs read": lambda out, batch: (
        fitted(out, batch) + (out["second"] - batch["second"]).square().mean() + (batch["x"] - batch["x"].mean()).square().mean()
    ),
    "a constant of another shape": lambda out, batch: fitted(out, batch) + F.mse_loss(batch["x"][:, 0], batch["second"][:, 0]),
    "a regulariser of data": lambda out, batch: fitted(out, batch) + 0.1 * batch["second"].square().mean(),
    "nothing times a number": lambda out, batch: fitted(out, batch) + 0.0 * batch["second"].sum(),
    "what a frozen network gives": lambda out, batch: fitted(out, batch) + F.mse_loss(TEACHER(batch["x"]), batch["second"]),
    "data taken off within a term": lambda out, batch: F.mse_loss(out["first"], batch["second"] - batch["x"]),
    "an output that only a log reads, and its parameters train": lambda out, batch: (
        fitted(out, batch) + out["second"].square().mean() * 0.1 + F.mse_loss(batch["x"], batch["second"])
    ),
}  # fmt: skip


@pytest.mark.parametrize("loss_of", HEALTHY.values(), ids=HEALTHY)
def test_what_is_healthy_by_itself(loss_of: Loss) -> None:
    assert not [one for one in told(loss_of) if one[0] == "data-term"]


def test_a_term_that_trains_from_a_later_step_on() -> None:
    """A head that warms up on nothing gets its gradient when it is time."""
    steps = iter(range(3))

    def loss_of(out: dict[str, Any], batch: dict[str, Any]) -> Any:
        predicted = out["second"] if next(steps) > 1 else batch["second"]
        return fitted(out, batch) + F.mse_loss(predicted, batch["second"])

    assert not told(loss_of)
