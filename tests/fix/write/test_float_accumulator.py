"""What fractions are added to in place begins as a float."""

from __future__ import annotations

import pathlib

import pytest

from tests.fix.rewriting import changed_lines, rewritten

MASS = """import torch
def mass(labels, weights, n):
    total = torch.zeros(n, dtype=torch.long)
    return total.index_add_(0, labels, weights)
"""
LONG = {"left_type": "Long", "right_type": "Float"}
MADE = {
    "index_add_": (MASS, ["total = torch.zeros(n, dtype=weights.dtype)"]),
    "an assignment": (
        MASS.replace("return total.index_add_(0, labels, weights)", "total[labels] = weights"),
        ["total = torch.zeros(n, dtype=weights.dtype)"],
    ),
    "values that are computed later": (
        MASS.replace("labels, weights)", "labels, weights * 2)"),
        ["total = torch.zeros(n, dtype=torch.float32)"],
    ),
}


@pytest.mark.parametrize(("source", "wanted"), MADE.values(), ids=MADE)
def test_what_is_written_by_index(tmp_path: pathlib.Path, source: str, wanted: list[str]) -> None:
    """The dtype of the values, where these have a name by then."""
    after = rewritten(tmp_path, "float_accumulator", source, source.splitlines()[-1].strip(), fields=LONG)
    assert [one for one in changed_lines(source, after) if "zeros" in one] == wanted


def test_a_float_that_gets_integers(tmp_path: pathlib.Path) -> None:
    """The other way round nothing is cut off."""
    fields = {"left_type": "Float", "right_type": "Long"}
    assert rewritten(tmp_path, "float_accumulator", MASS, "return total", fields=fields) == MASS
