"""Betas that are integers, which Adam takes for no floats."""

from __future__ import annotations

import pathlib

import pytest

from tests.fix.mending import mended, run
from tests.fix.rewriting import changed_lines

HEAD = "import torch\nnet, critic = torch.nn.Linear(2, 1), torch.nn.Linear(2, 1)\n"
WRITTEN = {
    "in the call": (
        "opt = torch.optim.Adam(net.parameters(), 1e-4, betas=(0, 0.9))\n",
        ["opt = torch.optim.Adam(net.parameters(), 1e-4, betas=(0.0, 0.9))"],
    ),
    "in two calls": (
        "one = torch.optim.Adam(net.parameters(), betas=(0, 0.9))\ntwo = torch.optim.AdamW(critic.parameters(), betas=[0, 0.9])\n",
        [
            "one = torch.optim.Adam(net.parameters(), betas=(0.0, 0.9))",
            "two = torch.optim.AdamW(critic.parameters(), betas=[0.0, 0.9])",
        ],
    ),
    "by a name": (
        "BETAS = (0, 0.9)\nopt = torch.optim.Adam(net.parameters(), betas=BETAS)\n", ["BETAS = (0.0, 0.9)"],
    ),
    "a setting": (
        "cfg = dict(b=0)\nopt = torch.optim.Adam(net.parameters(), betas=(cfg['b'], 0.9))\n",
        ["opt = torch.optim.Adam(net.parameters(), betas=(float(cfg['b']), 0.9))"],
    ),
    "a list of settings": (
        "cfg = {'betas': [0, 0.9]}\nopt = torch.optim.Adam(net.parameters(), betas=cfg['betas'])\n",
        ["opt = torch.optim.Adam(net.parameters(), betas=tuple(float(beta) for beta in cfg['betas']))"],
    ),
}  # fmt: skip


@pytest.mark.torch
@pytest.mark.parametrize(("source", "wanted"), WRITTEN.values(), ids=WRITTEN)
def test_they_become_floats(tmp_path: pathlib.Path, source: str, wanted: list[str]) -> None:
    """All of the program's at once; the program then runs."""
    pytest.importorskip("torch")
    after = mended("betas_as_floats", HEAD + source, tmp_path)
    assert changed_lines(HEAD + source, after) == wanted
    run(after, tmp_path / "after.py")
