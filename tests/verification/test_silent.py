"""`gradfix run --fix` on programs that run through and train wrongly: what is said, and what the step uses afterwards."""

from __future__ import annotations

import json
import pathlib
import types

import pytest

from explainer.model.verification import ProcessReport, Unfrozen
from explainer.run import MAX_TRACED, first_steps
from tests import forked
from tests.verification.programs import gradfix

pytestmark = pytest.mark.torch
pytest.importorskip("torch")

COUNTED = """import torch
from torch import nn

torch.manual_seed(0)
model = nn.Linear(4, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for _ in range(12):
    x = torch.randn(8, 4)
    optimizer.zero_grad()
    out = model(x)
    terms = {"fit": (out - x[:, :2]).square().mean(), "size": out.square().mean()}
    for name, term in terms.items():
        term.backward(retain_graph=True)
        norm = model.weight.grad.norm()
    loss = sum(terms.values())
    loss.backward()
    optimizer.step()
"""


@pytest.mark.slow
def test_gradients_that_count_twice(tmp_path: pathlib.Path, monkeypatch) -> None:
    """Line, cause and cure of gradients that a report leaves behind."""
    monkeypatch.setenv("GRADFIX_STATE_DIR", str(tmp_path / "state"))
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "train.py").write_text(COUNTED)
    command = ("run", "--fix", "--format", "json", "--no-probe", "--", forked.python(), "train.py")
    told = json.loads(gradfix(folder, *command).stdout)
    (finding,) = told["report"]["findings"]
    assert (told["status"], finding["cause"]) == ("verified", "backward/called-twice")
    assert finding["culprits"][0]["line"] == 13
    assert (folder / "train.py").read_text() == COUNTED.replace(
        "    loss.backward()", "    optimizer.zero_grad()\n    loss.backward()"
    )


@pytest.mark.parametrize(
    ("cause", "at", "steps"),
    [
        ("nan/division-by-zero", None, MAX_TRACED),
        ("no-graph/detached", None, 3),
        (None, None, 3),
        ("no-graph/detached", 40, 43),
        ("no-graph/detached", 800, MAX_TRACED),
    ],
    ids=str,
)
def test_how_far_a_run_that_ended_well_is_traced(cause: str | None, at: int | None, steps: int) -> None:
    """A few steps; as far as it went, within a bound, where values stopped being finite or parameters came late."""
    report = types.SimpleNamespace(findings=[types.SimpleNamespace(cause=cause)] if cause else [])
    late = (Unfrozen(optimizer="0 SGD", parameters=2, at=at, steps=9),) if at is not None else ()
    process = ProcessReport(pid=1, steps=(("0 SGD", 900), ("1 Adam", 2)), unfrozen=late)
    job = types.SimpleNamespace(watch=types.SimpleNamespace(steps=3))
    run = types.SimpleNamespace(report=report, processes=[process])
    assert first_steps(run, job) == (("0 SGD", steps), ("1 Adam", 2))
