"""A Function's gradient is brought to the shape of its input, where the two shapes leave one way."""

from __future__ import annotations

import pathlib

import pytest

from tests.fix.rewriting import best, changed_lines, line_of, rewritten, write

SOURCE = """import torch
class Scale(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, w):
        ctx.save_for_backward(x, w)
        return x * w.view(1, -1, 1)
    @staticmethod
    def backward(ctx, grad):
        x, w = ctx.saved_tensors
        g = grad * x
        return grad * w.view(1, -1, 1), RETURNED
"""
CASES = {
    "summed over one axis too few": ("g.sum(dim=0)", "[16, 96]", "[16]", "g.sum(dim=(0, 2))"),
    "counted from the end": ("g.sum(-1)", "[8, 16]", "[16]", "g.sum(dim=(0, 2))"),
    "not summed at all": ("g", "[8, 16, 96]", "[16]", "g.sum(dim=(0, 2))"),
    "by a product": ("g.mT @ x", "[8, 96, 5]", "[96, 5]", "(g.mT @ x).sum(dim=0)"),
    "transposed": ("g @ x", "[4, 3]", "[3, 4]", "(g @ x).t()"),
    "two axes that may be meant": ("g", "[16, 16]", "[16]", None),
    "as many samples as channels": ("g", "[16, 16, 96]", "[16]", "g.sum(dim=(0, 2))"),
    "smaller than the input": ("g.sum()", "[]", "[16]", None),
    "kept as an axis of one": ("g.sum(0, keepdim=True)", "[1, 16, 96]", "[16]", "g.sum(0, keepdim=True).sum(dim=(0, 2))"),
}  # fmt: skip


@pytest.mark.parametrize(("returned", "got", "wanted", "written"), CASES.values(), ids=CASES)
def test_the_gradient_that_the_message_names(
    tmp_path: pathlib.Path, returned: str, got: str, wanted: str, written: str | None
) -> None:
    """Only the returned value at its index changes; nothing does where the shapes leave several ways or none."""
    source = SOURCE.replace("RETURNED", returned)
    fields = {"node": "ScaleBackward", "index": 1, "got_shape": got, "expected_shape": wanted}
    after = rewritten(tmp_path, "reduce_to_input", source, fields=fields)
    lines = [f"return grad * w.view(1, -1, 1), {written}"] if written is not None else []
    assert changed_lines(source, after) == lines
    other = {**fields, "node": "OtherBackward"}
    assert rewritten(tmp_path, "reduce_to_input", source, fields=other) == source


@pytest.mark.torch
@pytest.mark.parametrize("returned", ["g.sum(dim=0)", "g"])
def test_the_sum_is_the_gradient(tmp_path: pathlib.Path, returned: str) -> None:
    """The edited Function passes `gradcheck`."""
    torch = pytest.importorskip("torch")
    source = SOURCE.replace("RETURNED", returned)
    got = "[3, 5]" if returned != "g" else "[2, 3, 5]"
    fields = {"node": "ScaleBackward", "index": 1, "got_shape": got, "expected_shape": "[3]"}
    space: dict[str, object] = {}
    exec(rewritten(tmp_path, "reduce_to_input", source, fields=fields), space)  # noqa: S102 - the program of the test
    x = torch.randn(2, 3, 5, dtype=torch.float64, requires_grad=True)
    w = torch.randn(3, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(space["Scale"].apply, (x, w))  # type: ignore[attr-defined]


def test_a_function_of_weights_of_any_rank(tmp_path: pathlib.Path) -> None:
    """A linear layer's weight raises first; a convolution's has two axes more."""
    source = SOURCE.replace("RETURNED", "g").replace("w.view(1, -1, 1)", "w.view(-1, *[1] * (x.dim() - 1))")
    fields = {"node": "ScaleBackward", "index": 1, "got_shape": "[5, 80]", "expected_shape": "[5]"}
    after = rewritten(tmp_path, "reduce_to_input", source, fields=fields)
    wanted = ["return grad * w.view(-1, *[1] * (x.dim() - 1)), g.flatten(1).sum(dim=1)"]
    assert changed_lines(source, after) == wanted


ROWS = """import torch
class Scale(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, w):
        ctx.save_for_backward(x, w)
        return x * w.view(-1, *[1] * (x.dim() - 1))
    @staticmethod
    def backward(ctx, grad):
        x, w = ctx.saved_tensors
        g = (grad * x).sum(0) if w.numel() > 1 else (grad * x).sum()
        return grad * w.view(-1, *[1] * (x.dim() - 1)), 1.0 * g
"""


@pytest.mark.torch
def test_a_sum_over_the_rows_themselves(tmp_path: pathlib.Path) -> None:
    """One row has one weight: the sum is taken within it, and passes `gradcheck`."""
    torch = pytest.importorskip("torch")
    fields = {"node": "ScaleBackward", "index": 1, "got_shape": "[5]", "expected_shape": "[3]"}
    after = rewritten(tmp_path, "reduce_to_input", ROWS, fields=fields)
    assert changed_lines(ROWS, after) == ["g = (grad * x).flatten(1).sum(dim=1) if w.numel() > 1 else (grad * x).sum()"]
    space: dict[str, object] = {}
    exec(after, space)  # noqa: S102 - the program of the test
    x = torch.randn(3, 5, dtype=torch.float64, requires_grad=True)
    w = torch.randn(3, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(space["Scale"].apply, (x, w))  # type: ignore[attr-defined]
    other = ROWS.replace("w.view(-1, *[1] * (x.dim() - 1))", "w.view(1, -1)")
    assert rewritten(tmp_path, "reduce_to_input", other, fields=fields) == other


@pytest.mark.parametrize(("returned", "at"), [("g", "g = grad * x"), ("grad * x", "return grad")])
def test_the_line_that_computes_the_gradient(tmp_path: pathlib.Path, returned: str, at: str) -> None:
    """Where a name is returned, the statement that made it is the guilty one."""
    source = SOURCE.replace("RETURNED", returned)
    fields = {"node": "ScaleBackward", "index": "1", "got_shape": "[8, 16, 96]", "expected_shape": "[16]"}
    proposal = best("reduce_to_input", write(tmp_path, {"train.py": source}), fields=fields)
    assert proposal is not None
    assert proposal.culprit.line == line_of(source, at)
