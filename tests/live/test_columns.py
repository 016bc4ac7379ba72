"""What is told of the columns that a Trainer dropped, at a failure in one of its methods."""

from __future__ import annotations

import pathlib
import types
from typing import Any

import pytest

from explainer.live.columns import columns
from explainer.live.crash import _frames
from tests.live.running import run_on_transformers
from tests.live.test_dropped import program

METHOD = "def evaluate(self, error):\n    raise error\n"


def told(trainer: Any, error: BaseException, module: str = "transformers.trainer") -> dict[str, str]:
    """What is seen where a method of the Trainer raises."""
    space: dict[str, Any] = {"__name__": module}
    exec(METHOD, space)  # noqa: S102 - a frame of the library's module
    with pytest.raises(type(error)) as failed:
        space["evaluate"](trainer, error)
    return columns(list(_frames(failed.tb)), failed.value)


def trainer(train: Any, held: Any = None, classes: int | None = None, *, is_kept: bool = False, **other: Any) -> Any:
    kind = type("BertForSequenceClassification" if classes else "Net", (), {})
    model = kind()
    model.config = types.SimpleNamespace(num_labels=classes)
    given = {"label_names": ["labels"], "_signature_columns": ["x", "labels", "label", "label_ids"], **other}
    args = types.SimpleNamespace(remove_unused_columns=not is_kept)
    return types.SimpleNamespace(model=model, args=args, train_dataset=train, eval_dataset=held, **given)


def rows(**given: list[Any]) -> Any:
    datasets = pytest.importorskip("datasets")
    return datasets.Dataset.from_dict({"x": [0.0, 1.0, 2.0, 3.0]} | given)


GOOD = {"labels": [0, 1, 2, 1]}
LOST = ValueError("The model did not return a loss")


@pytest.mark.parametrize(
    ("error", "wanted"),
    [
        (KeyError("trust"), {"missed": "trust"}),
        (
            KeyError("Caught KeyError in DataLoader worker process 0.\nTraceback\nKeyError: 'trust'"),
            {"missed": "trust"},
        ),
        (KeyError("score"), {}),
        (KeyError("x"), {}),
        (KeyError(("trust",)), {}),
        (ValueError("trust"), {}),
    ],
)
def test_the_column_that_a_failure_asks_for(error: BaseException, wanted: dict[str, str]) -> None:
    """A key that the rows had, and no other."""
    assert told(trainer(rows(**GOOD, trust=[0.1, 0.2, 0.3, 0.4])), error) == wanted


def test_only_what_a_trainer_has_dropped() -> None:
    """None with `remove_unused_columns=False`, before the first loader, outside of a Trainer, or of rows of another kind."""
    table, asked = rows(**GOOD, trust=[0.1, 0.2, 0.3, 0.4]), KeyError("trust")
    assert told(trainer(table, is_kept=True), asked) == {}
    assert told(trainer(table, _signature_columns=None), asked) == {}
    assert told(trainer(table), asked, module="train") == {}
    assert told(trainer([{"trust": 1}]), asked) == {}


@pytest.mark.parametrize(
    "given",
    [
        {"labels": [0, 2, 1, 0], "kind": [0, 1, 2, 0]},
        {"label": [0, 2, 1, 0], "kind": [0, 1, 2, 0]},
        {"fold": [0, 1, 2, 0]},
        {"kind": [0, 1, 2, 7]},
        {"kind": [1, 1, 1, 1]},
        {"kind": [0.0, 1.0, 2.0, 0.0]},
        {"kind": ["a", "b", "c", "a"]},
        {"kind": [True, False, True, True]},
        {"kind": [0, 1, 2, 0], "group": [1, 0, 0, 1]},
        {"reader": [0, 1, 2, 0], "truth": ["yes", "no", "so", "no"]},
        {"x": [0.0] * 60, "kind": [0, 1] * 30},
    ],
    ids=["labels", "a label", "beside the labels elsewhere", "other values", "one value", "numbers", "words", "flags", "two", "names of classes", "one class in none of many"],
)  # fmt: skip
def test_columns_that_need_not_be_the_labels(given: dict[str, list[Any]]) -> None:
    """Nothing is told where a set has labels, or no column of it, or more than one, can only hold them."""
    assert told(trainer(rows(**GOOD, fold=[0, 1, 0, 1]), rows(**given)), LOST) == {}


