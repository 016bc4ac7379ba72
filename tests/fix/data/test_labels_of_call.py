"""A model of transformers gets the labels of which it computes its loss."""

from __future__ import annotations

import pathlib

import pytest

from tests.fix.rewriting import changed_lines, rewritten

CAUSAL = "from transformers import GPT2LMHeadModel\nmodel = GPT2LMHeadModel(config)\n"
CLASSES = "from transformers import BertForSequenceClassification as Bert\nmodel = Bert(config).to(device)\n"
SAID = "'NoneType' object has no attribute 'backward'"


@pytest.mark.parametrize(
    ("head", "body", "wanted"),
    [
        (CAUSAL, "out = model(input_ids=ids)", "out = model(input_ids=ids, labels=ids)"),
        (CAUSAL, "out = model(ids, attention_mask=mask)", "out = model(ids, attention_mask=mask, labels=ids.masked_fill(mask == 0, -100))"),
        (CAUSAL, 'out = model(**batch)', 'out = model(**batch, labels=batch["input_ids"])'),
        (CLASSES, "for ids, labels in loader:\n    out = model(ids)", "out = model(ids, labels=labels)"),
        (CLASSES, 'rows = [{"input_ids": 1, "label": 0}]\nout = model(batch["input_ids"])', 'out = model(batch["input_ids"], labels=batch["label"])'),
        (
            CAUSAL,
            'row = {"input_ids": ids, "attention_mask": mask, "in_answer": answer}\nout = model(batch["input_ids"], attention_mask=batch["attention_mask"])',
            'out = model(batch["input_ids"], attention_mask=batch["attention_mask"], labels=batch["input_ids"].masked_fill(batch["in_answer"] == 0, -100))',
        ),
        # No labels are written, or no model of transformers is called.
        (CLASSES, "out = model(ids)", None),
        ("model = Net()\n", "out = model(ids)", None),
    ],
)  # fmt: skip
def test_labels(tmp_path: pathlib.Path, head: str, body: str, wanted: str | None) -> None:
    indent = "    " if "for " in body else ""
    source = f"{head}{body}\n{indent}loss = out.loss\n{indent}loss.backward()\n"
    after = rewritten(tmp_path, "labels_of_call", source, "loss.backward", message=SAID)
    assert changed_lines(source, after) == ([wanted] if wanted else [])
