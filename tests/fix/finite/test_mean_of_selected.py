"""The mean of what a mask selects, which a trace saw make the first NaN."""

from __future__ import annotations

import pathlib
from dataclasses import replace

import pytest

from explainer.fix.splice import splice
from explainer.model.trace import NOT_FINITE, TracedLine
from tests.fix.rewriting import best, changed_lines, failed, write

HEAD = "import torch\n\nhard = torch.rand(4) - 1\n"
WAYS = {
    "compared": ("loss = hard[hard > 0].mean()", "loss = hard[hard > 0].sum() / max(hard[hard > 0].numel(), 1)"),
    "a part": ("loss = 2 * hard[mask].mean() + 1", "loss = 2 * (hard[mask].sum() / max(hard[mask].numel(), 1)) + 1"),
    "one row": ("loss = hard[0].mean()", None),
    "of all": ("loss = hard.mean()", None),
    "along an axis": ("loss = hard[mask].mean(0)", None),
}


@pytest.mark.parametrize(("line", "wanted"), WAYS.values(), ids=WAYS)
def test_counted_as_one_at_least(line: str, wanted: str | None, tmp_path: pathlib.Path) -> None:
    """Where something is selected it is the mean as before; what selects nothing is 0."""
    source = f"{HEAD}{line}\n"
    program = write(tmp_path, {"train.py": source})
    traced = TracedLine(kind=NOT_FINITE, operation="mean", file=str(tmp_path / "train.py"), line=4)
    found = best("mean_of_selected", program, incident=replace(failed(), traced=(traced,)))
    after = splice(source, found.edits) if found is not None else source
    assert changed_lines(source, after or "") == ([wanted] if wanted else [])
    assert best("mean_of_selected", program) is None  # nothing was traced
