"""The index that a lookup or a loss refused, as the live program says it."""

from __future__ import annotations

from collections.abc import Callable

import pytest

torch = pytest.importorskip("torch")

import torch.nn.functional as F  # noqa: E402, N812
from torch import nn  # noqa: E402

from explainer.live.crash import look  # noqa: E402
from explainer.verification.live_report import facts_of  # noqa: E402

OTHER = {
    "an index of a plain tensor": lambda: torch.zeros(3)[torch.tensor([4])],
    "shapes that do not fit": lambda: F.cross_entropy(torch.zeros(2, 3), torch.tensor([0, 1, 2])),
    "labels of a wrong dtype": lambda: F.cross_entropy(torch.zeros(2, 3), torch.tensor([0, 1], dtype=torch.int16)),
    "an embedding of fractions": lambda: F.embedding(torch.tensor([0.5]), torch.zeros(3, 2)),
}
REFUSED = {
    "an embedding": (lambda: nn.Embedding(4, 2)(torch.tensor([[0, 7], [5, 3]])), "7 of 4, from 0"),
    "an embedding that is asked for a marker": (lambda: nn.Embedding(4, 2)(torch.tensor([2, -1])), "-1 of 4, from -1"),
    "a bag": (lambda: nn.EmbeddingBag(4, 2)(torch.tensor([[1, 6]])), "6 of 4, from 1"),
    "labels": (lambda: nn.CrossEntropyLoss()(torch.zeros(3, 5), torch.tensor([1, 5, 2])), "5 of 5, from 1"),
    "labels beside those that are left out": (lambda: F.cross_entropy(torch.zeros(3, 5), torch.tensor([-100, 5, 0])), "5 of 5, from 0"),
    "labels of pixels": (
        lambda: F.cross_entropy(torch.zeros(1, 3, 2, 2), torch.tensor([[[0, 1], [9, 9]]]), ignore_index=0), "9 of 3, from 1",
    ),
    "labels of log-probabilities": (lambda: F.nll_loss(torch.zeros(2, 3), torch.tensor([0, 3])), "3 of 3, from 0"),
}  # fmt: skip


def told(call: Callable[[], object]) -> str | None:
    with pytest.raises((RuntimeError, IndexError, ValueError)) as failed:
        call()
    return dict(facts_of(look(failed.value))).get("live_refused_index")


@pytest.mark.parametrize("call", OTHER.values(), ids=OTHER)
def test_other_failures(call: Callable[[], object]) -> None:
    """A failure of shapes or dtypes says nothing of values, and a plain index is in torch's own message."""
    assert told(call) is None


@pytest.mark.parametrize(("call", "wanted"), REFUSED.values(), ids=REFUSED)
def test_what_was_refused(call: Callable[[], object], wanted: str) -> None:
    """The index, the rows or classes, and the lowest index beside it."""
    assert told(call) == wanted