def test_the_labels_by_their_values() -> None:
    """Those of the other set, or all classes of a classifier; a token classifier or a language model has others."""
    kind, number = {"kind": [0, 2, 1, 0]}, {"number": [5, 6, 7, 8]}
    assert told(trainer(rows(**GOOD), rows(**kind, **number)), LOST) == {"labels": "eval_dataset: kind -> labels"}
    many = {"x": [0.0] * 60, "kind": [0, 1, 2] * 20, "text": [str(one) for one in range(60)]}
    assert told(trainer(rows(**GOOD), rows(**many)), LOST) == {"labels": "eval_dataset: kind -> labels"}
    both = "train_dataset: kind -> labels, eval_dataset: kind -> labels"
    assert told(trainer(rows(**kind, **number), rows(**kind), classes=3), LOST) == {"labels": both}
    assert told(trainer(rows(**kind), rows(**kind), classes=4), LOST) == {}
    assert told(trainer(rows(**kind), rows(**kind)), LOST) == {}
    assert told(trainer(rows(**GOOD), rows(**kind), label_names=["labels", "next"]), LOST) == {}


INPUTS = [[5, 9, 1], [7, 1], [6, 5, 8, 1]]
TAGS = [[-100, 0, 1], [-100, 2], [-100, 1, 1, 0]]
SAID = [[12, 1], [14, 11, 13, 1], [13, 1]]


def speaker(kind: str = "T5ForConditionalGeneration", **config: Any) -> Any:
    given = {"is_encoder_decoder": True, "vocab_size": 20, "pad_token_id": 0, "eos_token_id": 1, "num_labels": 2}
    model = type(kind, (), {})()
    model.config = types.SimpleNamespace(**given | config)
    return model


def texts(**given: list[Any]) -> Any:
    datasets = pytest.importorskip("datasets")
    return datasets.Dataset.from_dict({"input_ids": INPUTS} | given)


def said(model: Any, table: Any, error: BaseException = LOST) -> dict[str, str]:
    one = trainer(table, _signature_columns=["input_ids", "labels"])
    one.model = model
    return told(one, error)


@pytest.mark.parametrize(
    "given",
    [
        {"labels": SAID, "target_ids": SAID},
        {"target_ids": SAID, "summary_ids": SAID},
        {"target_ids": [[12], [14, 11, 13], [13]]},
        {"target_ids": [[12, 1, 0, 0], [14, 11, 13, 1], [13, 1, 0, 0]]},
        {"target_ids": [[12, 1], [14, 99, 13, 1], [13, 1]]},
        {"source_ids": INPUTS},
        {"mask": [[1, 1], [1, 1, 1, 1], [1, 1]]},
        {"position_ids": [[0, 1, 2], [0, 1], [0, 1, 2, 3]]},
        {"share": [[0.5, 1.0], [0.2, 1.0], [0.1, 1.0]]},
        {"length": [3, 2, 4]},
        {"target": ["a b", "c", "d e"]},
        {"target_ids": [[], [14, 1], [13, 1]]},
    ],
    ids=["labels", "two", "without an end", "padded", "no ids of the vocabulary", "the inputs", "a mask", "places", "numbers", "a number", "words", "an empty row"],
)  # fmt: skip
def test_columns_that_need_not_be_targets(given: dict[str, list[Any]]) -> None:
    """Nothing is told where another column may be what a decoder is to say, or padding would count in its loss."""
    assert said(speaker(), texts(**given)) == {}


def test_the_targets_of_a_decoder() -> None:
    """Ids of the vocabulary that end as the inputs do, or are no longer than these: of a model that generates text alone."""
    wanted = {"labels": "train_dataset: target_ids -> labels"}
    assert said(speaker(), texts(target_ids=SAID, token_type_ids=[[0] * 3, [0] * 2, [0] * 4])) == wanted
    lost = ValueError("You must specify exactly one of input_ids or inputs_embeds")
    assert said(speaker(), texts(target_ids=SAID), lost) == wanted | {"targets": wanted["labels"]}
    assert said(speaker(eos_token_id=19), texts(target_ids=SAID)) == wanted
    aligned = [[12, 13, 14], [12, 14], [13, 12, 13, 14]]
    assert said(speaker(eos_token_id=19), texts(tags=aligned)) == {}
    assert said(speaker(is_encoder_decoder=False), texts(target_ids=SAID)) == {}
    assert said(speaker("BartForSequenceClassification"), texts(target_ids=SAID)) == {}
    nested = types.SimpleNamespace(vocab_size=20, pad_token_id=0, eos_token_id=1)
    assert said(speaker("EncoderDecoderModel", vocab_size=0, decoder=nested), texts(target_ids=SAID)) == wanted


def tagger(table: Any, held: Any = None, classes: int = 3) -> Any:
    one = trainer(table, held, _signature_columns=["input_ids", "labels"])
    one.model = type("DistilBertForTokenClassification", (), {})()
    one.model.config = types.SimpleNamespace(num_labels=classes)
    return one


