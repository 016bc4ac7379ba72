"""What a registered buffer keeps is detached; attributes that are no buffers, and values without a graph, stay."""

from __future__ import annotations

import pathlib

import pytest

from tests.fix.rewriting import rewritten

WRONG = {
    "a name": ("self.memory = fresh", "self.memory = fresh.detach()"),
    "a sum": (
        "self.memory = 0.9 * self.memory + 0.1 * fresh",
        "self.memory = (0.9 * self.memory + 0.1 * fresh).detach()",
    ),
}
RIGHT = {
    "detached": "self.memory = fresh.detach()",
    "made anew": "self.memory = torch.zeros(3)",
    "no buffer": "self.other = fresh",
    "without grad": "with torch.no_grad():\n            self.memory = fresh",
}


def program(line: str) -> str:
    return f"""import torch

class Bank(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("memory", torch.zeros(3))

    def update(self, fresh):
        {line}
"""


@pytest.mark.parametrize(("line", "wanted"), WRONG.values(), ids=WRONG.keys())
def test_the_kept_value_is_detached(tmp_path: pathlib.Path, line: str, wanted: str) -> None:
    """Once, and the second time nothing is left."""
    after = rewritten(tmp_path, "detach_kept_buffer", program(line))
    assert after == program(wanted)
    assert rewritten(tmp_path, "detach_kept_buffer", after) == after


@pytest.mark.parametrize("line", RIGHT.values(), ids=RIGHT.keys())
def test_others_stay(tmp_path: pathlib.Path, line: str) -> None:
    """Nothing there has a graph, or it is no buffer."""
    assert rewritten(tmp_path, "detach_kept_buffer", program(line)) == program(line)
