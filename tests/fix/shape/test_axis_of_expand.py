"""A new axis in the middle is made before `expand`."""

from __future__ import annotations

import pathlib

import pytest

pytestmark = pytest.mark.torch
torch = pytest.importorskip("torch")

from tests.fix.mending import is_mended, mended  # noqa: E402

HEAD = "import torch\nn = 4\nd = torch.arange(15.0).view(5, 3)\n"


@pytest.mark.parametrize(
    ("body", "line", "equal"),
    [
        ("out = d.expand(-1, n, -1)", "out = d.unsqueeze(1).expand(-1, n, -1)", "d[:, None].expand(-1, 4, -1)"),
        (
            "out = (d * 2).expand(-1, -1, 4)",
            "out = (d * 2).unsqueeze(2).expand(-1, -1, 4)",
            "(d * 2)[:, :, None].expand(-1, -1, 4)",
        ),
        (
            "out = d[0].expand(-1, 4, 2)",
            "out = d[0].unsqueeze(1).unsqueeze(2).expand(-1, 4, 2)",
            "d[0][:, None, None].expand(-1, 4, 2)",
        ),
    ],
)
def test_the_new_axes_stand_where_no_size_stays(body: str, line: str, equal: str, tmp_path: pathlib.Path) -> None:
    """The sizes that stay are those of the tensor."""
    assert is_mended("axis_of_expand", HEAD, body, line, equal, tmp_path)


@pytest.mark.parametrize("body", ["out = d.expand(5, 4, 3)", "out = d.expand(-1, 4)"])
def test_others_stay(body: str, tmp_path: pathlib.Path) -> None:
    """Where the axes that stay are not said, or all are there."""
    assert mended("axis_of_expand", f"{HEAD}{body}\n", tmp_path) == f"{HEAD}{body}\n"
