"""What a batch, a view of the data, is given in place becomes a tensor of its own; the program then trains."""

from __future__ import annotations

import importlib.util
import pathlib
import sys
from dataclasses import replace

import pytest

from explainer.fix.codemod import Context, find_codemod
from explainer.fix.splice import splice
from tests.fix.rewriting import diff_lines, failed, write

pytestmark = pytest.mark.torch
torch = pytest.importorskip("torch")

TEXT = """import torch
from torch import nn

torch.manual_seed(0)
points, goal = torch.randn(6, 3), torch.randn(6, 3)
offset = nn.Parameter(torch.zeros(3))
optimizer = torch.optim.SGD([offset], lr=0.1)


def moved(batch):
    batch += offset.exp()
    return batch


for step in range(3):
    loss = (moved(points[2:]).tanh() - goal[2:]).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""
WRITES = {
    "augmented": ("batch += offset.exp()", "batch = batch + offset.exp()"),
    "a method": ("batch.add_(offset.exp())", "batch = batch.add(offset.exp())"),
}
STATE = TEXT.replace(
    "def moved(batch):\n    batch += offset.exp()",
    "class Kept:\n    pass\n\n\nkept = Kept()\nkept.state = points\n\n\ndef moved(batch):\n    kept.state += offset.exp()",
)


def run(folder: pathlib.Path, name: str, text: str) -> None:
    (folder / f"{name}.py").write_text(text)
    spec = importlib.util.spec_from_file_location(f"{folder.name.replace('-', '_')}_{name}", folder / f"{name}.py")
    assert spec is not None and spec.loader is not None
    sys.dont_write_bytecode = True
    spec.loader.exec_module(importlib.util.module_from_spec(spec))


def proposed(folder: pathlib.Path, text: str) -> list[str | None]:
    """What becomes of a program that fails, by each edit."""
    import gradfix

    with pytest.raises(RuntimeError, match="second time"), gradfix.trace() as seen:
        run(folder, "train", text)
    program = write(folder, {"train.py": text})
    context = Context(program=program, incident=replace(failed(), traced=seen.lines))
    return [splice(text, one.edits) for one in find_codemod("write_data_out_of_place")(context)]


@pytest.mark.parametrize(("line", "wanted"), WRITES.values(), ids=WRITES)
def test_the_data_keeps_its_values(line: str, wanted: str, tmp_path: pathlib.Path) -> None:
    text = TEXT.replace("batch += offset.exp()", line)
    (after,) = proposed(tmp_path, text)
    assert after is not None and diff_lines(text, after) == [f"-    {line}", f"+    {wanted}"]
    run(tmp_path, "fixed", after)


def test_a_state_is_left_to_be_detached(tmp_path: pathlib.Path) -> None:
    assert proposed(tmp_path, STATE) == []
