"""A cut of a carried state behind which a parameter trains no more is refused."""

from __future__ import annotations

import difflib
import pathlib

import pytest

from explainer.catalog.bundle import load_catalog
from explainer.proof import CARRIED, Target, prove
from explainer.run import Job
from explainer.workflow import apply, undo
from tests import forked
from tests.verification.programs import chosen

pytestmark = pytest.mark.torch
MEMORY = """import torch
torch.manual_seed(0)
read = torch.nn.Linear(3, 3)
write = torch.nn.Parameter(torch.ones(2, 3))
optimizer = torch.optim.SGD([*read.parameters(), write], lr=0.1)
memory = torch.zeros(2, 3)
for _ in range(6):
    h = read(torch.cat([torch.randn(4, 3) + memory.sum(0), write]))
    loss, memory = h[:4].square().mean(), h[4:]
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""


@pytest.mark.parametrize(
    ("taken", "verdict"),
    [("h[:4]", "red"), pytest.param("h", "green", marks=pytest.mark.slow)],
    ids=["the next step alone reads what it writes", "this step's loss reads it too"],
)
def test_what_is_written_into_a_memory(taken: str, verdict: str, tmp_path: pathlib.Path, monkeypatch) -> None:
    """Nothing teaches it what to write: all steps are healthy, and its gradients are zero."""
    pytest.importorskip("torch")
    monkeypatch.setenv("GRADFIX_STATE_DIR", str(tmp_path / "state"))
    source = MEMORY.replace("h[:4]", taken)
    after = source.replace("h[4:]", "h[4:].detach()")
    patch = "".join(difflib.unified_diff(source.splitlines(keepends=True), after.splitlines(keepends=True)))
    choice = chosen(tmp_path / "train.py", source, after, CARRIED, patch)
    job = Job(command=(forked.python(), "train.py"), root=str(tmp_path), catalog=load_catalog())
    record = apply(choice.fix, cause=choice.finding.cause, root=job.root)
    proof = prove(job, Target(), choice, lambda _: None)
    undo(record)
    assert proof.verdict == verdict, proof.reasons
    assert any("gets no gradient but zero" in one for one in proof.reasons) == (verdict == "red")
