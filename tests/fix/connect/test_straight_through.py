"""A hard decision that the trace saw cut a layer off keeps its value and gets a gradient."""

from __future__ import annotations

import pathlib
from dataclasses import replace

import pytest

from explainer.fix.splice import splice
from explainer.model.trace import STARVING_CUT, TracedLine
from tests.fix.rewriting import best, changed_lines, failed, line_of, write

CASES = {
    "signs": ("return (h > 0).float() * 2 - 1", "return h + ((h > 0).float() * 2 - 1 - h).detach()"),
    "bits": ("codes = (h >= 0.5).to(h.dtype)", "codes = h + ((h >= 0.5).to(h.dtype) - h).detach()"),
    "a part of a line": ("return self.head(1 + (h > 0).float())", "return self.head(h + (1 + (h > 0).float() - h).detach())"),
    "a decision that falls": ("return (h < 0).float()", None),
    "one that is turned round": ("return 1 - (h > 0).float()", "return 1 - (h + ((h > 0).float() - h).detach())"),
    "rounding": ("return torch.round(h / limit) * limit", "return ((h / limit) + (torch.round(h / limit) - (h / limit)).detach()) * limit"),
    "rounding as a method": ("return h.round()", "return (h + (h.round() - h).detach())"),
    "rounding that is passed on": ("return h + (torch.round(h) - h).detach()", None),
    "a mask of bools": ("return h * (h > 0)", None),
    "against another tensor": ("return (h > limit).float()", None),
}  # fmt: skip


@pytest.mark.parametrize(("line", "wanted"), CASES.values(), ids=CASES)
def test_the_decision_keeps_its_value(tmp_path: pathlib.Path, line: str, wanted: str | None) -> None:
    """The gradient is that of what is decided on, and of its sign."""
    source = f"import torch\nclass Net:\n    def encode(self, h, limit):\n        {line}\n"
    program = write(tmp_path, {"train.py": source})
    traced = TracedLine(kind=STARVING_CUT, operation="gt", file="train.py", line=line_of(source, line))
    proposal = best("straight_through", program, incident=replace(failed(), traced=(traced,)))
    if wanted is None:
        assert proposal is None
        return
    assert proposal is not None
    after = splice(source, proposal.edits)
    assert after is not None
    assert changed_lines(source, after) == [wanted]
