"""`torch.hypot` gives way to a norm, whose gradient at 0 is 0."""

from __future__ import annotations

import pathlib

import pytest

from tests.fix.rewriting import diff_lines, rewritten

HEAD = "import math\nimport torch\n\n\ndef speed(wind):\n"
WRONG = {
    "a function": (
        "return torch.hypot(wind[:, 0], wind[:, 1])",
        "return torch.linalg.vector_norm(torch.stack([wind[:, 0], wind[:, 1]]), dim=0)",
    ),
    "a method": (
        "return wind[:, 0].hypot(wind[:, 1])",
        "return torch.linalg.vector_norm(torch.stack([wind[:, 0], wind[:, 1]]), dim=0)",
    ),
}


@pytest.mark.parametrize(("body", "wanted"), WRONG.values(), ids=WRONG)
def test_the_norm_is_taken(body: str, wanted: str, tmp_path: pathlib.Path) -> None:
    """Of both sides; a number of Python's stays."""
    source = f"{HEAD}    {body}\n"
    after = rewritten(tmp_path, "norm_for_hypot", source, "return")
    assert diff_lines(source, after)[1:] == [f"+    {wanted}"]
    number = source.replace(body, "return math.hypot(3.0, 4.0)")
    assert rewritten(tmp_path, "norm_for_hypot", number, "return") == number


@pytest.mark.torch
def test_the_values_are_the_same_and_the_gradient_is_finite() -> None:
    """Where both are 0, too."""
    torch = pytest.importorskip("torch")
    wind = torch.tensor([[0.0, 0.0], [3.0, 4.0]], requires_grad=True)
    ours = torch.linalg.vector_norm(torch.stack([wind[:, 0], wind[:, 1]]), dim=0)
    theirs = torch.hypot(wind[:, 0], wind[:, 1])
    assert torch.equal(ours, theirs)
    (wanted,) = torch.autograd.grad(theirs.sum(), wind)
    (got,) = torch.autograd.grad(ours.sum(), wind)
    assert wanted[0].isnan().all()
    assert got.tolist() == [[0.0, 0.0], pytest.approx(wanted[1].tolist())]
