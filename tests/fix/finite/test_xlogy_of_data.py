"""Data times its own logarithm is 0 where the data is."""

from __future__ import annotations

import pathlib

import pytest

from tests.fix.rewriting import changed_lines, rewritten

HEAD = """import torch
from torch import nn
net = nn.Linear(4, 3)
x, t = torch.randn(2, 4), torch.tensor([[0.0, 0.25, 0.75], [1.0, 0.0, 0.0]])
q = torch.log_softmax(net(x), -1)
p = q.exp()
"""
TAIL = "loss.backward()\n"
RIGHT = {
    "a guarded logarithm": "loss = (t * ((t + 1e-8).log() - q)).sum()",
    "of the model's output": "loss = (p * p.log()).sum()",
    "another logarithm": "loss = (t * (x.exp().sum().log() - q)).sum()",
    "cross entropy": "loss = -(t * q).sum()",
}
WRONG = {
    "a divergence": ("loss = (t * (t.log() - q)).sum()", "loss = (torch.xlogy(t, t) - t * q).sum()"),
    "by a function, turned round": (
        "loss = 2 * ((torch.log(t) - q.mul(1)) * t).sum()",
        "loss = 2 * (torch.xlogy(t, t) - t * q.mul(1)).sum()",
    ),
    "beside the loss": ("loss = (t * t.log() - t * q).sum()", "loss = (torch.xlogy(t, t) - t * q).sum()"),
}


@pytest.mark.parametrize("line", RIGHT.values(), ids=RIGHT)
def test_right_programs_stay(tmp_path: pathlib.Path, line: str) -> None:
    """What is guarded, or has a graph, is left alone."""
    source = f"{HEAD}{line}\n{TAIL}"
    assert rewritten(tmp_path, "xlogy_of_data", source, "loss.backward()") == source


@pytest.mark.parametrize(("line", "wanted"), WRONG.values(), ids=WRONG)
def test_the_product_is_written_as_xlogy(tmp_path: pathlib.Path, line: str, wanted: str) -> None:
    """A second time nothing is left to do."""
    source = f"{HEAD}{line}\n{TAIL}"
    after = rewritten(tmp_path, "xlogy_of_data", source, "loss.backward()")
    assert changed_lines(source, after) == [wanted]
    assert rewritten(tmp_path, "xlogy_of_data", after, "loss.backward()") == after


@pytest.mark.torch
@pytest.mark.parametrize(("line", "wanted"), WRONG.values(), ids=WRONG)
def test_the_gradients_are_those_of_data_without_zeros(line: str, wanted: str) -> None:
    """Held against the same loss with the zeros raised by a hair."""
    torch = pytest.importorskip("torch")
    seen = []
    for text, shift in ((line, 1e-12), (wanted, 0.0)):
        space: dict = {}
        exec(f"import torch\ntorch.manual_seed(0)\n{HEAD}t = t + {shift}\n{text}\n{TAIL}", space)  # noqa: S102 - the lines above
        seen.append((space["loss"].detach(), space["net"].weight.grad))
    torch.testing.assert_close(seen[0], seen[1])
