"""The columns of a data set are called as the model's forward calls them."""

from __future__ import annotations

import pathlib

import pytest

from explainer.model.incident import ExceptionRecord, Incident, LogLine
from tests.fix.rewriting import best, changed_lines, rewritten, write

HEAD = """import torch
from torch import nn
from transformers import BertForSequenceClassification, LlamaForCausalLM, Trainer
"""
RIGHT = {
    "labels": (
        HEAD
        + """rows = [{"input_ids": [1, 2], "labels": 1}]
""",
        "",
    ),
    "a dictionary of anything": (
        HEAD
        + """limits = {"target": 3, "lower": 1}
""",
        "",
    ),
    "metrics": (
        HEAD
        + """class Net(nn.Module):
    def forward(self, labels=None, **sensors):
        return {"loss": sensors["flow"].sum()}


def score(prediction):
    return {"accuracy": 0.5}


Trainer(model=Net(), train_dataset=rows, compute_metrics=score).train()
""",
        "",
    ),
    "columns that the forward takes": (
        HEAD
        + """class Net(nn.Module):
    def forward(self, features, labels=None):
        return {"loss": features.sum()}


rows = [{"features": 1, "labels": 2}]
Trainer(model=Net(), train_dataset=rows).train()
""",
        "",
    ),
    "a forward with labels": (
        HEAD
        + """model = LlamaForCausalLM.from_pretrained("x")
ids = torch.ones(1, 2).long()
loss = model(input_ids=ids, labels=ids).loss
""",
        "",
    ),
    "logits alone": (
        HEAD
        + """model = LlamaForCausalLM.from_pretrained("x")
logits = model(input_ids=torch.ones(1, 2).long()).logits
""",
        "",
    ),
}
WRONG = {
    "a target beside token ids": (
        HEAD
        + """rows = [{"input_ids": [1, 2], "target": 1}]
""",
        "",
        ['rows = [{"input_ids": [1, 2], "labels": 1}]'],
    ),
    "columns of a model of one's own": (
        HEAD
        + """class Net(nn.Module):
    def forward(self, features, labels=None):
        return {"loss": features.sum()}


rows = [{"x": 1, "y": 2}]
Trainer(model=Net(), train_dataset=rows).train()
""",
        "",
        ['rows = [{"features": 1, "labels": 2}]'],
    ),
    "a column that is spelt otherwise": (
        HEAD
        + """class Net(nn.Module):
    def forward(self, features, mask, labels=None):
        return {"loss": features.sum()}


rows = [{"feature": 1, "mask": 0, "labels": 2}]
Trainer(model=Net(), train_dataset=rows).train()
""",
        "",
        ['rows = [{"features": 1, "mask": 0, "labels": 2}]'],
    ),
    "a column that a data set calls otherwise": (
        HEAD
        + """model = LlamaForCausalLM.from_pretrained("x")
rows = rows.rename_column("urgent", "target")
""",
        "",
        ['rows = rows.rename_column("urgent", "labels")'],
    ),
    "a column that a function writes": (
        HEAD
        + """def encode(row):
    row["label_id"] = row.pop("kind")
    return row
""",
        "",
        ['row["labels"] = row.pop("kind")'],
    ),
    "a language model without labels": (
        HEAD
        + """model = LlamaForCausalLM.from_pretrained("x")
ids = torch.ones(1, 2).long()
out = model(input_ids=ids)
out.loss.backward()
""",
        "",
        ["out = model(input_ids=ids, labels=ids)"],
    ),
    "a batch of a language model": (
        HEAD
        + """model = LlamaForCausalLM.from_pretrained("x")
batch = {"input_ids": torch.ones(1, 2).long()}
model(**batch).loss.backward()
""",
        "",
        ['model(**batch, labels=batch["input_ids"]).loss.backward()'],
    ),
}


@pytest.mark.parametrize(("source", "at"), RIGHT.values(), ids=RIGHT)
def test_right_programs_stay(tmp_path, source: str, at: str) -> None:
    """Labels, and dictionaries of anything else, are left alone."""
    assert rewritten(tmp_path, "name_columns", source, at or None) == source


