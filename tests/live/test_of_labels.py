"""A sum over labels of which none counts, divided by their number: a library's division is of all labels ignored."""

from __future__ import annotations

from collections.abc import Callable

import pytest

torch = pytest.importorskip("torch")

import torch.nn.functional as F  # noqa: E402

from explainer.live.trace import arm as tracing  # noqa: E402
from explainer.model.incident import Incident  # noqa: E402
from explainer.verification.traced import with_trace  # noqa: E402

pytestmark = pytest.mark.torch
IGNORED = torch.full((6,), -100)
Loss = Callable[["torch.Tensor"], "torch.Tensor"]


def summed(scores: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
    return F.cross_entropy(scores, labels, reduction="sum")


OF_LABELS: dict[str, Loss] = {
    "a tensor counts": lambda scores: torch.div(summed(scores, IGNORED), (IGNORED != -100).sum()),
    "a number counts": lambda scores: summed(scores, IGNORED) / 0,
    "moved before": lambda scores: summed(scores, IGNORED).to(torch.float64).view(1) / torch.tensor(0),
    "log-probabilities": lambda scores: F.nll_loss(scores.log_softmax(-1), IGNORED, reduction="sum") / torch.tensor(0),
}
OTHERS: dict[str, Loss] = {
    "a mask of weights": lambda scores: (
        (F.cross_entropy(scores, IGNORED, reduction="none") * 0).sum() / torch.tensor(0)
    ),
    "a mean of nothing": lambda scores: scores[:0].sum() / torch.tensor(0),
    "the loss divides": lambda scores: torch.tensor(0.0) / (summed(scores, IGNORED) * 0),
    "its logarithm": lambda scores: (summed(scores, IGNORED) - 1).log(),
}


def told(loss: Loss) -> dict[str, object]:
    """What a trace says of the first value that is not finite."""
    tracer, undo = tracing.arm(torch)
    with undo:
        loss(torch.ones(6, 3, requires_grad=True)).backward()
        bad = tracer.explain(None, "")["not_finite"]
    assert bad is not None
    return dict(bad)


@pytest.mark.parametrize("loss", OF_LABELS.values(), ids=OF_LABELS)
def test_no_label_counts(loss: Loss) -> None:
    """NaN of a finite sum: both are 0."""
    assert told(loss).get("of_labels") is True


@pytest.mark.parametrize("loss", OTHERS.values(), ids=OTHERS)
def test_other_values(loss: Loss) -> None:
    """A mask of the program's own, an empty batch, another operand, another operation."""
    assert not told(loss).get("of_labels")


def test_labels_that_count() -> None:
    """A sum that is not 0 over 0 labels is infinite: the count is at fault."""
    bad = None
    tracer, undo = tracing.arm(torch)
    with undo:
        loss = summed(torch.ones(6, 3, requires_grad=True), torch.zeros(6, dtype=torch.long)) / torch.tensor(0)
        loss.backward()
        bad = tracer.explain(None, "loss is inf")["not_finite"]
    assert bad is not None
    assert not bad.get("of_labels")


@pytest.mark.parametrize(
    ("code", "wanted"),
    [
        ("loss = super().training_step(model, inputs)", "traced_quotient_of_labels"),
        ("loss = total / count", "traced_nan_of_finite"),
    ],
    ids=["a library divides", "the program divides"],
)
def test_whose_division_it_is(code: str, wanted: str, tmp_path) -> None:
    """What the program's own line divides can be guarded there."""
    (tmp_path / "train.py").write_text(code + "\n")
    place = {
        "file": str(tmp_path / "train.py"),
        "line": 1,
        "function": "step",
        "node": "DivBackward0",
        "operation": "div",
    }
    bad = {**place, "direction": "forward", "kind": "nan", "of_labels": True}
    names = {one.name for one in with_trace(Incident(), {"not_finite": bad}).facts}
    assert wanted in names
    assert not names & ({"traced_quotient_of_labels", "traced_nan_of_finite"} - {wanted})
