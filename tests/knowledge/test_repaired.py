"""`gradfix run --fix` does it all: a sample of the reproducers fails, is explained, repaired, verified, and is as meant.

All of them: `benchmarks/repair.py`.
"""

from __future__ import annotations

import pathlib

import pytest

from tests.knowledge.repaired import EQUAL, OTHER, SAME, compare, repair_shape
from tests.knowledge.reproducer import KNOWLEDGE, Shape

pytestmark = pytest.mark.torch

SAMPLE = (
    pytest.param("backward/graph-built-outside-loop/lbfgs-closure", marks=pytest.mark.slow),
    pytest.param("backward/shared-graph-two-losses/gan", marks=pytest.mark.slow),
    pytest.param("inplace/op-on-saved-tensor/residual-add", marks=pytest.mark.slow),
    pytest.param("inplace/parameter-rewritten-in-forward/normalised-in-forward", marks=pytest.mark.slow),
    "nan/sqrt-at-zero/rmse-loss",
    pytest.param("no-graph/grad-mode-off/decorated-forward", marks=pytest.mark.slow),
    pytest.param("no-graph/numpy-on-grad-tensor/output-to-numpy", marks=pytest.mark.slow),
    pytest.param("optimizer/scheduler-order/before-the-optimizer", marks=pytest.mark.slow),
    pytest.param("precision/dtype-mismatch/float64-input", marks=pytest.mark.slow),
    pytest.param("shape/batch-mismatch/shifted-targets", marks=pytest.mark.slow),
    pytest.param("trainer/api-version/override-under-accumulation", marks=pytest.mark.slow),
)


@pytest.mark.parametrize("name", SAMPLE)
def test_repaired(name: str, tmp_path: pathlib.Path) -> None:
    """Verified, and the same bytes as `fixed.py` or equal gradients in the first step."""
    pytest.importorskip("torch")
    done = repair_shape(Shape(KNOWLEDGE / name), tmp_path)
    assert (done.status, done.cause) == ("verified", name.rpartition("/")[0]), done.answer.get("rounds")
    assert done.likeness in (SAME, EQUAL), done.why


PROGRAM = """import torch
torch.manual_seed(0)
model = torch.nn.Linear(3, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
loss = model(torch.ones(2, 3)).square().sum()
loss.backward()
optimizer.step()
"""
OTHERS = {
    "other gradients": ("square().sum()", "sum()"),
    "other parameters": ("3, 1)", "3, 1, bias=False)"),
    "a failure": ("loss.backward()", "raise KeyError(loss)"),
    "no gradient": ("loss.backward()", "loss.backward(inputs=[torch.zeros(1, requires_grad=True)])"),
}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("before", "after"),
    [pytest.param(*one, id=name) for name, one in OTHERS.items()],
)
def test_what_is_not_as_meant(before: str, after: str, tmp_path: pathlib.Path) -> None:
    """The comparison tells programs apart that train otherwise, and not those that are only written otherwise."""
    pytest.importorskip("torch")
    meant = tmp_path / "meant" / "train.py"
    for name, text in (
        ("same", PROGRAM),
        ("meant", PROGRAM),
        ("spelled", "# by hand\n" + PROGRAM),
        ("other", PROGRAM.replace(before, after)),
    ):
        (tmp_path / name).mkdir()
        (tmp_path / name / "train.py").write_text(text)
    assert compare(tmp_path / "same" / "train.py", meant) == (SAME, "")
    assert compare(tmp_path / "spelled" / "train.py", meant) == (EQUAL, "")
    assert compare(tmp_path / "other" / "train.py", meant)[0] == OTHER
