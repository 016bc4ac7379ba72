"""Where data that is not finite came in: the line is named, and nothing is edited."""

from __future__ import annotations

import pathlib
from dataclasses import replace

import pytest

from explainer.catalog.bundle import load_catalog
from explainer.fix.codemod import Context, find_codemod
from explainer.model.incident import ExceptionRecord, Fact, Frame, Incident, WarningRecord
from explainer.workflow import explain_incident, plan_report
from tests.fix.rewriting import failed, write

SOURCE = """import json
import pandas as pd
import torch
config = json.load(open("config.json"))
frame = pd.read_csv("rows.csv")
loss = torch.tensor(frame["y"].to_numpy()).mean()
if not torch.isfinite(loss):
    raise ValueError("loss is nan")
"""
TRACED = (Fact(name="traced_bad_input", value="data"),)


def lines(folder: pathlib.Path, incident: Incident, source: str = SOURCE) -> list[int | None]:
    context = Context(program=write(folder, {"train.py": source}), incident=incident)
    return [one.culprit.line for one in find_codemod("data_source")(context)]


def test_only_what_was_traced(tmp_path: pathlib.Path) -> None:
    """The read of the data, not that of the settings; nothing where no tracer saw the data."""
    assert lines(tmp_path, failed()) == []
    assert lines(tmp_path, replace(failed(), facts=TRACED)) == [5]


def test_what_the_live_program_holds(tmp_path: pathlib.Path) -> None:
    """A tensor of data that holds NaN where the program failed says as much as a tracer."""
    assert lines(tmp_path, replace(failed(), facts=(Fact(name="live_bad_data", value="x in fit"),))) == [5]


def test_what_was_finite_when_it_was_read(tmp_path: pathlib.Path) -> None:
    """An operation of the program made it: a logarithm of negative numbers in a transform."""
    facts = (Fact(name="live_bad_data", value="x in fit"), Fact(name="traced_nan_without_graph", value="log1p"))
    assert lines(tmp_path, replace(failed(), facts=facts)) == []
    assert lines(tmp_path, replace(failed(), facts=(*facts, *TRACED))) == [5]


def test_settings_that_a_function_reads_and_data_that_settings_name(tmp_path: pathlib.Path) -> None:
    """What reads a table reads data, wherever its name comes from; a function named for settings reads settings."""
    source = """import json, pathlib
import pandas as pd
def load_config(name="run.json"):
    return json.loads(pathlib.Path(name).read_text())
frame = pd.read_csv(load_config()["file"])
"""
    assert lines(tmp_path, replace(failed(), facts=TRACED), source) == [5]


@pytest.mark.parametrize(
    "made",
    [
        'float(text or "nan")',
        'float(text) if text else float("nan")',
        "np.nan if not text else float(text)",
        'pd.to_numeric(text, errors="coerce")',
    ],
)
def test_what_makes_nan_of_an_empty_cell_comes_first(tmp_path: pathlib.Path, made: str) -> None:
    """The read follows it; another value for an empty cell is no NaN."""
    source = SOURCE.replace(
        "import torch\n", f"import torch\nimport numpy as np\ndef number(text):\n    return {made}\n"
    )
    incident = replace(failed(), facts=TRACED)
    assert lines(tmp_path, incident, source) == [6, 8]
    assert lines(tmp_path, incident, source.replace(made, "float(text or 0)")) == [8]


def test_what_makes_nan_where_a_number_cannot_be_read(tmp_path: pathlib.Path) -> None:
    made = (
        "def number(text):\n    try:\n        return float(text)\n    except ValueError:\n        return float('nan')\n"
    )
    assert lines(tmp_path, replace(failed(), facts=TRACED), f"{made}{SOURCE}") == [5, 10]


