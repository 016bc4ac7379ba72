"""Labels that a classifier of transformers took for rows of probabilities become integers where they are made."""

from __future__ import annotations

import pathlib

import pytest

from tests.fix.rewriting import diff_lines, rewritten

MAPPED = "def encode(row):\n    return {'input_ids': row['ids'], 'labels': VALUE}\n\ndata = rows.map(encode)\n"
ITEM = "import torch\n\nclass Rows:\n    def __getitem__(self, at):\n        return {'labels': VALUE}\n"
TABLE = "import pandas as pd\n\ndf = pd.read_csv('a.csv')\ndf['label'] = VALUE\n"
COLLATE = "import torch\nimport numpy as np\n\ndef collate(rows):\n    batch = {}\n    batch['labels'] = VALUE\n    return batch\n"
CURED = {
    "an entry of a mapped row": (MAPPED, "row['stars'] - 1", "int(row['stars'] - 1)"),
    "the entry itself": (MAPPED, "row['stars']", "int(row['stars'])"),
    "text that is read as a number": (MAPPED, "float(row['stars'])", "int(float(row['stars']))"),
    "a number less one": (MAPPED, "float(row['stars']) - 1", "int(float(row['stars']) - 1)"),
    "an item of a data set": (ITEM, "self.labels[at]", "int(self.labels[at])"),
    "a tensor of a number": (ITEM, "torch.tensor(self.labels[at])", "torch.tensor(self.labels[at], dtype=torch.long)"),
    "a tensor that says floats": (ITEM, "torch.tensor(self.labels[at], dtype=torch.float)", "torch.tensor(self.labels[at], dtype=torch.long)"),
    "a tensor cast to floats": (ITEM, "self.labels[at].float()", "self.labels[at].long()"),
    "a column of a table": (TABLE, "df['stars'].astype(float)", "df['stars'].astype(\"int64\")"),
    "a column that is computed": (TABLE, "df['stars'] - 1", "(df['stars'] - 1).astype(int)"),
    "a column of what is left of a table": (
        TABLE.replace("df['label']", "left = df.dropna(subset=['stars'])\nleft['label']"), "left['stars']", "left['stars'].astype(int)",
    ),
    "a list of a batch": (COLLATE, "torch.tensor([row['y'] for row in rows], dtype=torch.float32)", "torch.tensor([row['y'] for row in rows], dtype=torch.long)"),
    "an array in a batch": (COLLATE, "np.array([row['y'] for row in rows], dtype=np.float32)", "np.array([row['y'] for row in rows], dtype=\"int64\")"),
    "a list by a comprehension": (COLLATE, "[row['y'] - 1 for row in rows]", "[int(row['y'] - 1) for row in rows]"),
    "a list by a map": (COLLATE, "list(map(float, rows))", "[int(float(value)) for value in rows]"),
}  # fmt: skip
STAYS = {
    "integers already": (MAPPED, "int(row['stars']) - 0 if row else 0"),
    "an int": (MAPPED, "int(row['stars'])"),
    "a batch of rows": (MAPPED.replace("map(encode)", "map(encode, batched=True)"), "row['stars']"),
    "a map that may take batches": (MAPPED.replace("map(encode)", "map(encode, **how)"), "row['stars']"),
    "a function that nothing maps": (MAPPED.replace("rows.map(encode)", "encode(rows)"), "row['stars']"),
    "a tensor of integers": (ITEM, "torch.tensor(self.labels[at], dtype=torch.long)"),
    "rows of labels": (COLLATE, "[[1.0, 0.0] for row in rows]"),
    "what a call gives": (MAPPED, "classes(row['stars'])"),
    "a column of whole numbers": (TABLE, "df['stars'].astype(int)"),
    "a column of another library's table": (TABLE.replace("pandas as pd", "polars as pd"), "df['stars'] - 1"),
    "a number for a log": ("def note(log, score):\n    log.info({'label': VALUE})\n", "float(score)"),
    "another key": (MAPPED.replace("'labels'", "'weight'"), "float(row['stars'])"),
}  # fmt: skip


@pytest.mark.parametrize(("code", "value", "wanted"), CURED.values(), ids=CURED)
def test_cured(code: str, value: str, wanted: str, tmp_path: pathlib.Path) -> None:
    """The labels are whole numbers where they are made; a second time nothing is left to do."""
    after = rewritten(tmp_path, "whole_labels", code.replace("VALUE", value), facts={"live_class_targets": "float32"})
    assert after == code.replace("VALUE", wanted)
    assert rewritten(tmp_path, "whole_labels", after, facts={"live_class_targets": "float32"}) == after


@pytest.mark.parametrize(("code", "value"), STAYS.values(), ids=STAYS)
def test_stays(code: str, value: str, tmp_path: pathlib.Path) -> None:
    """What is whole already, or is not known to be one number, stays."""
    before = code.replace("VALUE", value)
    assert rewritten(tmp_path, "whole_labels", before, facts={"live_class_targets": "float32"}) == before


def test_features_of_a_data_set(tmp_path: pathlib.Path) -> None:
    """The dtype that the features say is changed there."""
    before = "from datasets import Features, Value\n\nfeatures = Features({'text': Value('string'), 'label': Value('float32')})\n"
    after = rewritten(tmp_path, "whole_labels", before, facts={"live_class_targets": "float32"})
    assert after == before.replace("'float32'", '"int64"')


def test_renamed_column(tmp_path: pathlib.Path) -> None:
    """A column that gets a label's name later is followed to its own."""
    before = "data = make({'stars': [float(one) for one in stars]})\ndata = data.rename_column('stars', 'labels')\n"
    after = rewritten(tmp_path, "whole_labels", before, facts={"live_class_targets": "float32"})
    assert diff_lines(before, after)[1] == "+data = make({'stars': [int(float(one)) for one in stars]})"


def test_without_the_live_labels(tmp_path: pathlib.Path) -> None:
    """Only live labels say that they are whole."""
    before = MAPPED.replace("VALUE", "row['stars'] - 1")
    assert rewritten(tmp_path, "whole_labels", before) == before
