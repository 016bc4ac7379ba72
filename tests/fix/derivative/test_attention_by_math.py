"""A forward that is differentiated twice runs attention with the math backend; no other forward does."""

from __future__ import annotations

import pathlib

import pytest

from tests.fix.rewriting import best, changed_lines, failed, rewritten, write

SAID = "derivative for aten::_scaled_dot_product_flash_attention_for_cpu_backward is not implemented"
SOURCE = """import torch
from torch import nn
import torch.nn.functional as F
class Critic(nn.Module):
    def __init__(self):
        super().__init__()
        self.qkv = nn.Linear(8, 24)
    def forward(self, x):
        q, k, v = self.qkv(x).view(2, 4, 3, 2, 4).permute(2, 0, 3, 1, 4)
        return F.scaled_dot_product_attention(q, k, v).sum((1, 2, 3))
critic = Critic()
x = torch.randn(2, 4, 8, requires_grad=True)
real = critic(x.detach())
"""
ONE = (
    SOURCE
    + """slope = torch.autograd.grad(critic(x).sum(), x, create_graph=True)[0]
slope.square().sum().backward()
"""
)
TWO = (
    SOURCE
    + """score = critic(x)
slope = torch.autograd.grad(outputs=score.sum(), inputs=x, create_graph=True)[0]
slope.square().sum().backward()
"""
)
ELSEWHERE = (
    SOURCE
    + """def penalty(scores, points):
    slope = torch.autograd.grad(scores.sum(), points, create_graph=True)[0]
    return slope.square().sum()
score = critic(x)
penalty(score, x).backward()
"""
)
FUNCTIONAL = (
    SOURCE
    + """weights = dict(critic.named_parameters())
score = torch.func.functional_call(critic, weights, (x,)).sum()
slopes = torch.autograd.grad(score, tuple(weights.values()), create_graph=True)
sum(one.square().sum() for one in slopes).backward()
"""
)
HEAD = "with sdpa_kernel(SDPBackend.MATH):"
CASES = {
    "in the call": (ONE, "slope = torch.autograd.grad(critic(x).sum(), x, create_graph=True)[0]"),
    "in a line before it": (TWO, "score = critic(x)"),
    "given to a function": (ELSEWHERE, "score = critic(x)"),
    "with weights of its own": (FUNCTIONAL, "score = torch.func.functional_call(critic, weights, (x,)).sum()"),
}


@pytest.mark.parametrize(("source", "line"), CASES.values(), ids=CASES)
def test_the_forward_is_wrapped(tmp_path: pathlib.Path, source: str, line: str) -> None:
    """The statement that runs the module, with the import; a second time nothing is left to do."""
    after = rewritten(tmp_path, "attention_by_math", source, message=SAID)
    assert changed_lines(source, after) == ["from torch.nn.attention import SDPBackend, sdpa_kernel", HEAD, line]
    assert rewritten(tmp_path, "attention_by_math", after, message=SAID) == after


def test_another_kernel_and_a_first_derivative_stay(tmp_path: pathlib.Path) -> None:
    """Only attention has such a backend, and one derivative needs none."""
    assert rewritten(tmp_path, "attention_by_math", ONE, message="derivative for aten::_cdist_backward") == ONE
    first = ONE.replace(", create_graph=True", "")
    assert rewritten(tmp_path, "attention_by_math", first, message=SAID) == first


def test_the_line_that_attends_is_told(tmp_path: pathlib.Path) -> None:
    """Not the one that is wrapped: what is to be known is where the kernel without a second derivative runs."""
    found = best("attention_by_math", write(tmp_path, {"train.py": ELSEWHERE}), incident=failed(message=SAID))
    assert found is not None
    assert (found.culprit.code or "").startswith("return F.scaled_dot_product_attention")


def test_the_line_of_a_part_that_attends(tmp_path: pathlib.Path) -> None:
    """The module that is run is made of others, and one of these attends."""
    source = ELSEWHERE.replace("score = critic(x)", "score = whole(x)") + ""
    source = source.replace("def penalty", "class Whole(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
                            "        self.block = Critic()\n    def forward(self, x):\n        return self.block(x)\nwhole = Whole()\ndef penalty", 1)  # fmt: skip
    found = best("attention_by_math", write(tmp_path, {"train.py": source}), incident=failed(message=SAID))
    assert found is not None
    assert (found.culprit.code or "").startswith("return F.scaled_dot_product_attention")


@pytest.mark.torch
@pytest.mark.parametrize("source", [one for one, _ in CASES.values()], ids=CASES)
def test_the_second_derivative_is_there(tmp_path: pathlib.Path, source: str) -> None:
    """The program fails as it is, and runs with the edit."""
    pytest.importorskip("torch")
    after = rewritten(tmp_path, "attention_by_math", source, message=SAID)
    with pytest.raises(RuntimeError, match="is not implemented"):
        exec(source, {"__name__": "train"})  # noqa: S102 - the program of the test
    exec(after, {"__name__": "train"})  # noqa: S102 - the program of the test