def test_the_cell_leads(tmp_path: pathlib.Path) -> None:
    """The first cell without a number in a table beside the program, then what reads it."""
    rows = [f"{number},{number}.5" for number in range(9)]
    (tmp_path / "rows.csv").write_text("\n".join(["x,y", *rows, "9,", "10,n/a"]))
    context = Context(program=write(tmp_path, {"train.py": SOURCE}), incident=replace(failed(), facts=TRACED))
    found = sorted(find_codemod("data_source")(context), key=lambda one: -one.belief)
    assert [(pathlib.Path(one.culprit.file).name, one.culprit.line) for one in found] == [
        ("rows.csv", 11), ("rows.csv", 12), ("train.py", 5),
    ]  # fmt: skip
    assert [(one.culprit.code, one.culprit.before, one.culprit.after) for one in found[:2]] == [("", (), ())] * 2
    assert found[0].culprit.why == "holds nothing in the column `y`, which is of numbers, as in 1 more"


def test_the_line_leads_and_nothing_is_edited(tmp_path: pathlib.Path) -> None:
    """A proposal without edits gives the finding its line, and no patch."""
    write(tmp_path, {"train.py": SOURCE})
    frame = Frame(file=str(tmp_path / "train.py"), line=8, code='raise ValueError("loss is nan")')
    record = ExceptionRecord(type="ValueError", message="loss is nan", frames=(frame,))
    catalog = load_catalog()
    report = plan_report(
        explain_incident(Incident(exceptions=(record,), facts=TRACED), None, catalog), catalog, str(tmp_path)
    )
    finding = report.findings[0]
    assert finding.cause == "nan/bad-input"
    assert finding.culprits[0].line == 5
    assert not any(fix.changes for fix in finding.fixes)


@pytest.mark.parametrize(
    ("line", "cause"), [(4, "nan/division-by-zero"), (5, "nan/bad-input")], ids=["of the data", "of a metric"]
)
def test_a_warning_of_a_division_is_one_of_the_data(tmp_path: pathlib.Path, line: int, cause: str) -> None:
    """NumPy may have warned of something else, as of a metric that found nothing."""
    source = "import numpy as np\nframe = np.load('rows.npy')\nstd = frame.std(0)\nscaled = frame / std\nprecision = hits / found\nraise ValueError('loss is nan')\n"
    write(tmp_path, {"train.py": source})
    frame = Frame(file=str(tmp_path / "train.py"), line=6, code="raise ValueError('loss is nan')")
    record = ExceptionRecord(type="ValueError", message="loss is nan", frames=(frame,))
    message = "invalid value encountered in divide"
    warning = WarningRecord(category="RuntimeWarning", message=message, file=str(tmp_path / "train.py"), line=line)
    incident = Incident(exceptions=(record,), warnings=(warning,), facts=TRACED)
    catalog = load_catalog()
    report = plan_report(explain_incident(incident, None, catalog), catalog, str(tmp_path))
    assert report.findings[0].cause == cause


COMPUTED = """import numpy as np
import pandas as pd
frame = pd.read_csv("rows.csv")
y = VALUE
"""


@pytest.mark.parametrize(
    ("value", "operation", "found"),
    [
        ('np.log(frame["y"])', "log", [4, 3]),
        ('frame["y"] / frame["n"]', "divide", [4, 3]),
        ('np.where(frame["y"] > 0, np.log(frame["y"]), 0.0)', "log", [3]),
        ('frame["y"]', "log", [3]),
    ],
)
def test_what_numpy_warned_of_comes_before_the_read(
    tmp_path: pathlib.Path, value: str, operation: str, found: list[int]
) -> None:
    """The logarithm or division itself; not one whose infinities are replaced at once."""
    warning = WarningRecord(
        category="RuntimeWarning", message=f"divide by zero encountered in {operation}", file="train.py", line=4
    )
    incident = replace(failed(), facts=TRACED, warnings=(replace(warning, file=str(tmp_path / "train.py")),))
    assert lines(tmp_path, incident, COMPUTED.replace("VALUE", value)) == found
