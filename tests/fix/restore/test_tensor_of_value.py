"""A state that is sent as arrays is made of tensors by the function, not by the type."""

from __future__ import annotations

import pathlib

import pytest

from tests.fix.rewriting import changed_lines, rewritten

SAID = (
    "size mismatch for bn1.num_batches_tracked: copying a param with shape torch.Size([0]) from checkpoint, "
    "the shape in current model is torch.Size([])."
)
SOURCE = """import torch


def set_weights(net, arrays):
    state = {name: MADE for name, one in zip(net.state_dict(), arrays)}
    net.load_state_dict(state)


def buffer(rows):
    return torch.Tensor(rows)
"""


@pytest.mark.parametrize(
    ("made", "message", "wanted"),
    [
        ("torch.Tensor(one)", SAID, ["    state = {name: torch.tensor(one) for name, one in zip(net.state_dict(), arrays)}"]),
        ("torch.FloatTensor(one)", SAID, ["    state = {name: torch.tensor(one) for name, one in zip(net.state_dict(), arrays)}"]),
        ("torch.Tensor(3)", SAID, []),
        ("torch.tensor(one)", SAID, []),
        ("torch.Tensor(one)", "size mismatch for fc.weight", []),
    ],
)  # fmt: skip
def test_a_state_of_arrays(tmp_path: pathlib.Path, made: str, message: str, wanted: list[str]) -> None:
    source = SOURCE.replace("MADE", made)
    after = rewritten(tmp_path, "tensor_of_value", source, "net.load_state_dict(state)", message=message)
    assert [one.rstrip() for one in changed_lines(source, after)] == [one.strip() for one in wanted]
