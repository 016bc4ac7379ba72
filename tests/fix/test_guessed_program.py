"""A message without a traceback, in a folder of scripts: their lines may speak for a cause, and their lack against none."""

from __future__ import annotations

import pathlib

from explainer.catalog.bundle import load_catalog
from explainer.ingest.text import read_text
from explainer.workflow import explain_incident, plan_report

MESSAGE = "RuntimeError: element 0 of tensors does not require grad and does not have a grad_fn\n"
TRACED = 'Traceback (most recent call last):\n  File "train.py", line 2, in <module>\n    print(torch)\n'


def absent(text: str, folder: pathlib.Path, *also: str) -> bool:
    """Whether it counts against a cause that no line of the program fits it."""
    catalog = load_catalog()
    (incident,) = read_text(text)
    report = plan_report(explain_incident(incident, None, catalog), catalog, str(folder), also)
    return any(one.id == "no-source-line" for finding in report.findings for one in finding.evidence)


def test_a_program_that_is_guessed_says_nothing_against(tmp_path: pathlib.Path) -> None:
    """The script that a frame or the command names is the program; another one in the folder need not be."""
    (tmp_path / "train.py").write_text("import torch\nprint(torch)\n")
    assert not absent(MESSAGE, tmp_path)
    assert absent(TRACED + MESSAGE, tmp_path)
    assert absent(MESSAGE, tmp_path, str(tmp_path / "train.py"))
