"""What is told of the key under which a collator hands over the labels, where the model made no loss."""

from __future__ import annotations

import functools
import types
from typing import Any

import pytest
import torch

from explainer.live.batch_key import batch_key
from explainer.live.crash import _frames

LOST = "The model did not return a loss from the inputs, only the following keys: logits."
METHOD = "def compute_loss(self, model, inputs, error):\n    raise error\n"
IDS = torch.tensor([[1, 2, 3], [4, 5, 6]])
PADDED = torch.tensor([[0, 2, -100], [1, 1, 0]])


def collate(rows: list[Any]) -> list[Any]:
    return rows


class Collator:
    def __call__(self, rows: list[Any]) -> list[Any]:
        return rows


def model(kind: str = "BertForTokenClassification", **config: int) -> Any:
    def forward(
        self: Any, input_ids: Any = None, attention_mask: Any = None, labels: Any = None, **kwargs: object
    ) -> None:
        """As that of a model of transformers."""

    made = type(kind, (), {"forward": forward})()
    made.config = types.SimpleNamespace(**{"num_labels": 4, "vocab_size": 9, **config})
    return made


def told(
    batch: dict[str, Any], of: Any = None, collator: Any = collate, message: str = LOST, **given: Any
) -> str | None:
    """What is seen where the loss is asked for."""
    space: dict[str, Any] = {"__name__": "transformers.trainer"}
    exec(METHOD, space)  # noqa: S102 - a frame of the library's module
    trainer = types.SimpleNamespace(
        **{
            "model": of or model(),
            "data_collator": collator,
            "compute_loss_func": None,
            "label_names": ["labels"],
            **given,
        }
    )
    with pytest.raises(ValueError, match=".") as failed:
        space["compute_loss"](trainer, trainer.model, batch, ValueError(message))
    return batch_key(list(_frames(failed.tb)), failed.value)


def at(function: Any) -> str:
    return f"{function.__code__.co_filename}:{function.__code__.co_firstlineno}"


@pytest.mark.parametrize(
    ("collator", "function"),
    [
        (collate, collate),
        (Collator(), Collator.__call__),
        (functools.partial(collate), collate),
        (Collator().__call__, Collator.__call__),
    ],
)
def test_the_key_and_the_collator(collator: Any, function: Any) -> None:
    """A function, an object, what is bound already, and a method."""
    assert told({"input_ids": IDS, "tags": PADDED}, collator=collator) == f"tags by {at(function)}"


CLASSIFIER = "BertForSequenceClassification"
SEEN = {
    "padding that does not count": ({"input_ids": IDS, "pos": PADDED}, model()),
    "a count of the Trainer": ({"input_ids": IDS, "tags": PADDED, "num_items_in_batch": 4}, model()),
    "classes of rows": ({"input_ids": IDS, "mood": torch.tensor([3, 1])}, model(CLASSIFIER)),
    "two classes by name": ({"input_ids": IDS, "target": torch.tensor([1, 1])}, model(CLASSIFIER, num_labels=2)),
    "a number": ({"input_ids": IDS, "target": torch.tensor([0.5, 1.5])}, model(CLASSIFIER, num_labels=1)),
    "text": ({"input_ids": IDS, "targets": IDS}, model("GPT2LMHeadModel")),
    "a model of the program": ({"input_ids": IDS, "label": torch.tensor([7, 8])}, model("Net")),
}
NOT_SEEN = {
    "a mask": ({"input_ids": IDS, "special_tokens_mask": IDS % 2}, model()),
    "lengths": ({"input_ids": IDS, "length": torch.tensor([3, 2])}, model(CLASSIFIER)),
    "numbers of rows": ({"input_ids": IDS, "idx": torch.tensor([3, 2])}, model(CLASSIFIER)),
    "what may be anything, of two": ({"input_ids": IDS, "left": torch.tensor([0, 1])}, model(CLASSIFIER, num_labels=2)),
    "a class that the model has not": ({"input_ids": IDS, "tags": PADDED + 3}, model()),
    "weights": ({"input_ids": IDS, "class_weight": torch.tensor([0.5, 1.5])}, model(CLASSIFIER, num_labels=1)),
    "another shape": ({"input_ids": IDS, "tags": PADDED[:, :2]}, model()),
    "words": ({"input_ids": IDS, "tags": ["a", "b"]}, model()),
    "two keys": ({"input_ids": IDS, "tags": PADDED, "lengths": torch.tensor([3, 2])}, model()),
    "labels beside it": ({"input_ids": IDS, "tags": PADDED, "labels": PADDED}, model()),
    "text that is shifted": ({"input_ids": IDS, "targets": IDS.roll(-1, 1)}, model("GPT2LMHeadModel")),
    "flags": ({"input_ids": IDS, "tags": PADDED > 0}, model(num_labels=2)),
}


@pytest.mark.parametrize(("batch", "of"), SEEN.values(), ids=SEEN)
def test_keys_that_hold_labels(batch: dict[str, Any], of: Any) -> None:
    assert (told(batch, of) or "").startswith(list(batch)[1] + " by ")


@pytest.mark.parametrize(("batch", "of"), NOT_SEEN.values(), ids=NOT_SEEN)
def test_keys_that_need_not(batch: dict[str, Any], of: Any) -> None:
    assert told(batch, of) is None


def test_only_where_a_trainer_asks_the_model_for_the_loss() -> None:
    """Not for another failure, a loss or label names of its own, or a collator of the library."""
    batch = {"input_ids": IDS, "tags": PADDED}
    assert told(batch, message="out of memory") is None
    assert told(batch, compute_loss_func=print) is None
    assert told(batch, label_names=["tags"]) is None
    assert told(batch, collator=print) is None
