"""The share of a capped value is 1 up to the cap, at 0 as well."""

from __future__ import annotations

import pytest

from tests.fix.mending import run
from tests.fix.rewriting import changed_lines, rewritten

HEAD = """import torch
gamma = 5.0
bar = torch.linspace(0.99, 0.0, 12)
snr = bar / (1 - bar)
"""
SHARES = {
    "a function": ("torch.clamp(snr, max=gamma) / snr", "gamma"),
    "a method": ("snr.clamp(max=gamma) / snr", "gamma"),
    "a literal": ("snr.clamp_max(2.5) / snr", "2.5"),
    "the smaller of two": ("torch.minimum(snr, torch.full_like(snr, gamma)) / snr", "gamma"),
    "a tensor of one number": ("torch.min(snr, torch.tensor(gamma)) / snr", "gamma"),
    "a stack": ("torch.stack([snr, gamma * torch.ones_like(snr)], dim=1).min(dim=1)[0] / snr", "gamma"),
    "its values": ("torch.stack([snr, gamma * torch.ones_like(snr)], dim=0).min(dim=0).values / snr", "gamma"),
    "a call that divides": ("torch.div(snr.clamp(max=gamma), snr)", "gamma"),
}
RIGHT = {
    "an eps in both": "out = (snr.clamp(max=gamma) + 1e-8) / (snr + 1e-8)\n",
    "another divisor": "out = snr.clamp(max=gamma) / bar\n",
    "capped from below as well": "out = snr.clamp(0.1, gamma) / snr\n",
    "a floor": "out = snr.clamp(min=gamma) / snr\n",
    "a cap for each element, which may be 0": "out = torch.minimum(snr, bar) / snr\n",
    "a tensor of caps": "caps = torch.linspace(0, 1, 12)\nout = snr.clamp(max=caps) / snr\n",
    "a cap of 0": "out = snr.clamp(max=0) / snr\n",
    "a stack over another axis": "out = torch.stack([snr, gamma * torch.ones_like(snr)], dim=1).min(dim=0)[0] / snr\n",
    "a count": "n = torch.bincount(torch.tensor([0, 2]))\nout = n.clamp(max=gamma) / n\n",
    "a share of a count": "n = torch.bincount(torch.tensor([0, 2]))\nf = n / n.sum()\nout = f.clamp(max=0.4) / f\n",
    "a number of unknown kind": "def weigh(x):\n    return x.clamp(max=gamma) / x\n",
    "what has a gradient": "w = torch.zeros(3, requires_grad=True)\nr = w ** 2\nout = r.clamp(max=gamma) / r\n",
}


@pytest.mark.parametrize(("share", "cap"), SHARES.values(), ids=SHARES)
def test_the_limit_is_written(tmp_path, share: str, cap: str) -> None:
    """1 where it was 0 / 0, and all else as it was."""
    import torch

    source = f"{HEAD}out = {share}\n"
    after = rewritten(tmp_path, "limit_of_capped_share", source)
    assert changed_lines(source, after) == [f"out = torch.where(snr > {cap}, {cap} / snr, 1)"]
    was, now = run(source, tmp_path / "was.py")["out"], run(after, tmp_path / "now.py")["out"]
    assert was[-1].isnan()
    assert now[-1] == 1
    assert torch.allclose(was[:-1], now[:-1], rtol=1e-6, atol=0)
    assert was.dtype == now.dtype
    assert rewritten(tmp_path, "limit_of_capped_share", after) == after


def test_through_names(tmp_path) -> None:
    """A table of a class that is looked up, and a share that has a name."""
    source = """import torch

class Weight:
    def __init__(self, bar, cap):
        self.ratio = bar / (1 - bar)
        self.cap = cap

    def __call__(self, t):
        ratio = self.ratio[t]
        share = ratio.clamp(max=self.cap)
        return 2 * (share / ratio)

weight = Weight(torch.linspace(0.9, 0.0, 9), 5.0)
x = torch.ones(4, 3)
weight(torch.randint(9, (x.size(0),)))
"""
    after = rewritten(tmp_path, "limit_of_capped_share", source)
    assert changed_lines(source, after) == ["return 2 * torch.where(ratio > self.cap, self.cap / ratio, 1)"]


@pytest.mark.parametrize("body", RIGHT.values(), ids=RIGHT)
def test_what_has_no_certain_limit_stays(tmp_path, body: str) -> None:
    """Other quotients, caps that may be 0, counts, and what is trained."""
    assert rewritten(tmp_path, "limit_of_capped_share", HEAD + body) == HEAD + body