def test_the_tags_of_tokens() -> None:
    """One for each token, all classes of the model or those of the other set; of two such columns none is told."""
    wanted = {"labels": "train_dataset: ner_tags -> labels"}
    assert told(tagger(texts(ner_tags=TAGS, words=[["a"], ["b"], ["c"]])), LOST) == wanted
    assert told(tagger(texts(ner_tags=TAGS), texts(labels=TAGS)), LOST) == wanted
    assert told(tagger(texts(ner_tags=TAGS), classes=4), LOST) == {}
    assert told(tagger(texts(ner_tags=TAGS, pos=TAGS)), LOST) == {}
    assert told(tagger(texts(ner_tags=[[0, 1], [2], [0]])), LOST) == {}
    assert told(tagger(texts(kind=[0, 1, 2])), LOST) == {}


def test_rows_that_a_transform_makes() -> None:
    """They have other columns than the table; what the transform asks for is told all the same."""
    held = rows(kind=[0, 2, 1, 0]).with_transform(dict)
    assert told(trainer(rows(**GOOD), held), LOST) == {}
    assert told(trainer(rows(**GOOD), held), KeyError("kind")) == {"missed": "kind"}


@pytest.mark.torch
def test_the_failure_is_explained_by_it(tmp_path: pathlib.Path) -> None:
    """A loss that asks for a column which the Trainer has dropped: certain."""
    pytest.importorskip("transformers")
    pytest.importorskip("datasets")
    (tmp_path / "train.py").write_text(program('weight = inputs["weight"]'))
    done, _ = run_on_transformers(tmp_path, "train.py")
    first = done.report.findings[0]
    assert (first.cause, first.confidence) == ("trainer/columns-removed", "certain")
    assert "live-dropped-column" in [one.id for one in first.evidence]


TRANSLATES = """import torch
from datasets import Dataset
from transformers import Seq2SeqTrainer, Seq2SeqTrainingArguments, T5Config, T5ForConditionalGeneration

ROWS = [{"input_ids": [5, 9, 1], "target_ids": [12, 1]}, {"input_ids": [7, 8, 1], "target_ids": [14, 1]}]
sizes = {"vocab_size": 20, "d_model": 8, "d_kv": 4, "d_ff": 8, "num_layers": 1, "num_heads": 2}
model = T5ForConditionalGeneration(T5Config(**sizes, pad_token_id=0, eos_token_id=1, decoder_start_token_id=0))
options = Seq2SeqTrainingArguments("out", max_steps=2, use_cpu=True, report_to=[], save_strategy="no", disable_tqdm=True)
Seq2SeqTrainer(model=model, args=options, train_dataset=Dataset.from_list(ROWS)).train()
"""


@pytest.mark.torch
def test_a_decoder_without_targets_is_explained_by_them(tmp_path: pathlib.Path) -> None:
    """T5 says that it has no inputs: certain, where the dropped column is seen; without it, not."""
    pytest.importorskip("transformers")
    pytest.importorskip("datasets")
    (tmp_path / "train.py").write_text(TRANSLATES)
    done, _ = run_on_transformers(tmp_path, "train.py")
    first = done.report.findings[0]
    assert (first.cause, first.confidence) == ("trainer/columns-removed", "certain")
    assert [one.id for one in first.evidence if one.id.startswith(("live", "decoder"))] == [
        "live-target-column",
        "decoder-without-input",
    ]
    (tmp_path / "train.py").write_text(TRANSLATES.replace("target_ids", "flags").replace("12", "1").replace("14", "1"))
    done, _ = run_on_transformers(tmp_path, "train.py")
    assert done.report.findings[0].confidence != "certain"


def causal(train: Any, **other: Any) -> Any:
    given = trainer(train, _signature_columns=["input_ids", "attention_mask", "labels", "label", "label_ids"], **other)
    given.model = type("TinyForCausalLM", (), {})()
    return given


IDS = [[4, 5, 6, 2], [7, 8, 9, 2], [4, 4, 2, 0], [9, 8, 2, 0]]
ANSWERS = [[-100, -100, 6, 2], [-100, 8, 9, 2], [-100, 4, 2, -100], [-100, 8, 2, -100]]


@pytest.mark.parametrize(
    ("more", "wanted"),
    [
        ({"target_ids": ANSWERS}, {"labels": "train_dataset: target_ids -> labels"}),
        ({"prompts": [[-100, -100, 1, 1]] * 4}, {}),
        ({"answer_mask": [[0, 0, 1, 1]] * 4}, {}),
        ({"text": ["a", "b", "c", "d"]}, {"inputs": "train_dataset"}),
        ({"prompt": ["a", "b", "c", "d"], "answer": ["e", "f", "g", "h"]}, {}),
        ({}, {"inputs": "train_dataset"}),
        ({"labels": ANSWERS}, {}),
    ],
    ids=["the ids in part", "other ids", "a mask", "words", "a prompt and its answer", "tokens alone", "labels"],
)
def test_what_a_causal_model_is_to_learn(more: dict[str, list[Any]], wanted: dict[str, str]) -> None:
    """A dropped column that has the ids, or -100 in their place, holds the labels; with none that says anything all is learned."""
    assert told(causal(rows(input_ids=IDS, **more).remove_columns("x")), LOST) == wanted
