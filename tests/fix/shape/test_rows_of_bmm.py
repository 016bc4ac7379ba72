"""Rows that `torch.bmm` takes for no batch of matrices; each program runs, fails, is mended and runs."""

from __future__ import annotations

import pathlib

import pytest

pytestmark = pytest.mark.torch
torch = pytest.importorskip("torch")

from tests.fix.mending import is_mended, mended  # noqa: E402

HEAD = """import torch
torch.manual_seed(0)
docs, query, weights, table = torch.rand(3, 5, 4), torch.rand(3, 4), torch.rand(3, 5), torch.rand(4, 2)
"""
WRONG = {
    "a query of each": (
        "out = torch.bmm(docs, query)", "out = torch.bmm(docs, query.unsqueeze(-1)).squeeze(-1)", "(docs * query[:, None]).sum(2)",
    ),
    "squeezed already": (
        "out = docs.bmm(query).squeeze(-1)", "out = torch.bmm(docs, query.unsqueeze(-1)).squeeze(-1)", "(docs * query[:, None]).sum(2)",
    ),
    "weights of each": (
        "out = torch.bmm(weights, docs)", "out = torch.bmm(weights.unsqueeze(1), docs).squeeze(1)", "(weights[..., None] * docs).sum(1)",
    ),
    "behind the operator": (
        "out = docs @ query", "out = (docs @ query.unsqueeze(-1)).squeeze(-1)", "(docs * query[:, None]).sum(2)",
    ),
    "a matrix of what was computed": (
        "out = (docs + 2) @ (query + 1)", "out = ((docs + 2) @ (query + 1).unsqueeze(-1)).squeeze(-1)", "((docs + 2) * (query + 1)[:, None]).sum(2)",
    ),
    "two matrices": ("out = torch.bmm(query, table)", "out = torch.mm(query, table)", "query @ table"),
}  # fmt: skip


@pytest.mark.parametrize(("body", "line", "equal"), WRONG.values(), ids=WRONG)
def test_each_sample_has_its_product(tmp_path: pathlib.Path, body: str, line: str, equal: str) -> None:
    """Without the axis that was put in."""
    assert is_mended("rows_of_bmm", HEAD, body, line, equal, tmp_path)


def test_sizes_that_do_not_fit_stay(tmp_path: pathlib.Path) -> None:
    """Which axis is meant does not show."""
    source = f"{HEAD}out = torch.bmm(docs, weights)\n"
    assert mended("rows_of_bmm", source, tmp_path) == source
