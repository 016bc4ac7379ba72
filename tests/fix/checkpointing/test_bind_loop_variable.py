"""Functions that are checkpointed in a loop and read its variable when they run."""

from __future__ import annotations

import pathlib

import pytest

from tests.fix.rewriting import changed_lines, rewritten

HEAD = """
from torch.utils.checkpoint import checkpoint

class Net(nn.Module):
    def forward(self, x):
"""
CURED = {
    "passed on": (
        "for block in self.blocks:\n            x = checkpoint(lambda h: block(h), x, use_reentrant=False)",
        ["x = checkpoint(block, x, use_reentrant=False)"],
    ),
    "by index": (
        "for i in range(3):\n            x = checkpoint(lambda h: self.blocks[i](h), x, use_reentrant=False)",
        ["x = checkpoint(lambda h, i=i: self.blocks[i](h), x, use_reentrant=False)"],
    ),
    "two names": (
        "for norm, mix in self.pairs:\n            x = checkpoint(lambda h: mix(norm(h)), x, use_reentrant=False)",
        ["x = checkpoint(lambda h, mix=mix, norm=norm: mix(norm(h)), x, use_reentrant=False)"],
    ),
    "bound in the loop": (
        "for one in self.blocks:\n            layer = one.inner\n            x = checkpoint(lambda h: layer(h), x)",
        ["x = checkpoint(layer, x)"],
    ),
    "a function": (
        "for block in self.blocks:\n            def run(h, mask=None):\n                return h + block(h, mask)\n"
        "            x = checkpoint(run, x, use_reentrant=False)",
        ["def run(h, mask=None, block=block):"],
    ),
    "no argument": (
        "for block in self.blocks:\n            x = checkpoint(lambda: block.weight @ block.weight.T)",
        ["x = checkpoint(lambda block=block: block.weight @ block.weight.T)"],
    ),
    "other arguments": (
        "for block in self.blocks:\n            x = checkpoint(lambda h, m: block(m, h), x, x, use_reentrant=False)",
        ["x = checkpoint(lambda h, m, block=block: block(m, h), x, x, use_reentrant=False)"],
    ),
}
LEFT = {
    "the layer itself": "for block in self.blocks:\n            x = checkpoint(block, x, use_reentrant=False)",
    "bound already": "for block in self.blocks:\n            x = checkpoint(lambda h, block=block: block(h), x)",
    "no loop": "block = self.block\n        x = checkpoint(lambda h: block(h), x)",
    "bound before the loop": "mix = self.mix\n        for _ in range(3):\n            x = checkpoint(lambda h: mix(h), x)",
    "not checkpointed": "for block in self.blocks:\n            x = self.run(lambda h: block(h), x)",
}


def program(body: str) -> str:
    return f"{HEAD}        {body}\n        return x\n"


@pytest.mark.parametrize(("body", "changed"), CURED.values(), ids=CURED)
def test_binds(tmp_path: pathlib.Path, body: str, changed: list[str]) -> None:
    """What the loop binds anew is read where the segment is checkpointed."""
    source = program(body)
    assert changed_lines(source, rewritten(tmp_path, "bind_loop_variable", source)) == changed


@pytest.mark.parametrize("body", LEFT.values(), ids=LEFT)
def test_leaves(tmp_path: pathlib.Path, body: str) -> None:
    """Nothing moves on, or nothing is checkpointed."""
    source = program(body)
    assert rewritten(tmp_path, "bind_loop_variable", source) == source
