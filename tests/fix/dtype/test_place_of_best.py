"""The values of a maximum where ids are meant; each program runs, fails, is mended and runs."""

from __future__ import annotations

import pathlib

import pytest

pytestmark = pytest.mark.torch
torch = pytest.importorskip("torch")

from tests.fix.mending import mended, run  # noqa: E402

HEAD = """import torch
import torch.nn.functional as F
torch.manual_seed(0)
table, scores = torch.nn.Embedding(5, 3), torch.rand(4, 5)
"""
CURED = {
    "an entry": ("ids = scores.max(1)[0]\nout = table(ids)", "ids = scores.max(1)[1]\nout = table(ids)"),
    "a field, reshaped": (
        "out = table(scores.topk(1).values.squeeze(-1).detach())",
        "out = table(scores.topk(1).indices.squeeze(-1).detach())",
    ),
    "a name of a pair": (
        "topv, topi = torch.topk(scores, 1, dim=1)\nids = topv.squeeze(1)\nout = table(ids)",
        "topv, topi = torch.topk(scores, 1, dim=1)\nids = topi.squeeze(1)\nout = table(ids)",
    ),
    "of the round before": (
        "ids = torch.zeros(4).long()\nfor _ in range(2):\n    out = table(ids)\n    ids = scores.sort(1)[0][:, -1]",
        "ids = torch.zeros(4).long()\nfor _ in range(2):\n    out = table(ids)\n    ids = scores.sort(1)[1][:, -1]",
    ),
    "classes of a loss": (
        "best, where = scores.max(dim=1)\nout = F.cross_entropy(scores, best)",
        "best, where = scores.max(dim=1)\nout = F.cross_entropy(scores, where)",
    ),
    "one-hot rows": ("out = F.one_hot(scores.max(-1)[0], 5)", "out = F.one_hot(scores.max(-1)[1], 5)"),
}
LEFT = {
    "places already": "out = table(scores.max(1)[1]) @ torch.rand(4)",
    "another entry than the first": "rows = scores.max(1)\nout = table(rows[0:1][0])",
    "nothing names the places": "best, _ = scores.max(1)\nout = table(best)",
    "the maximum of all": "out = table(scores.max()[None])",
    "floats of another kind": "out = table(scores[:, 0])",
}


@pytest.mark.parametrize(("broken", "fixed"), CURED.values(), ids=CURED)
def test_places_are_taken(broken: str, fixed: str, tmp_path: pathlib.Path) -> None:
    """And what failed runs then."""
    assert mended("place_of_best", f"{HEAD}{broken}\n", tmp_path) == f"{HEAD}{fixed}\n"
    run(f"{HEAD}{fixed}\n", tmp_path / "fixed.py")


@pytest.mark.parametrize("body", LEFT.values(), ids=LEFT)
def test_others_are_left_alone(body: str, tmp_path: pathlib.Path) -> None:
    """What is no value of a maximum, and a pair whose places have no name."""
    source = f"{HEAD}{body}\n"
    assert mended("place_of_best", source, tmp_path) == source
