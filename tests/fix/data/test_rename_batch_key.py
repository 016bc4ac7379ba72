"""The key of a collator's batch that holds the labels gets the name by which the model takes them."""

from __future__ import annotations

import pathlib

import pytest

from explainer.fix.splice import splice
from explainer.model.incident import BATCH_KEY
from tests.fix.rewriting import best, changed_lines, failed, line_of, write

HEAD = "import torch\nfrom collections import defaultdict\nfrom transformers import BatchEncoding, Trainer\n"
TAIL = "Trainer(model=net, data_collator=collate, train_dataset=rows).train()\n"

# What makes the batch, and the lines that change.
RENAMED = {
    "lists that are filled": (
        "def collate(rows):\n"
        '    batch = {"input_ids": [], "tags": []}\n'
        "    for row in rows:\n"
        '        batch["input_ids"].append(row["ids"])\n'
        '        batch["tags"].append(row["tags"])\n'
        "    return {key: torch.tensor(value) for key, value in batch.items()}\n",
        ['batch = {"input_ids": [], "labels": []}', 'batch["labels"].append(row["tags"])'],
    ),
    "a dictionary that is returned": (
        "def collate(rows):\n"
        '    tags = [row["tags"] for row in rows]\n'
        "    return {'input_ids': stack(rows), 'tags': torch.tensor(tags)}\n",
        ["return {'input_ids': stack(rows), 'labels': torch.tensor(tags)}"],
    ),
    "what a tokenizer padded": (
        "def collate(rows):\n"
        '    tags = [row.pop("tags") for row in rows]\n'
        '    batch = tokenizer.pad(rows, return_tensors="pt")\n'
        '    batch["tags"] = torch.tensor(tags)\n'
        '    print(batch["tags"].shape)\n'
        "    return batch\n",
        ['batch["labels"] = torch.tensor(tags)', 'print(batch["labels"].shape)'],
    ),
    "keywords": (
        "def collate(rows):\n"
        "    batch = dict(input_ids=stack(rows))\n"
        "    batch.update(tags=stack(rows))\n"
        "    return BatchEncoding(batch)\n",
        ["batch.update(labels=stack(rows))"],
    ),
    "dict": (
        "def collate(rows):\n    return BatchEncoding(dict(input_ids=stack(rows), tags=stack(rows)))\n",
        ["return BatchEncoding(dict(input_ids=stack(rows), labels=stack(rows)))"],
    ),
    "a table of lists": (
        "def collate(rows):\n"
        "    batch = defaultdict(list)\n"
        "    for row in rows:\n"
        '        batch["input_ids"] += [row["ids"]]\n'
        '        batch["tags"].append(row["tags"])\n'
        "    return {key: torch.tensor(value) for key, value in batch.items()}\n",
        ['batch["labels"].append(row["tags"])'],
    ),
    "a helper that makes tensors": (
        "def tensors(lists):\n"
        "    return {key: torch.tensor(value) for key, value in lists.items()}\n"
        "def collate(rows):\n"
        '    lists = {key: [] for key in ("input_ids", "tags")}\n'
        "    for row in rows:\n"
        '        lists["input_ids"].append(row["ids"])\n'
        '        lists["tags"].append(row["tags"])\n'
        "    return tensors(lists)\n",
        ['lists = {key: [] for key in ("input_ids", "labels")}', 'lists["labels"].append(row["tags"])'],
    ),
    "a helper that makes the batch": (
        "def build(rows):\n"
        '    return {"input_ids": stack(rows), "tags": stack(rows)}\n'
        "def collate(rows):\n"
        "    batch = build(rows)\n"
        '    batch["tags"] = batch["tags"].long()\n'
        "    return batch\n",
        ['return {"input_ids": stack(rows), "labels": stack(rows)}', 'batch["labels"] = batch["labels"].long()'],
    ),
    "a row that has the key": (
        "class Rows(torch.utils.data.Dataset):\n"
        "    def __getitem__(self, at):\n"
        '        return {"ids": self.ids[at], "tags": self.table[at]["tags"]}\n'
        "def collate(rows):\n"
        '    return {"input_ids": stack(rows), "tags": stack([row["tags"] for row in rows])}\n',
        ['return {"input_ids": stack(rows), "labels": stack([row["tags"] for row in rows])}'],
    ),
}  # fmt: skip
PLAIN = 'def collate(rows):\n    return {"input_ids": stack(rows), "tags": stack(rows)}\n'
STAYS = {
    "a metric reads the batch": PLAIN + 'def score(batch):\n    return batch["tags"].sum()\n',
    "a loss of its own pops it": PLAIN
    + 'class Own(Trainer):\n    def compute_loss(self, model, inputs, **more):\n        return f(inputs.pop("tags"))\n',
    "the options name it": PLAIN + 'args = TrainingArguments(label_names=["tags"])\n',
    "another forward takes it": PLAIN + "class Net:\n    def forward(self, input_ids, tags=None):\n        pass\n",
    "the rows have it, not the collator": (
        "def collate(rows):\n"
        "    batch = default_data_collator(rows)\n"
        '    batch["tags"] = batch["tags"].long()\n'
        "    return batch\n"
    ),
    "a loop takes it from the rows": (
        "def collate(rows):\n"
        "    batch = {}\n"
        '    for key in ("input_ids", "tags"):\n'
        "        batch[key] = stack([row[key] for row in rows])\n"
        "    return batch\n"
    ),
    "a comprehension takes it from the rows": (
        'def collate(rows):\n    return {key: [row[key] for row in rows] for key in ("input_ids", "tags")}\n'
    ),
    "a branch has labels": (
        "def collate(rows):\n"
        '    batch = {"input_ids": stack(rows), "tags": stack(rows)}\n'
        "    if test:\n"
        '        batch["labels"] = stack(rows)\n'
        "    return batch\n"
    ),
    "rows are given it": (
        'def collate(rows):\n    for row in rows:\n        row["tags"] = pad(row)\n    return tokenizer.pad(rows)\n'
    ),
    "it is asked for": (
        "def collate(rows):\n"
        '    batch = {"input_ids": stack(rows), "tags": stack(rows)}\n'
        '    if "tags" in batch:\n'
        "        print(1)\n"
        "    return batch\n"
    ),
}


