"""A constant follows the dtype of the tensor that it meets in an operation that does not promote."""

from __future__ import annotations

import pathlib

import pytest

from tests.fix.rewriting import changed_lines, rewritten

SAID = "expected m1 and m2 to have the same dtype, but got: double != float"
HEAD = """import torch
from torch import nn
import torch.nn.functional as F
BANDS = torch.tensor([[1.0, 2.0], [0.5, 0.25]]) * 3.0
def features(x):
    return {use}
"""
TAIL = """torch.set_default_dtype(torch.float64)
print(features(torch.randn(3, 2)))
"""
USES = {
    "a product": ("x @ BANDS", "return x @ BANDS.to(x.dtype)"),
    "on the left": ("(BANDS @ x.T).sin()", "return (BANDS.to(x.dtype) @ x.T).sin()"),
    "transposed": ("x @ BANDS.T", "return x @ BANDS.T.to(x.dtype)"),
    "a function": ("F.linear(x, BANDS)", "return F.linear(x, BANDS.to(x.dtype))"),
    "a method": ("x.matmul(BANDS).cos()", "return x.matmul(BANDS.to(x.dtype)).cos()"),
    "an equation": ('torch.einsum("bi,ij->bj", x, BANDS)', 'return torch.einsum("bi,ij->bj", x, BANDS.to(x.dtype))'),
}
MODULE = """import torch
from torch import nn
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = torch.linspace(0.1, 1.0, 4)
        self.layer = nn.Linear(4, 4)
    def forward(self, x):
        return self.layer(x) @ self.scale
"""


@pytest.mark.torch
@pytest.mark.parametrize(("use", "line"), USES.values(), ids=USES)
def test_the_constant_is_cast(use: str, line: str, tmp_path: pathlib.Path) -> None:
    """The program fails as it is and runs with the edit; a second time nothing is left to do."""
    torch = pytest.importorskip("torch")
    source = HEAD.format(use=use) + TAIL
    after = rewritten(tmp_path, "cast_constant", source, at="return", message=SAID)
    assert changed_lines(source, after) == [line]
    try:
        with pytest.raises(RuntimeError, match="dtype|scalar type"):
            exec(source, {"__name__": "train"})  # noqa: S102 - the program of the test
        torch.set_default_dtype(torch.float32)
        exec(after, {"__name__": "train"})  # noqa: S102 - the program of the test
    finally:
        torch.set_default_dtype(torch.float32)


def test_a_plain_attribute_of_a_module(tmp_path: pathlib.Path) -> None:
    """What `double()` does not reach meets what a layer made."""
    source = MODULE.replace("return self.layer(x) @", "h = self.layer(x)\n        return h @")
    after = rewritten(tmp_path, "cast_constant", source, at="return h @", message=SAID)
    assert changed_lines(source, after) == ["return h @ self.scale.to(h.dtype)"]


@pytest.mark.parametrize(
    "source",
    [
        HEAD.format(use="x @ BANDS").replace("torch.tensor([[1.0, 2.0], [0.5, 0.25]]) * 3.0", "nn.Parameter(torch.ones(2, 2))"),
        HEAD.format(use="x @ weights"),
        HEAD.format(use="x * BANDS"),
    ],
    ids=["a parameter", "no constant", "an operation that promotes"],
)  # fmt: skip
def test_others_are_left_alone(source: str, tmp_path: pathlib.Path) -> None:
    changed = rewritten(tmp_path, "cast_constant", source, at="return", message=SAID)
    assert changed == source


def test_no_constant_becomes_whole_numbers(tmp_path: pathlib.Path) -> None:
    """Where the tensor may be of integers the cast would take the constant's fractions."""
    source, said = HEAD.format(use="x @ BANDS"), SAID.replace("double", "long int")
    assert rewritten(tmp_path, "cast_constant", source, at="return", message=said) == source
    seen = {"x": "[3, 2] float64"}
    after = rewritten(tmp_path, "cast_constant", source, at="return", message=said, tensors=seen)
    assert changed_lines(source, after) == ["return x @ BANDS.to(x.dtype)"]
