"""Programs without an honest repair: the cause is named, and no edit is called verified."""

from __future__ import annotations

import json
import pathlib

import pytest

from tests import forked
from tests.verification.programs import gradfix

pytestmark = pytest.mark.torch
HEAD = "import torch\nfrom torch import nn\nfrom torch.nn import functional as F\ntorch.manual_seed(0)\n"
BELOW_ITS_DOMAIN = """sales = torch.tensor([[1.0], [3.0], [-4.0], [2.0]])
model = nn.Linear(1, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
loss = F.mse_loss(F.softplus(model(torch.ones(4, 1))).log1p(), sales.log1p())
loss.backward()
nn.utils.clip_grad_norm_(model.parameters(), 1.0, error_if_nonfinite=True)
optimizer.step()
"""
HALF_STARS = """stars = torch.tensor([1.0, 2.5, 4.0, 3.5])
model = nn.Linear(3, 6)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(3):
    loss = F.cross_entropy(model(torch.randn(4, 3)), stars)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""
PROGRAMS = {
    "the logarithm of negative data": (BELOW_ITS_DOMAIN, "nan/log-of-zero"),
    "fractions as classes": (HALF_STARS, "precision/target-dtype"),
}


@pytest.fixture(autouse=True)
def _torch(tmp_path_factory, monkeypatch):
    pytest.importorskip("torch")
    monkeypatch.setenv("GRADFIX_STATE_DIR", str(tmp_path_factory.mktemp("state")))


@pytest.mark.parametrize(("text", "cause"), PROGRAMS.values(), ids=PROGRAMS)
def test_no_edit_is_called_a_repair(tmp_path: pathlib.Path, text: str, cause: str) -> None:
    """What the data mean is their author's choice."""
    (tmp_path / "train.py").write_text(HEAD + text)
    words = ("run", "--fix", "--unsafe-fixes", "--no-probe", "--format", "json", "--", forked.python(), "train.py")
    told = json.loads(gradfix(tmp_path, *words).stdout)
    assert told["report"]["findings"][0]["cause"] == cause
    assert told["status"] != "verified"
    assert (tmp_path / "train.py").read_text() == HEAD + text