def told(source: str, key: str = "tags") -> dict[str, str]:
    return {BATCH_KEY: f"{key} by /there/train.py:{line_of(source, 'def collate')}"}


@pytest.mark.parametrize(("body", "wanted"), RENAMED.values(), ids=RENAMED)
def test_it_is_renamed(tmp_path: pathlib.Path, body: str, wanted: list[str]) -> None:
    """At every place of the batch, and at none of the rows; the line is the first that writes it."""
    source = HEAD + body + TAIL
    program = write(tmp_path, {"train.py": source})
    proposal = best("rename_batch_key", program, incident=failed(facts=told(source)))
    assert proposal is not None
    after = splice(source, proposal.edits)
    assert after is not None
    assert changed_lines(source, after) == wanted
    assert wanted[0] in after.splitlines()[proposal.culprit.line - 1]


@pytest.mark.parametrize("body", STAYS.values(), ids=STAYS)
def test_other_programs_stay(tmp_path: pathlib.Path, body: str) -> None:
    """Something else reads the batch by that key, or the key comes with the rows."""
    source = HEAD + body + TAIL
    program = write(tmp_path, {"train.py": source})
    assert best("rename_batch_key", program, incident=failed(facts=told(source))) is None


def test_without_the_live_batch_nothing_is_proposed(tmp_path: pathlib.Path) -> None:
    """Nor where the told function is not of the program."""
    program = write(tmp_path, {"train.py": HEAD + PLAIN + TAIL})
    assert best("rename_batch_key", program, incident=failed()) is None
    elsewhere = {BATCH_KEY: "tags by /there/train.py:1"}
    assert best("rename_batch_key", program, incident=failed(facts=elsewhere)) is None


def test_a_collator_of_a_class_in_another_file(tmp_path: pathlib.Path) -> None:
    """The rows' own file beside it stays."""
    rows = (
        'class Pad:\n    def __call__(self, rows):\n        return {"x": rows, "tags": [one["tags"] for one in rows]}\n'
    )
    program = write(tmp_path, {"train.py": "from rows import Pad\nTrainer(data_collator=Pad())\n", "rows.py": rows})
    proposal = best("rename_batch_key", program, incident=failed(facts={BATCH_KEY: "tags by /there/rows.py:2"}))
    assert proposal is not None
    assert proposal.culprit.line == 3
    assert splice(rows, proposal.edits) == rows.replace('"tags": [', '"labels": [')
