"""A block that gets joined channels is built for as many."""

from __future__ import annotations

import pathlib
import traceback

import pytest

from explainer.fix.splice import splice
from explainer.model.incident import ExceptionRecord, Frame, Incident

pytestmark = pytest.mark.torch
torch = pytest.importorskip("torch")

from tests.fix.mending import run  # noqa: E402
from tests.fix.rewriting import best, changed_lines, write  # noqa: E402

OF_FUNCTION = """def block(i, o):
    return nn.Sequential(nn.Conv2d(i, o, 3, padding=1), nn.ReLU())
"""
OF_CLASS = """class block(nn.Module):
    def __init__(self, i, o):
        super().__init__()
        self.conv = nn.Conv2d(i, o, 3, padding=1)

    def forward(self, x):
        return self.conv(x).relu()
"""
NET = """import torch
from torch import nn
BLOCK

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.down, self.up = block(1, 8), block(8, 4)

    def forward(self, x):
        a = self.down(x)
        GIVEN


torch.manual_seed(0)
out = Net()(torch.ones(2, 1, 6, 6)).shape
"""
GIVEN = {
    "in place": "return self.up(torch.cat([a, a], 1))",
    "by name": "both = torch.cat([a, a], dim=1)\n        return self.up(both)",
}


def edited(source: str, folder: pathlib.Path) -> str:
    """The program after the best edit, by all the frames of its failure."""
    path = folder / "train.py"
    program = write(folder, {"train.py": source})
    with pytest.raises(RuntimeError) as caught:
        run(source, path)
    frames = tuple(
        Frame(file=one.filename, line=one.lineno, function=one.name)
        for one in traceback.extract_tb(caught.value.__traceback__)
        if one.filename == str(path)
    )
    record = ExceptionRecord(type="RuntimeError", message=str(caught.value), frames=frames)
    proposal = best("channels_of_block", program, incident=Incident(exceptions=(record,)))
    return source if proposal is None else splice(source, proposal.edits) or ""


@pytest.mark.parametrize("block", [OF_FUNCTION, OF_CLASS], ids=["a function", "a class"])
@pytest.mark.parametrize("given", GIVEN.values(), ids=GIVEN)
def test_the_block_is_built_for_them(block: str, given: str, tmp_path: pathlib.Path) -> None:
    """That which gets them, and no other that the same function or class makes."""
    source = NET.replace("BLOCK", block).replace("GIVEN", given)
    after = edited(source, tmp_path)
    assert [one.strip() for one in changed_lines(source, after)] == ["self.down, self.up = block(1, 8), block(16, 4)"]
    assert run(after, tmp_path / "after.py")["out"] == (2, 4, 6, 6)


def test_channels_that_are_not_joined(tmp_path: pathlib.Path) -> None:
    """Between two blocks either of them may be meant otherwise."""
    source = (
        NET.replace("BLOCK", OF_FUNCTION).replace("block(8, 4)", "block(6, 4)").replace("GIVEN", "return self.up(a)")
    )
    assert edited(source, tmp_path) == source
