"""A weighted count that has no derivative becomes a sum by index that has one."""

from __future__ import annotations

import pathlib

import pytest

from tests.fix.rewriting import changed_lines, rewritten

TEXT = """import torch
bag = torch.tensor([0, 0, 2])
weights = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)
total = CALL
total.pow(2).sum().backward()
"""
FORMS = {
    "keywords": ("torch.bincount(bag, weights=weights, minlength=4)", "total = weights.new_zeros(4).index_add(0, bag, weights)"),
    "positions": ("torch.bincount(bag, weights, 4)", "total = weights.new_zeros(4).index_add(0, bag, weights)"),
    "a method": ("bag.bincount(weights=weights * 1, minlength=4)", "total = (weights * 1).new_zeros(4).index_add(0, bag, weights * 1)"),
}  # fmt: skip


@pytest.mark.torch
@pytest.mark.parametrize(("call", "wanted"), FORMS.values(), ids=FORMS)
def test_the_weights_get_their_gradient(tmp_path: pathlib.Path, call: str, wanted: str) -> None:
    """Backward raises before; after, the sums are the same and the gradient is theirs."""
    torch = pytest.importorskip("torch")
    text = TEXT.replace("CALL", call)
    with pytest.raises(RuntimeError, match="bincount") as raised:
        exec(compile(text, "before", "exec"), {})  # noqa: S102
    after = rewritten(tmp_path, "index_add_for_bincount", text, "total.pow", message=str(raised.value))
    assert changed_lines(text, after) == [wanted]
    space: dict = {}
    exec(compile(after, "after", "exec"), space)  # noqa: S102
    assert space["total"].tolist() == torch.bincount(space["bag"], space["weights"].detach(), 4).tolist()
    assert space["weights"].grad.tolist() == [6.0, 6.0, 6.0]


@pytest.mark.parametrize("call", ["torch.bincount(bag, minlength=4)", "torch.bincount(bag, weights=weights)"])
def test_counts_and_open_lengths_stay(tmp_path: pathlib.Path, call: str) -> None:
    """A plain count is of integers; without a length the number of sums is that of the data."""
    text = TEXT.replace("CALL", call)
    assert (
        rewritten(
            tmp_path,
            "index_add_for_bincount",
            text,
            "total.pow",
            message="derivative for aten::bincount is not implemented",
        )
        == text
    )
