"""Parts of a date that count from 1 become codes from 0 where the program gives them as many rows."""

from __future__ import annotations

import pathlib

import pytest

from tests.fix.rewriting import diff_lines, rewritten

SAID = "index out of range in self"
CARDINALITY = 'ROWS = {"month": 12, "weekday": 7, "hour": 24}\n'
HEAD = "import pandas as pd\nimport torch\nfrom torch import nn\n"
TABLES = "tables = nn.ModuleDict({n: nn.Embedding(r, 4) for n, r in ROWS.items()})\n"
CODES = 'codes = {"month": index.month, "weekday": index.dayofweek, "hour": index.hour}\n'
WRONG = {
    "a dictionary": (HEAD + CARDINALITY + TABLES + CODES,
                     ['+codes = {"month": index.month - 1, "weekday": index.dayofweek, "hour": index.hour}']),
    "a row": (HEAD + CARDINALITY + TABLES + "row = [d.month, d.hour]\n", ["+row = [d.month - 1, d.hour]"]),
    "a column of a table": (HEAD + "self.month_table = nn.Embedding(12, 4)\nframe['month'] = frame.date.dt.month\n",
                            ["+frame['month'] = frame.date.dt.month - 1"]),
    "quarters": (HEAD + 'ROWS = {"quarter": 4}\ncodes = {"quarter": d.quarter}\n', ['+codes = {"quarter": d.quarter - 1}']),
}  # fmt: skip
RIGHT = {
    "a row more": HEAD + CARDINALITY.replace("12", "13") + CODES,
    "counted from 0": HEAD + CARDINALITY + CODES.replace("index.month", "index.month - 1"),
    "the sine of it": HEAD + CARDINALITY + "wave = np.sin(2 * np.pi * index.month / 12)\n",
    "weekdays": HEAD + 'ROWS = {"weekday": 7}\ncodes = {"weekday": index.dayofweek}\n',
    "no dates": CARDINALITY + CODES,
    "rows of something else": HEAD + 'ROWS = {"user": 12}\n' + CODES,
}


@pytest.mark.parametrize("source", RIGHT.values(), ids=RIGHT)
def test_codes_that_fit_stay(source: str, tmp_path: pathlib.Path) -> None:
    """What counts from 0, what is no code, and what has rows enough."""
    assert rewritten(tmp_path, "count_date_from_zero", source, message=SAID) == source


@pytest.mark.parametrize(("source", "added"), WRONG.values(), ids=WRONG)
def test_codes_count_from_zero(source: str, added: list[str], tmp_path: pathlib.Path) -> None:
    """A second time, and for another failure, there is nothing to do."""
    after = rewritten(tmp_path, "count_date_from_zero", source, message=SAID)
    assert [one for one in diff_lines(source, after) if one[0] == "+"] == added
    assert rewritten(tmp_path, "count_date_from_zero", after, message=SAID) == after
    assert rewritten(tmp_path, "count_date_from_zero", source) == source
