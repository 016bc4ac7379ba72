"""A kept state whose parts are detached only in part gets the rest detached; states that are whole, or all live, stay."""

from __future__ import annotations

import pathlib

import pytest

from tests.fix.rewriting import rewritten

WRONG = {
    "an attribute": ("self.state = (h.detach(), c)", "self.state = (h.detach(), c.detach())"),
    "the same names": ("h, c = h.detach(), c", "h, c = h.detach(), c.detach()"),
    "a list": (
        "self.state = [h, c.detach(), m.detach().clone()]",
        "self.state = [h.detach(), c.detach(), m.detach().clone()]",
    ),
    "a dictionary": ('self.bank[key] = {"h": h, "c": c.data}', 'self.bank[key] = {"h": h.detach(), "c": c.data}'),
    "handed back": ("return h, c.detach()", "return h.detach(), c.detach()"),
}
RIGHT = {
    "whole": "self.state = (h.detach(), c.detach())",
    "all live": "self.state = (h, c)",
    "an output beside a log": "return loss, metric.detach()",
    "a loss beside a state": "out = (h.detach(), loss)",
    "a computed part": "self.state = (h.detach(), self.net(c))",
    "beside none": "h, self.state = self.state, None",
    "without a graph": "with torch.no_grad(): self.state = (h.detach(), c)",
}


def program(line: str) -> str:
    return f"import torch\n\nclass Net(torch.nn.Module):\n    def keep(self, h, c, m=None, key=0, loss=None, metric=None):\n        {line}\n"


@pytest.mark.parametrize(("line", "wanted"), WRONG.values(), ids=WRONG.keys())
def test_the_rest_is_detached(tmp_path: pathlib.Path, line: str, wanted: str) -> None:
    """All parts, and a second time nothing is left."""
    after = rewritten(tmp_path, "detach_the_rest", program(line))
    assert after == program(wanted)
    assert rewritten(tmp_path, "detach_the_rest", after) == after


@pytest.mark.parametrize("line", RIGHT.values(), ids=RIGHT.keys())
def test_others_stay(tmp_path: pathlib.Path, line: str) -> None:
    """Nothing says that these parts should be cut."""
    assert rewritten(tmp_path, "detach_the_rest", program(line)) == program(line)
