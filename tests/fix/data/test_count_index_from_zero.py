"""Codes that count from 1 are looked up in rows that count from 0."""

from __future__ import annotations

from dataclasses import replace

import pytest

from explainer.fix.splice import splice
from tests.fix.rewriting import best, changed_lines, failed, line_of, rewritten, write

HEAD = """import datetime
import numpy as np
import pandas as pd
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, Dataset, TensorDataset

ITEMS = 40
rng = np.random.default_rng(0)
days = [datetime.date(2024, 1, 1) + datetime.timedelta(days=i) for i in range(400)]
"""
NET = """

class Net(nn.Module):
    def __init__(self, rows=12):
        super().__init__()
        self.table = nn.Embedding({rows})
        self.other = nn.Embedding(7, 4)
        self.bias = nn.Parameter(torch.zeros(12, 4))

    def forward(self, codes):
        {read}


net = Net()
"""
AT = "return self."


def program(data: str, call: str = "net(codes)", read: str = "return self.table(codes)", rows: str = "12, 4") -> str:
    """A program that makes codes and looks them up."""
    return f"{HEAD}{data}\n{NET.format(rows=rows, read=read)}out = {call}\n"


MONTHS = "codes = torch.tensor([day.month for day in days])"
RIGHT = {
    "rows enough": program(MONTHS, rows="13, 4"),
    "counted from 0": program("codes = torch.tensor([day.month - 1 for day in days])"),
    "shifted already": program(MONTHS, read="return self.table(codes - 1)"),
    "wrapped": program(MONTHS, read="return self.table(codes % 12)"),
    "weekdays from 0": program("codes = torch.tensor([day.weekday() for day in days])", rows="7, 4"),
    "another table size": program(MONTHS, rows="10, 4"),
    "codes that are not known": program("codes = torch.load('codes.pt')"),
    "drawn from 0": program("codes = torch.randint(0, 12, (9,))"),
    "an attribute of the program's own": program(
        "class Day:\n    def __init__(self):\n        self.month = torch.load('m.pt')\n\n\nday = Day()\ncodes = day.month"
    ),
    "another lookup of the table from 0": program(
        MONTHS + "\nzero = torch.randint(0, 12, (9,))", "net(codes) + net.table(zero)"
    ),
    "the other column": program(
        "codes = torch.from_numpy(np.stack([[d.month for d in days], [d.weekday() for d in days]], axis=-1))",
        read="return self.other(codes[:, 1])",
    ),
}
BUCKETS = "edges = [0.5, 1.0, 2.0]\ncodes = torch.bucketize(torch.rand(9) * 4, torch.tensor(edges))"
SPACED = "BINS = 8\ncodes = np.digitize(rng.random(9), np.linspace(0, 1, BINS))"
RIGHT |= {
    "a row for the last bucket": program(BUCKETS, rows="len(edges) + 1, 4"),
    "inner edges only": program(SPACED.replace("BINS))", "BINS + 1)[1:-1])"), rows="BINS, 4"),
    "other edges": program(BUCKETS, rows="len(days), 4"),
}
SHIFTED = ["return self.table(codes - 1)"]
DATASET = """class Days(Dataset):
    def __init__(self, dates):
        month = dates.astype("datetime64[M]").astype(int) % 12 + 1
        weekday = (dates.astype(int) + 3) % 7
        self.codes = torch.from_numpy(np.stack([month, weekday], axis=-1))
        self.y = torch.zeros(len(dates))

    def __len__(self):
        return len(self.y)

    def __getitem__(self, i):
        row = self.codes[i]
        return row, self.y[i]


loader = DataLoader(Days(np.datetime64("2024-01-01") + np.arange(400)), batch_size=8)"""
WRONG = {
    "months of dates": (program(MONTHS), SHIFTED),
    "months by default argument": (program(MONTHS, rows="rows, 4"), SHIFTED),
    "a column of a data set": (
        program(DATASET, "[net(codes) for codes, y in loader]", "return self.table(codes[:, 0]) + self.other(codes[:, 1])"),
        ["return self.table(codes[:, 0] - 1) + self.other(codes[:, 1])"],
    ),
    "an entry of a row in the data set": (
        program(
            "rows = [(d.toordinal(), d.isoweekday()) for d in days]\ncodes = torch.tensor([[d.month, d.isoweekday()] for d in days])",
            read="return self.other(codes[:, 1])",
        ),
        ["return self.other(codes[:, 1] - 1)"],
    ),
    "both columns": (
        program(
            "codes = torch.tensor([[d.month, d.isoweekday()] for d in days])",
            read="return self.table(codes[:, 0]) + self.other(codes[:, 1])",
        ),
        ["return self.table(codes[:, 0] - 1) + self.other(codes[:, 1] - 1)"],
    ),
    "draws up to a constant": (
        program("codes = torch.randint(1, ITEMS + 1, (9, 5))", rows="ITEMS, 4"),
        SHIFTED,
    ),
    "draws of NumPy": (program("codes = torch.from_numpy(rng.integers(1, 13, size=9))"), SHIFTED),
    "a frame's column": (
        program(
            "df = pd.DataFrame({'date': days})\ndf['m'] = df['date'].dt.month\ncodes = torch.tensor(df['m'].values)"
        ),
        SHIFTED,
    ),
    "rows of a parameter": (program(MONTHS, read="return self.bias[codes]"), ["return self.bias[codes - 1]"]),
    "one-hot": (
        program(MONTHS, read="return self.bias.sum() + F.one_hot(codes, num_classes=12)"),
        ["return self.bias.sum() + F.one_hot(codes - 1, num_classes=12)"],
    ),
    "padding in row 0": (
        program("codes = torch.randint(1, ITEMS + 1, (9, 5))", rows="ITEMS, 4, padding_idx=0"),
        ["self.table = nn.Embedding(ITEMS + 1, 4, padding_idx=0)"],
    ),
    "buckets of edges": (program(BUCKETS, rows="len(edges), 4"), ["self.table = nn.Embedding(len(edges) + 1, 4)"]),
    "buckets of edges that are spaced": (program(SPACED, rows="BINS, 4"), ["self.table = nn.Embedding(BINS + 1, 4)"]),
    "zeros that fill up": (
        program(
            "codes = nn.utils.rnn.pad_sequence([torch.randint(1, 13, (n,)) for n in (3, 5)], batch_first=True)"
        ),
        ["self.table = nn.Embedding(13, 4)"],
    ),
}  # fmt: skip