@pytest.mark.parametrize(("source", "at", "wanted"), WRONG.values(), ids=WRONG)
def test_faults_are_cured(tmp_path, source: str, at: str, wanted: list[str]) -> None:
    """The model gets its labels; a second time nothing is left to do."""
    after = rewritten(tmp_path, "name_columns", source, at or None)
    assert changed_lines(source, after) == wanted
    again = at if at and at in after else None
    assert rewritten(tmp_path, "name_columns", after, again) == after


DEBATES = """from datasets import Dataset
def debates(n):
    rows = []
    for topic, stance in given(n):
        rows.append({"claim": topic, "comment": topic, LABEL: stance})
    return Dataset.from_list(rows)
def encode(rows):
    return tokenizer(rows["claim"], rows["comment"])
train = debates(9).map(encode, batched=True, remove_columns=["claim", "comment"])
"""
KEPT = {
    "called labels": DEBATES.replace("LABEL", '"labels"'),
    "read elsewhere": DEBATES.replace("LABEL", '"stance"') + "print(train['stance'])\n",
    "nothing is mapped": DEBATES.replace("LABEL", '"stance"').partition("train =")[0],
    "made when they are read": DEBATES.replace("LABEL", '"stance"').replace(
        "map(encode, batched=True", "with_transform(encode"
    ),
    "another column is left too": DEBATES.replace("LABEL", '"source": 1, "stance"'),
}


def test_the_column_that_is_left_is_the_label(tmp_path) -> None:
    """All others are read or removed by name."""
    after = rewritten(tmp_path, "name_columns", DEBATES.replace("LABEL", '"stance"'))
    assert after == DEBATES.replace("LABEL", '"labels"')


@pytest.mark.parametrize("source", KEPT.values(), ids=KEPT)
def test_other_columns_keep_their_names(tmp_path, source: str) -> None:
    """A column that is used by its name, and rows of which it is not said what becomes of them."""
    assert rewritten(tmp_path, "name_columns", source) == source


CLAIMS = (
    HEAD
    + """class Net(nn.Module):
    def forward(self, factors, offset, labels=None):
        return {"loss": factors.sum()}


def collate(rows):
    return {"offset": torch.tensor([row["exposure"] for row in rows]).log()}


rows = [{"factors": 1, "labels": 2, "exposure": 0.5}]
Trainer(model=Net(), train_dataset=rows, data_collator=collate).train()
"""
)
SEEN = "seen in the live program: train.py:12 reads a column that the Trainer has dropped: `exposure`, which Net.forward does not take"


@pytest.mark.parametrize(
    ("column", "seen"), [("exposure", ""), ("", SEEN)], ids=["it fails for want of it", "it goes without it"]
)
def test_a_column_that_is_asked_for_keeps_its_name(column: str, seen: str, tmp_path: pathlib.Path) -> None:
    """What a collator or a loss reads by its name once the Trainer has dropped it would be missing under another one too."""
    incident = Incident(exceptions=(ExceptionRecord(type="KeyError", message="it"),), log=(LogLine(text=seen),))
    program = write(tmp_path, {"train.py": CLAIMS.replace(", data_collator=collate", "")})
    assert best("name_columns", program, incident=incident, fields={"column": column}) is None
    assert best("name_columns", program, fields={"column": "labels"}) is not None


COLLATORS = {
    "a function": CLAIMS,
    "an object": CLAIMS.replace("def collate(rows):", "class Collate:\n  def __call__(self, rows):").replace(
        "data_collator=collate", "data_collator=Collate()"
    ),
}


@pytest.mark.parametrize("source", COLLATORS.values(), ids=COLLATORS)
def test_a_column_that_a_collator_reads_keeps_its_name(source: str, tmp_path: pathlib.Path) -> None:
    """The collator, not the row, then says what the model gets."""
    assert rewritten(tmp_path, "name_columns", source) == source
