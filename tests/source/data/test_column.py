"""Which columns of a data set a Trainer drops, as the program's source tells it."""

from __future__ import annotations

import pathlib

import pytest

from explainer.source.data.column import drops
from tests.fix.rewriting import write

NET = """from torch import nn
from transformers import AutoModel, Trainer, TrainingArguments
class Net(nn.Module):
    def forward(self, x, labels=None, **kwargs):
        return x
"""
ROWS = "rows = [{'x': 1.0, 'rank': 3} for _ in range(4)]\n"
RUN = "Trainer(model=Net(), args=TrainingArguments('out'), train_dataset=rows).train()\n"
DROPPED = {
    "a key of each row": NET + ROWS + RUN,
    "made by a call": NET + "rows = [dict(x=1.0, rank=3)]\n" + RUN,
    "a column that is added": NET + "rows = rows.add_column('rank', ranks)\n" + RUN,
    "stored in a row": NET + "def f(row):\n    row['rank'] = 3\n    return row\nrows = rows.map(f)\n" + RUN,
    "a Trainer of one's own": (
        NET + ROWS + "class Ranked(Trainer):\n    pass\nmodel = Net()\nRanked(model, TrainingArguments('out'), train_dataset=rows).train()\n"
    ),
    "a model of the library": NET + ROWS + RUN.replace("Net()", "AutoModel.from_pretrained('m')"),
}  # fmt: skip
KEPT = {
    "the forward takes it": NET.replace("labels=None", "rank") + ROWS + RUN,
    "a name of labels": NET + ROWS + RUN.replace("'out'", "'out', label_names=['labels', 'rank']"),
    "no row ever had it": NET + ROWS.replace("rank", "score") + RUN,
}
UNKNOWN = {
    "the option is off": NET + ROWS + RUN.replace("'out'", "'out', remove_unused_columns=False"),
    "rows from elsewhere": NET + "rows = load_dataset('csv')\n" + RUN,
    "no Trainer": NET + ROWS,
    "a forward that is not there": NET + ROWS + RUN.replace("Net()", "make_net()"),
}


@pytest.mark.parametrize(
    ("source", "expected"),
    [*((one, False) for one in KEPT.values()), *((one, None) for one in UNKNOWN.values()), *((one, True) for one in DROPPED.values())],
    ids=[*KEPT, *UNKNOWN, *DROPPED],
)  # fmt: skip
def test_a_column_that_the_forward_does_not_take_is_dropped(
    source: str, expected: bool | None, tmp_path: pathlib.Path
) -> None:
    """None where the source leaves it open."""
    assert drops("rank", write(tmp_path, {"train.py": source})) is expected