@pytest.mark.parametrize("source", RIGHT.values(), ids=RIGHT)
def test_codes_that_fit_stay(tmp_path, source: str) -> None:
    """Codes from 0, larger tables, and codes whose range does not show are left alone."""
    assert rewritten(tmp_path, "count_index_from_zero", source, AT) == source


@pytest.mark.parametrize(("source", "wanted"), WRONG.values(), ids=WRONG)
def test_codes_count_from_zero(tmp_path, source: str, wanted: list[str]) -> None:
    """The lookup is shifted, or the table gets a row for its padding; a second time nothing is left to do."""
    after = rewritten(tmp_path, "count_index_from_zero", source, AT)
    assert changed_lines(source, after) == wanted
    assert rewritten(tmp_path, "count_index_from_zero", after, AT) == after


@pytest.mark.torch
@pytest.mark.parametrize("name", ["draws up to a constant", "draws of NumPy", "zeros that fill up"])
def test_the_repaired_program_runs(tmp_path, name: str) -> None:
    """Before, a row is asked for that is not there; after, every lookup has its row."""
    pytest.importorskip("torch")
    source = WRONG[name][0].replace("import pandas as pd\n", "")
    source = source.replace("(9,", "(900,").replace("size=9", "size=900").replace("(3, 5)", "(300, 500)")
    after = rewritten(tmp_path, "count_index_from_zero", source, AT)
    with pytest.raises(IndexError):
        exec(source, {"__name__": "train"})  # noqa: S102 - the program of this test
    exec(after, {"__name__": "train"})  # noqa: S102 - the program of this test


@pytest.mark.parametrize(("is_cured", "lines"), [(True, [7, 3]), (False, [3, 7])], ids=["cured", "not cured"])
def test_the_lookup_leads_where_it_is_cured(tmp_path, is_cured: bool, lines: list[int]) -> None:
    """The line that made the index comes first only where no edit stands at the lookup."""
    from explainer.fix.clue.trace import traced_first
    from explainer.fix.codemod import Context
    from explainer.model.finding import Culprit
    from explainer.model.incident import Incident
    from explainer.model.trace import INDEX, TracedLine

    loaded = write(tmp_path, {"train.py": HEAD})
    (path,) = loaded.files
    seen = TracedLine(kind=INDEX, operation="embedding", file="train.py", line=3, says="makes the integers")
    context = Context(program=loaded, incident=Incident(traced=(seen,)))
    known = {(path, 7): Culprit(file=path, line=7, why="looks up")}
    found = traced_first(known, "shape/index-out-of-range", context, is_cured=is_cured)
    assert [line for _, line in found] == lines


TABLES = """import torch
from torch import nn


class Banding:
    def __init__(self, edges):
        self.edges = {name: torch.tensor(values) for name, values in edges.items()}

    def sizes(self):
        return {name: len(values) for name, values in self.edges.items()}

    def __call__(self, columns):
        return {name: torch.bucketize(columns[name], values) for name, values in self.edges.items()}


class Net(nn.Module):
    def __init__(self, sizes):
        super().__init__()
        self.factors = nn.ModuleDict({name: nn.Embedding(n, 3) for name, n in sizes.items()})

    def forward(self, bands):
        return torch.cat([table(bands[name]) for name, table in self.factors.items()], 1)


banding = Banding({"age": [20.0, 40.0], "miles": [10.0, 30.0, 50.0]})
net = Net(banding.sizes())
net(banding({"age": torch.tensor([5.0, 50.0]), "miles": torch.tensor([5.0, 20.0])}))
"""


@pytest.mark.torch
def test_tables_that_a_trace_saw_too_short(tmp_path) -> None:
    """The tables of a dictionary are made by one expression: each gets the row for its last bucket."""
    pytest.importorskip("torch")
    import gradfix

    (tmp_path / "train.py").write_text(TABLES)
    with pytest.raises(IndexError), gradfix.trace() as seen:
        exec(compile(TABLES, str(tmp_path / "train.py"), "exec"), {})
    at = line_of(TABLES, "torch.cat([table")
    incident = replace(failed({"train.py": at}), traced=seen.lines)
    found = best("count_index_from_zero", write(tmp_path, {"train.py": TABLES}), incident=incident)
    after = splice(TABLES, found.edits)
    assert changed_lines(TABLES, after) == [
        "self.factors = nn.ModuleDict({name: nn.Embedding(n + 1, 3) for name, n in sizes.items()})"
    ]
    exec(after, {})
    plain = best("count_index_from_zero", write(tmp_path, {"train.py": TABLES}), incident=failed({"train.py": at}))
    assert plain is None
