"""The largest label is one less than the count of classes."""

from __future__ import annotations

import pathlib

import pytest

from tests.fix.rewriting import changed_lines, rewritten

HEAD = "import numpy as np\nimport torch\nfrom torch import nn\n"
USE = "loss = criterion(model(x), y)\n"
WRONG = {
    "a keyword": ("spec = Spec(n_classes=int(labels.max()), width=8)", "spec = Spec(n_classes=int(labels.max()) + 1, width=8)"),
    "a name": ("num_classes = labels.max().item()", "num_classes = labels.max().item() + 1"),
    "an attribute": ("self.vocab_size = max(ids)", "self.vocab_size = max(ids) + 1"),
    "of numpy": ("cfg = {'num_labels': int(np.max(y_all))}", "cfg = {'num_labels': int(np.max(y_all)) + 1}"),
    "a table": ("users = nn.Embedding(int(rows[:, 0].max()), 8)", "users = nn.Embedding(int(rows[:, 0].max()) + 1, 8)"),
}  # fmt: skip
RIGHT = {
    "counted": "n_classes = int(labels.max()) + 1",
    "a length": "max_len = max(lengths)",
    "a floor": "n_classes = max(labels.max(), 3)",
    "along an axis": "classes = scores.max(1)",
    "two counts": "n_users = u.max()\nn_items = i.max()",
    "a width": "head = nn.Linear(int(widths.max()), 8)",
}


@pytest.mark.parametrize(("line", "wanted"), WRONG.values(), ids=WRONG)
def test_one_more_is_counted(line: str, wanted: str, tmp_path: pathlib.Path) -> None:
    source = f"{HEAD}{line}\n{USE}"
    after = rewritten(tmp_path, "count_from_largest", source, USE.strip(), message="Target 6 is out of bounds.")
    assert changed_lines(source, after) == [wanted]


@pytest.mark.parametrize("line", RIGHT.values(), ids=RIGHT)
def test_what_is_no_count_stays(line: str, tmp_path: pathlib.Path) -> None:
    source = f"{HEAD}{line}\n{USE}"
    assert (
        rewritten(tmp_path, "count_from_largest", source, USE.strip(), message="Target 6 is out of bounds.") == source
    )
