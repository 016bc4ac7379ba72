"""What is said of a target that stands among the features, of labels that were refused, and of rows of several classes."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")
from torch import nn  # noqa: E402

from explainer.live.crash import look  # noqa: E402
from explainer.verification.live_report import facts_of  # noqa: E402


def told(fact: str, call: object) -> str | None:
    """What a failing call leaves as a fact."""
    assert callable(call)
    with pytest.raises(RuntimeError) as failed:
        call()
    return dict(facts_of(look(failed.value))).get(fact)


def fit(inputs: object, targets: object) -> None:
    """A step with a layer of three features; the two stand in its frame."""
    x = inputs["x"] if isinstance(inputs, dict) else inputs
    nn.functional.mse_loss(nn.Linear(3, 1)(x), targets)


TABLE = torch.arange(32.0).reshape(8, 4).sin()


@pytest.mark.parametrize(
    "targets", [TABLE[:, 3], 4 - 2 * TABLE[:, 3:]], ids=["itself", "scaled, turned round, a column"]
)
def test_the_target_is_a_column(targets: torch.Tensor) -> None:
    """Whatever the scale."""
    assert told("live_leaked_target", lambda: fit(TABLE, targets)) == "column 3 of 4 in inputs is targets"


def test_in_a_batch() -> None:
    """A dictionary holds the features."""
    assert (
        told("live_leaked_target", lambda: fit({"x": TABLE}, TABLE[:, 0])) == "column 0 of 4 in inputs['x'] is targets"
    )


@pytest.mark.parametrize(
    ("inputs", "targets"),
    [
        pytest.param(TABLE, TABLE[:, 3] ** 3, id="computed of a column"),
        pytest.param(TABLE, torch.ones(8), id="one value for all"),
        pytest.param(TABLE[:3], TABLE[:3, 3], id="three samples"),
        pytest.param(TABLE[:, [3, 1, 2, 3]], TABLE[:, 3], id="two columns"),
    ],
)
def test_nothing_is_said(inputs: torch.Tensor, targets: torch.Tensor) -> None:
    """Only one column that goes with a target which varies, in as many samples as chance does not give."""
    assert told("live_leaked_target", lambda: fit(inputs, targets)) is None


def test_of_another_failure() -> None:
    """The values are not looked at where a layer's width is not what failed."""

    def fail(x: torch.Tensor, y: torch.Tensor) -> None:
        assert y is not x
        x.view(5, 5)

    assert told("live_leaked_target", lambda: fail(TABLE, TABLE[:, 3])) is None


@pytest.mark.parametrize(
    ("labels", "said"),
    [
        pytest.param([-1, 1, 1], "-1 to 1, 2 of them", id="signs"),
        pytest.param([-1, 0, -100, 1], "-1 to 1, 3 of them", id="what is left out is no label"),
    ],
)
def test_labels_that_were_refused(labels: list[int], said: str | None) -> None:
    """From which to which they go."""
    loss = nn.CrossEntropyLoss()
    with pytest.raises(IndexError) as failed:
        loss(torch.zeros(len(labels), 2), torch.tensor(labels))
    assert dict(facts_of(look(failed.value))).get("live_refused_labels") == said


def test_ids_are_no_labels() -> None:
    """A table's rows are not counted."""
    with pytest.raises(IndexError) as failed:
        nn.Embedding(3, 2)(torch.tensor([1, 3]))
    facts = dict(facts_of(look(failed.value)))
    assert (facts.get("live_refused_index"), facts.get("live_refused_labels")) == ("3 of 3, from 1", None)


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        pytest.param([[1, 1, 0], [0, 0, 1]], "1 to 2", id="two classes"),
        pytest.param([[0, 0, 0], [0, 0, 1]], "0 to 1", id="no class"),
        pytest.param([[0, 1, 0], [0, 0, 1]], "1 to 1", id="one class each"),
        pytest.param([[0, 2, 0], [0, 0, 1]], None, id="counts"),
    ],
)
def test_rows_of_several_classes(rows: list[list[int]], said: str | None) -> None:
    """What a row of 0 and 1 names."""
    loss = nn.CrossEntropyLoss()
    assert told("live_hot_rows", lambda: loss(torch.zeros(2, 3), torch.tensor(rows))) == said
