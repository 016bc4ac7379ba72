"""Constant columns are divided by 1 where NumPy warned of 0 / 0."""

from __future__ import annotations

import pathlib
from dataclasses import replace

import pytest

from explainer.fix.splice import splice
from explainer.model.incident import WarningRecord
from tests.fix.rewriting import best, diff_lines, failed, line_of, write

SCALER = "import numpy as np\n\nclass Scaler:\n    def transform(self, rows):\n        return (rows - self.mean) / self.std\n"
INVALID = "invalid value encountered in divide"


def changed(source: str, folder: pathlib.Path, message: str = INVALID) -> list[str] | None:
    """The lines that change where NumPy warned of the line that returns; None without an edit."""
    line = line_of(source, "return")
    warning = WarningRecord(category="RuntimeWarning", message=message, file=str(folder / "train.py"), line=line)
    program = write(folder, {"train.py": source})
    proposal = best("divide_by_one_for_zero", program, incident=replace(failed(), warnings=(warning,)))
    return diff_lines(source, splice(source, proposal.edits)) if proposal is not None else None


def test_a_deviation_of_zero(tmp_path: pathlib.Path) -> None:
    """The quotient of the warning, in the name under which the file knows NumPy."""
    assert changed(SCALER, tmp_path) == [
        "-        return (rows - self.mean) / self.std",
        "+        return (rows - self.mean) / np.where(self.std == 0, 1, self.std)",
    ]


@pytest.mark.parametrize(
    ("source", "message"),
    [
        (SCALER, "overflow encountered in exp"),
        (SCALER.replace("self.std", "self.count"), INVALID),
        (SCALER.replace("self.std", "np.where(self.std == 0, 1, self.std)"), INVALID),
        (SCALER.replace("/ self.std", "/ self.std / self.scale"), INVALID),
        (SCALER.replace("import numpy as np", "import torch"), INVALID),
    ],
    ids=["another warning", "a count", "cured", "two quotients", "no NumPy"],
)
def test_the_rest_stays(source: str, message: str, tmp_path: pathlib.Path) -> None:
    """What another quotient by 0 is to be is the author's to say."""
    assert changed(source, tmp_path, message) is None
