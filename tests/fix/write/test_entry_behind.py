"""What a container shows of a tensor that is written after it was put in."""

from __future__ import annotations

import pathlib

import pytest

from explainer.fix.codemod import Context, find_codemod
from explainer.fix.splice import splice
from tests.fix.rewriting import failed, line_of, write

LAYERS = """import torch
from torch import nn

convs, gates = nn.ModuleList(nn.Linear(4, 4) for _ in range(2)), nn.ModuleList(nn.Linear(4, 4) for _ in range(2))
x, taps = torch.randn(2, 4), []
for conv, gate in zip(convs, gates):
    h = torch.tanh(conv(x))
    taps.append(h)
    BETWEEN
    h *= torch.sigmoid(gate(x))
loss = torch.stack(taps).sum()
loss.backward()
"""


def proposed(tmp_path: pathlib.Path, source: str) -> list[str | None]:
    program = write(tmp_path, {"train.py": source})
    incident = failed({"train.py": line_of(source, "loss.backward")}, "modified by an inplace operation")
    found = find_codemod("write_out_of_place")(Context(program=program, incident=incident))
    return [splice(source, one.edits) for one in sorted(found, key=lambda one: -one.belief)]


def test_the_entry_is_put_in_behind_the_write(tmp_path: pathlib.Path) -> None:
    """The second edit: the first one leaves the container with what the tensor was before."""
    source = LAYERS.replace("    BETWEEN\n", "")
    put, plain = "    taps.append(h)\n", source.replace("h *= ", "h = h * ")
    moved = plain.replace(put, "").replace("(gate(x))\n", f"(gate(x))\n{put}")
    assert proposed(tmp_path, source) == [plain, moved]


@pytest.mark.parametrize("between", ["print(taps[-1].shape)", "taps.append(x)"], ids=["it is read", "another entry"])
def test_an_order_that_somebody_sees(tmp_path: pathlib.Path, between: str) -> None:
    """Nothing moves over what reads or fills the container."""
    source = LAYERS.replace("BETWEEN", between)
    assert proposed(tmp_path, source) == [source.replace("h *= ", "h = h * ")]


@pytest.mark.torch
def test_the_values_are_those_of_the_forward(tmp_path: pathlib.Path) -> None:
    """The loss is what it was, and each gate gets a gradient."""
    torch = pytest.importorskip("torch")
    source = LAYERS.replace("    BETWEEN\n", "")
    program = write(tmp_path, {"train.py": source})
    incident = failed({"train.py": line_of(source, "loss.backward")}, "modified by an inplace operation")
    found = sorted(
        find_codemod("write_out_of_place")(Context(program=program, incident=incident)), key=lambda one: one.belief
    )
    before, after = dict[str, object](), dict[str, object]()
    torch.manual_seed(0)
    with pytest.raises(RuntimeError, match="inplace"):
        exec(compile(source, "train.py", "exec"), before)  # noqa: S102
    torch.manual_seed(0)
    exec(compile(splice(source, found[0].edits), "train.py", "exec"), after)  # noqa: S102
    assert torch.equal(before["loss"], after["loss"])
    assert all(one.weight.grad.abs().sum() > 0 for one in after["gates"])
