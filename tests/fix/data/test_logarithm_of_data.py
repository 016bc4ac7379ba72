"""Where data became minus infinity: the logarithm, and the option that chose it; nothing is edited."""

from __future__ import annotations

import pathlib
from dataclasses import replace

import pytest

from explainer.catalog.bundle import load_catalog
from explainer.fix.codemod import Context, find_codemod
from explainer.model.incident import ExceptionRecord, Fact, Frame, Incident, WarningRecord
from explainer.workflow import explain_incident, plan_report
from tests.fix.rewriting import failed, write

HEARD = (Fact(name="traced_bad_input", value="logarithm"),)
UNHEARD = (Fact(name="traced_bad_input", value="minus infinity"),)
SAYS = "divide by zero encountered in log"
TABLE = """import json
import numpy as np
SCALES = {"none": lambda v: v, "log": np.log}
with open("run.json") as f:
    cfg = json.load(f)
rows = np.loadtxt("rows.txt")
scale = SCALES[cfg["target"]["scale"]]
with np.errstate(divide="ignore"):
    y = CALL
"""
RUN = '{\n  "target": {"column": "sold",\n             "scale": "log"}\n}\n'


def lines(
    folder: pathlib.Path, incident: Incident, sources: dict[str, str], *, at: tuple[str, int] | None = None
) -> list[tuple[str, int | None]]:
    """The files and lines that are named, likeliest first; `at` is where NumPy warned."""
    program = write(folder, sources)
    warning = (
        (WarningRecord(category="RuntimeWarning", message=SAYS, file=str(folder / at[0]), line=at[1]),) if at else ()
    )
    context = Context(program=program, incident=replace(incident, warnings=warning))
    found = sorted(find_codemod("logarithm_of_data")(context), key=lambda one: -one.belief)
    assert not any(one.edits for one in found)
    return [(pathlib.Path(one.culprit.file).name, one.culprit.line) for one in found]


@pytest.mark.parametrize(
    "call",
    ['SCALES[cfg["target"]["scale"]](rows)', "scale(rows)", 'SCALES.get(cfg["target"]["scale"])(rows)', "rows.apply(scale)",
     'getattr(np, cfg["target"]["scale"])(rows)'],
)  # fmt: skip
def test_the_option_that_chose_it_leads(tmp_path: pathlib.Path, call: str) -> None:
    """However the function is taken out of its table."""
    (tmp_path / "run.json").write_text(RUN)
    found = lines(
        tmp_path, replace(failed(), facts=HEARD), {"train.py": TABLE.replace("CALL", call)}, at=("train.py", 9)
    )
    assert found == [("run.json", 3), ("train.py", 9)]


@pytest.mark.parametrize("call", ["np.log(rows)", "rows.map(np.log)", "np.sum(np.log(rows))"])
def test_the_logarithm_as_it_is_written(tmp_path: pathlib.Path, call: str) -> None:
    found = lines(
        tmp_path, replace(failed(), facts=HEARD), {"train.py": TABLE.replace("CALL", call)}, at=("train.py", 9)
    )
    assert found == [("train.py", 9)]


def test_a_library_that_warned_in_its_own_file(tmp_path: pathlib.Path) -> None:
    """NumPy warns at the line of pandas that calls it."""
    incident = replace(failed(), facts=HEARD)
    library = str(tmp_path / "site-packages/pandas/core/arraylike.py")
    source = "import numpy as np\nimport pandas as pd\nframe = pd.read_csv('a.csv')\ny = np.log(frame['y'])\n"
    warning = WarningRecord(category="RuntimeWarning", message=SAYS, file=library, line=399)
    context = Context(program=write(tmp_path, {"train.py": source}), incident=replace(incident, warnings=(warning,)))
    assert [one.culprit.line for one in find_codemod("logarithm_of_data")(context)] == [4]


UNSEEN = """import polars as pl
import torch
from torch import nn
frame = pl.read_csv("rows.csv").with_columns(pl.col("y").log())
class Model(nn.Module):
    def forward(self, x):
        return self.head(x).exp().log()
def nll_loss(p, y):
    return -p.gather(1, y).log().mean()
safe = torch.log(frame["n"] + 1)
floor = frame["n"].clip(1).log()
logger.log({"loss": 1})
"""


def test_what_nothing_has_heard_is_looked_for(tmp_path: pathlib.Path) -> None:
    """Not in a network or a loss, nor what is kept from 0; and only of data that holds minus infinity."""
    assert lines(tmp_path, replace(failed(), facts=UNHEARD), {"train.py": UNSEEN}) == [("train.py", 4)]
    assert lines(tmp_path, failed(), {"train.py": UNSEEN}) == []
    nan = (Fact(name="traced_bad_input", value="data"),)
    assert lines(tmp_path, replace(failed(), facts=nan), {"train.py": UNSEEN}) == []


def test_a_table_that_lacks_numbers(tmp_path: pathlib.Path) -> None:
    """Data that is NaN beside a logarithm of 0 may have been so in its file."""
    facts = (Fact(name="traced_bad_input", value="data"), Fact(name="traced_data_after_logarithm", value="log"))
    source = TABLE.replace("CALL", "np.log(rows)").replace("rows.txt", "rows.csv")
    assert lines(tmp_path, replace(failed(), facts=facts), {"train.py": source}, at=("train.py", 9))
    (tmp_path / "rows.csv").write_text("\n".join(["x,y", *(f"{number},{number}.5" for number in range(9)), "9,"]))
    assert lines(tmp_path, replace(failed(), facts=facts), {"train.py": source}, at=("train.py", 9)) == []


@pytest.mark.parametrize(
    ("facts", "says", "cause", "line"),
    [
        (HEARD, SAYS, "nan/log-of-zero", 3),
        (UNHEARD, None, "nan/log-of-zero", 3),
        ((Fact(name="traced_bad_input", value="data"),), None, "nan/bad-input", 2),
        ((Fact(name="traced_bad_input", value="data"),), "invalid value encountered in log", "nan/bad-input", 3),
    ],
    ids=["heard", "unheard", "NaN", "of what is negative"],
)
def test_the_cause_that_leads(
    tmp_path: pathlib.Path, facts: tuple[Fact, ...], says: str | None, cause: str, line: int
) -> None:
    source = "import numpy as np\nrows = np.load('rows.npy')\ny = np.log(rows)\nraise ValueError('loss is inf')\n"
    write(tmp_path, {"train.py": source})
    path = str(tmp_path / "train.py")
    record = ExceptionRecord(
        type="ValueError", message="loss is not finite: inf", frames=(Frame(file=path, line=4, code="raise"),)
    )
    warnings = (WarningRecord(category="RuntimeWarning", message=says, file=path, line=3),) if says else ()
    catalog = load_catalog()
    incident = Incident(exceptions=(record,), warnings=warnings, facts=facts)
    finding = plan_report(explain_incident(incident, None, catalog), catalog, str(tmp_path)).findings[0]
    assert (finding.cause, finding.culprits[0].line) == (cause, line)
    assert not any(fix.changes for fix in finding.fixes)
