"""While a CUDA graph is captured nothing is asked of the GPU: not the loss of its backward, nor the gradients of its step."""

from __future__ import annotations

import pathlib

import pytest

from explainer.verification.verify import Watch, verify_command
from tests import forked

pytestmark = pytest.mark.torch
# On a machine without a GPU: the block stands for a capture, in which reading a value raises as it does there.
PROGRAM = """
import torch
from unittest import mock

torch.manual_seed(0)
net = torch.nn.Linear(3, 1)
optimizer = torch.optim.SGD(net.parameters(), lr=0.01)


def refuse(*_):
    raise RuntimeError("CUDA error: operation not permitted when stream is capturing")


def step(x):
    optimizer.zero_grad()
    net(x).square().mean().backward()
    optimizer.step()


step(torch.randn(4, 3))
with (
    mock.patch("torch.cuda.is_initialized", lambda: True),
    mock.patch("torch.cuda.is_current_stream_capturing", lambda: True),
    mock.patch.object(torch.Tensor, "__float__", refuse),
    mock.patch.object(torch.Tensor, "item", refuse),
):
    step(torch.randn(4, 3))
for x in torch.randn(20, 4, 3):
    step(x)
"""


def test_a_capture_is_left_alone(tmp_path: pathlib.Path) -> None:
    """Its step is counted, and its loss is not read."""
    pytest.importorskip("torch")
    (tmp_path / "train.py").write_text(PROGRAM)
    proof = verify_command((forked.python(), "train.py"), str(tmp_path), Watch(steps=4))
    assert (proof.verdict, proof.reasons) == ("green", ())
    (process,) = proof.processes
    assert (dict(process.steps), len(process.losses), len(process.rows)) == ({"0 SGD": 4}, 3, 3)
