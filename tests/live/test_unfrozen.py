"""Parameters that come to train after the first steps, and never get a gradient."""

from __future__ import annotations

import pathlib

import pytest

torch = pytest.importorskip("torch")

from explainer.live.unfrozen import Unfrozen  # noqa: E402
from tests.live.running import run  # noqa: E402

pytestmark = pytest.mark.torch


def told(*, joins: bool, runs: bool, frozen_again: bool = False, steps: int = 5) -> list[dict]:
    """What is told of two layers, the first of which is unfrozen after two steps; `runs` where the forward then has its graph."""
    torch.manual_seed(0)
    trunk, head = torch.nn.Linear(3, 3).requires_grad_(False), torch.nn.Linear(3, 1)
    owned = list(head.parameters()) if joins else [*trunk.parameters(), *head.parameters()]
    optimizer = torch.optim.SGD(owned, lr=0.1)
    made = 0
    unfrozen = Unfrozen(lambda _: "0 SGD", lambda _: made)
    for step in range(2 + steps):
        if step == 2:
            trunk.requires_grad_()
            if joins:
                optimizer.add_param_group({"params": list(trunk.parameters())})
        if frozen_again and step == 4:
            trunk.requires_grad_(False)
        with torch.set_grad_enabled(runs and step > 2):
            hidden = trunk(torch.randn(2, 3))
        optimizer.zero_grad()
        head(hidden).sum().backward()
        unfrozen.before_step(optimizer)
        optimizer.step()
        made += 1
    return unfrozen.at_the_end()


@pytest.mark.parametrize("joins", [True, False], ids=["added", "there before"])
def test_it_is_told(joins: bool) -> None:  # noqa: FBT001
    """How many, behind which step, and for how many since."""
    assert told(joins=joins, runs=False) == [{"optimizer": "0 SGD", "parameters": 2, "at": 2, "steps": 5}]


@pytest.mark.parametrize(
    "given",
    [
        {"joins": True, "runs": True},
        {"joins": False, "runs": True},
        {"joins": True, "runs": False, "steps": 2},
        {"joins": False, "runs": False, "frozen_again": True},
    ],
    ids=["it trains", "it trains where it was", "too few steps", "frozen again"],
)
def test_others_are_left_alone(given: dict) -> None:
    """A first step without a gradient is made good by a later one; what is frozen again is not to train."""
    assert told(**given) == []


def test_a_flag_that_stays(tmp_path: pathlib.Path) -> None:
    """The run is suspect, and the cause a cut."""
    (tmp_path / "train.py").write_text(
        "import torch\ntrunk, head = torch.nn.Linear(3, 3), torch.nn.Linear(3, 1)\ntrunk.requires_grad_(False)\n"
        "optimizer = torch.optim.SGD(head.parameters(), lr=0.1)\nfrozen = True\n"
        "for step in range(8):\n    if step == 4:\n        trunk.requires_grad_(True)\n"
        "        optimizer.add_param_group({'params': list(trunk.parameters())})\n"
        "    with torch.set_grad_enabled(not frozen):\n        hidden = trunk(torch.randn(2, 3))\n"
        "    optimizer.zero_grad()\n    head(hidden).sum().backward()\n    optimizer.step()\n"
    )
    done, _ = run(tmp_path, "train.py")
    assert done.status == 0
    assert done.report is not None
    assert done.report.findings[0].cause.startswith("no-graph/")
    assert [(one.parameters, one.at, one.steps) for each in done.processes for one in each.unfrozen] == [(2, 4, 4)]
