"""A NaN alone is no divergence: what the source shows comes first, unless the log or the rate says that training diverged."""

from __future__ import annotations

import pathlib

import pytest

from explainer.ingest.text import read_text
from explainer.workflow import explain_incident, plan_report

PROGRAM = """import math
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.distributions import Categorical

class Policy(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(4, 8), nn.Linear(8, 5)
    def forward(self, x, y):
        n = x.size(0)
        h = self.b(self.a(x).tanh())
        LOSS

model = Policy()
optimizer = OPTIMIZER
for step in range(100):
    x, y = torch.randn(8, 4), torch.randint(0, 5, (8,))
    loss = model(x, y)
    if not math.isfinite(loss.item()):
        raise RuntimeError(f"loss is {loss.item()} at step {step}")
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""
ADAM = "torch.optim.Adam(model.parameters(), lr=1e-3)"
FAILED = """Traceback (most recent call last):
  File "train.py", line 22, in <module>
    raise RuntimeError(f"loss is {loss.item()} at step {step}")
RuntimeError: loss is nan at step 12
"""
REFUSED = """Traceback (most recent call last):
  File "train.py", line 20, in <module>
    loss = model(x, y)
ValueError: Expected parameter probs (Tensor of shape (8, 5)) of distribution Categorical(probs: torch.Size([8, 5])) to satisfy the constraint Simplex(), but found invalid values:
tensor([[nan, nan, nan, nan, nan]])
"""
GROWS = "".join(f"step {step} loss {4.0**step}\n" for step in range(6)) + "step 6 loss nan\n" + FAILED

ENTROPY = "p = h.softmax(-1); return -(p.relu() * torch.log(p.relu())).sum()"
ROOT = "return (h - 1).pow(2).sum(-1).sqrt().mean()"
EMPTY_ROW = "return h.masked_fill(y[:, None] == 0, float('-inf')).softmax(-1).square().mean()"
ADDED = (
    "bias = torch.zeros(n, 5).masked_fill(x[:, :1] > 0, float('-inf')); return (h + bias).softmax(-1).square().mean()"
)
NO_LABEL = "return F.cross_entropy(h, y, ignore_index=0)"
SHOWN = {
    "the logarithm of what can be 0": (ENTROPY, FAILED, "nan/log-of-zero"),
    "where a distribution refuses it": (ENTROPY, REFUSED, "nan/log-of-zero"),
    "a root at 0": (ROOT, FAILED, "nan/sqrt-at-zero"),
    "a row of -inf": (EMPTY_ROW, FAILED, "nan/masked-softmax"),
    "an added row of -inf": (ADDED, FAILED, "nan/masked-softmax"),
    "a mean over labels that may all be ignored": (NO_LABEL, FAILED, "nan/all-labels-ignored"),
}
PLAIN = "return F.cross_entropy(h, y)"
CAUSAL = "q = h @ h.T; f = torch.ones(n, n).triu(1).bool(); return q.masked_fill(f, float('-inf')).softmax(-1).square().mean()"
DIVERGED = {
    "nothing in the source": (PLAIN, ADAM, FAILED),
    "each position sees itself": (CAUSAL, ADAM, FAILED),
    "a guarded logarithm": ("p = h.softmax(-1); return -(p * torch.log(p + 1e-8)).sum()", ADAM, FAILED),
    "a guarded root": ("return (h.pow(2).sum(-1) + 1e-12).sqrt().mean()", ADAM, FAILED),
    "the loss grew": (ENTROPY, ADAM, GROWS),
    "the loss grew above a mask": (EMPTY_ROW, ADAM, GROWS),
    "a rate that is far too high": (NO_LABEL, "torch.optim.SGD(model.parameters(), lr=50.0)", FAILED),
}


def first(folder: pathlib.Path, loss: str, optimizer: str, log: str, catalog) -> str:
    """The cause that text and source give first."""
    (folder / "train.py").write_text(PROGRAM.replace("LOSS", loss).replace("OPTIMIZER", optimizer))
    (incident,) = read_text(log)
    report = plan_report(explain_incident(incident, None, catalog), catalog, str(folder))
    assert not report.faults
    return report.findings[0].cause


@pytest.mark.parametrize(("loss", "log", "cause"), SHOWN.values(), ids=SHOWN)
def test_what_the_source_shows_comes_first(loss: str, log: str, cause: str, tmp_path: pathlib.Path, catalog) -> None:
    """Where the log says no more than that something is NaN."""
    assert first(tmp_path, loss, ADAM, log, catalog) == cause


@pytest.mark.parametrize(("loss", "optimizer", "log"), DIVERGED.values(), ids=DIVERGED)
def test_divergence_with_evidence_stays_first(
    loss: str, optimizer: str, log: str, tmp_path: pathlib.Path, catalog
) -> None:
    """Losses that grew, a rate far above the usual, or a source that shows nothing."""
    assert first(tmp_path, loss, optimizer, log, catalog) == "nan/learning-rate-divergence"


def test_step_0_is_no_divergence(tmp_path: pathlib.Path, catalog) -> None:
    """No step has been made; in a later epoch there were some."""
    at_first = FAILED.replace("step 12", "step 0")
    assert first(tmp_path, PLAIN, ADAM, at_first, catalog) != "nan/learning-rate-divergence"
    later = FAILED.replace("at step 12", "in epoch 3, step 0")
    assert first(tmp_path, PLAIN, ADAM, later, catalog) == "nan/learning-rate-divergence"
