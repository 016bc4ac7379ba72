"""A tensor that a loop hands to a model and then writes: the model gets a copy, or the writes get one."""

from __future__ import annotations

import pathlib

import pytest

from tests.fix.rewriting import diff_lines, rewritten

HEAD = "import torch\nfrom torch import nn\nclass Roll(nn.Module):\n    def forward(self, x):\n"
STRIDED = {"node": "AsStrided", "op": "AsStrided", "version": 12, "expected": 10}
RIGHT = {
    "made anew in each round": "for t in range(3):\n    w = torch.zeros(2, 3)\n    w[:, 0] = x\n    x = self.net(w)\nreturn x",
    "read by nobody in the loop": "w = torch.zeros(2, 3)\nfor t in range(3):\n    x = self.net(x)\n    w[:, t] = x\nreturn w",
    "read as a copy": "w = x.clone()\nfor t in range(3):\n    y = self.net(w.clone())\n    w[:, 0] = y\nreturn y",
    "data without a graph": "w = torch.zeros(2, 3)\nfor t in range(3):\n    y = 0.4 * w[:, t]\n    w[:, t] = y + 1\nreturn y",
    "only counted": "w = x.clone()\nfor t in range(len(x)):\n    print(w)\n    keep.append(w)\n    w[:, 0] = t\nreturn w",
    "filled by a helper": "w = x.clone()\nfor t in range(3):\n    fill(w)\n    w[:, 0] = t\nreturn w",
}  # fmt: skip
COPIED = {
    "a window that moves": (
        "w = x.clone()\nfor t in range(3):\n    y = self.net(w)\n    w[:, :-1] = w[:, 1:].clone()\n    w[:, -1] = y\nreturn y",
        ["-y = self.net(w)", "+y = self.net(w.clone())"],
    ),
    "a view of it": (
        "w = x.clone()\nfor t in range(3):\n    y = self.net(w.flatten(1))\n    w[:, t] = y\nreturn y",
        ["-y = self.net(w.flatten(1))", "+y = self.net(w.flatten(1).clone())"],
    ),
    "the whole and a part": (
        "w = x.clone()\nfor t in range(3):\n    y = self.net(w) * w[:, t]\n    w[:, t] = y\nreturn y",
        ["-y = self.net(w) * w[:, t]", "+y = self.net(w.clone()) * w[:, t].clone()"],
    ),
}
CLONED = {
    "one copy for the writes of a step": (
        COPIED["a window that moves"][0],
        ["+w = w.clone()"],
    ),
    "what is written is computed from it": (
        "w = x.clone()\nfor t in range(3):\n    y = self.net(w)\n    w[:, 0] = self.net(w)\nreturn y",
        ["+w = w.clone()"],
    ),
}


def program(body: str) -> str:
    return HEAD + "".join(f"        {line}\n" for line in body.split("\n"))


def changed(codemod: str, body: str, folder: pathlib.Path) -> list[str]:
    """The lines that the best edit of a codemod takes out and puts in."""
    after = rewritten(folder, codemod, program(body), fields=STRIDED)
    return [line[:1] + line[1:].lstrip() for line in diff_lines(program(body), after)]


@pytest.mark.parametrize("body", RIGHT.values(), ids=RIGHT)
def test_right_programs_stay(body: str, tmp_path: pathlib.Path) -> None:
    """Nothing is copied that no round reads after another has written it."""
    assert changed("read_a_copy", body, tmp_path) == []


@pytest.mark.parametrize(("body", "changes"), COPIED.values(), ids=COPIED)
def test_the_model_gets_a_copy(body: str, changes: list[str], tmp_path: pathlib.Path) -> None:
    """All that a round reads of the tensor is copied."""
    assert changed("read_a_copy", body, tmp_path) == changes


@pytest.mark.parametrize(("body", "changes"), CLONED.values(), ids=CLONED)
def test_the_writes_get_a_copy(body: str, changes: list[str], tmp_path: pathlib.Path) -> None:
    """One clone stands before the first write of a step."""
    assert changed("clone_before_write", body, tmp_path) == changes


def test_a_rule_of_weights_leaves_loops_alone(tmp_path: pathlib.Path) -> None:
    """For a weight that is rewritten in forward, a window says nothing."""
    source = program(COPIED["a window that moves"][0])
    assert rewritten(tmp_path, "read_a_copy", source, fields=STRIDED, options={"of": "weights"}) == source
