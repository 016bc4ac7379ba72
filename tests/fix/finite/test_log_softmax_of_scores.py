"""The logarithm of scores that a loss takes for logarithms of probabilities."""

from __future__ import annotations

import pathlib

import pytest

from explainer.fix.splice import splice
from explainer.verification.live_report import TRACED
from explainer.verification.traced import with_trace
from tests.fix.rewriting import best, changed_lines, failed, line_of, write

SOURCE = """import torch
from torch.nn import functional as F
torch.manual_seed(0)
scores = MADE(torch.nn.Linear(3, 4)(torch.randn(8, 3)))
y = torch.randint(0, 4, (8,))
HEAD
loss = F.nll_loss(GIVEN, y)
if not torch.isfinite(loss):
    raise RuntimeError("the loss is not finite")
"""
WRITTEN = {
    "in the call": ("", "torch.log(scores)", "loss = F.nll_loss(torch.log_softmax(scores, 1), y)"),
    "by a name": ("logs = scores.log()", "logs", "logs = torch.log_softmax(scores, 1)"),
}


def after(source: str, folder: pathlib.Path) -> str:
    import gradfix

    program = write(folder, {"train.py": source})
    with pytest.raises(RuntimeError, match="not finite") as raised, gradfix.trace(finite=True):
        exec(compile(source, str(folder / "train.py"), "exec"), {})  # noqa: S102
    incident = with_trace(failed({"train.py": line_of(source, "raise")}), getattr(raised.value, TRACED))
    proposal = best("log_softmax_of_scores", program, incident=incident)
    return (splice(source, proposal.edits) or "") if proposal is not None else source


@pytest.mark.torch
@pytest.mark.parametrize(("head", "given", "wanted"), WRITTEN.values(), ids=WRITTEN)
def test_they_become_probabilities(head: str, given: str, wanted: str, tmp_path: pathlib.Path) -> None:
    """The loss is then that of cross entropy."""
    torch = pytest.importorskip("torch")
    source = SOURCE.replace("MADE", "").replace("HEAD", head).replace("GIVEN", given)
    mended = after(source, tmp_path)
    assert changed_lines(source, mended) == [wanted]
    space: dict = {}
    exec(compile(mended, "after", "exec"), space)  # noqa: S102
    assert torch.allclose(space["loss"], torch.nn.functional.cross_entropy(space["scores"], space["y"]))


@pytest.mark.torch
def test_zeros_are_no_scores(tmp_path: pathlib.Path) -> None:
    """A logarithm of 0 is infinite, and may be of probabilities."""
    pytest.importorskip("torch")
    source = SOURCE.replace("MADE", "torch.relu").replace("HEAD", "").replace("GIVEN", "torch.log(scores)")
    assert after(source, tmp_path) == source
