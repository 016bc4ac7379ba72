"""What a codebook returns hands its gradient on to what it quantises."""

from __future__ import annotations

import pathlib

import pytest

from explainer.fix.splice import splice
from explainer.model.incident import Incident
from explainer.model.trace import STARVING_CUT, TracedLine
from tests.fix.rewriting import best, diff_lines, line_of, write

HEAD = """import torch
import torch.nn as nn
import torch.nn.functional as F
class Book(nn.Module):
    def __init__(self):
        super().__init__()
        self.table = nn.Embedding(8, 4)
"""
HERE = (
    HEAD
    + """    def forward(self, z):
        codes = torch.cdist(z, self.table.weight).argmin(1)
        q = {entries}
        loss = {loss}
        return {returned}
"""
)
HELPER = (
    HEAD
    + """    def nearest(self, z):
        return torch.cdist(z, self.table.weight).argmin(1)
    def forward(self, z):
        codes = self.nearest(z)
        q = self.table(codes)
        loss = F.mse_loss(q, z.detach())
        return q, codes, loss
"""
)
PULL = "F.mse_loss(q, z.detach())"
LOOKUP = "self.table(codes)"
WRONG = {
    "a tuple": (HERE.format(entries=LOOKUP, loss=PULL, returned="q, loss"), "return z + (q - z).detach(), loss"),
    "a helper that chooses": (HELPER, "return z + (q - z).detach(), codes, loss"),
    "both pulls": (
        HERE.format(entries=LOOKUP, loss="F.mse_loss(q, z.detach()) + 0.25 * F.mse_loss(z, q.detach())", returned="q, loss"),
        "return z + (q - z).detach(), loss",
    ),
    "a difference": (
        HERE.format(entries="self.table.weight[codes]", loss="(q - z.detach()).pow(2).mean()", returned="q.unsqueeze(0), loss"),
        "return (z + (q - z).detach()).unsqueeze(0), loss",
    ),
    "a dictionary": (
        HERE.format(entries=LOOKUP, loss=PULL, returned='{"q": q, "loss": loss}'), 'return {"q": z + (q - z).detach(), "loss": loss}',
    ),
}  # fmt: skip
RIGHT = {
    "the estimator is there": HERE.format(
        entries=LOOKUP, loss=PULL + "\n        q = z + (q - z).detach()", returned="q, loss"
    ),
    "the loss is somebody else's": HERE.format(entries=LOOKUP, loss="0.0", returned="q, loss"),
    "the entries are compared with two": HERE.format(
        entries=LOOKUP, loss="F.mse_loss(q, z.detach()) + F.mse_loss(q, x)", returned="q, loss"
    ).replace("forward(self, z)", "forward(self, z, x)"),
    "no entries": HERE.format(entries="codes", loss="0.0", returned="loss"),
    "another value": HERE.format(entries="self.table(other)", loss=PULL, returned="q, loss"),
}  # fmt: skip


def mended(source: str, folder: pathlib.Path, operation: str = "argmin") -> str:
    """The program with what is proposed for the line that was traced."""
    line = TracedLine(
        kind=STARVING_CUT, operation=operation, file="train.py", line=line_of(source, "argmin"), is_guess=True
    )
    found = best("straight_through_codebook", write(folder, {"train.py": source}), incident=Incident(traced=(line,)))
    after = splice(source, found.edits) if found is not None else source
    assert after is not None
    return after


@pytest.mark.parametrize(("source", "line"), WRONG.values(), ids=WRONG)
def test_the_gradient_is_handed_on(source: str, line: str, tmp_path: pathlib.Path) -> None:
    """In what is returned, behind the loss of the codebook; a second time nothing is left to do."""
    after = mended(source, tmp_path)
    assert [one for one in diff_lines(source, after) if one.startswith("+")] == [f"+        {line}"]
    assert mended(after, tmp_path) == after


@pytest.mark.parametrize("source", RIGHT.values(), ids=RIGHT)
def test_what_is_not_such_a_codebook_stays(source: str, tmp_path: pathlib.Path) -> None:
    assert mended(source, tmp_path) == source


def test_only_where_a_choice_was_traced(tmp_path: pathlib.Path) -> None:
    source, _ = WRONG["a tuple"]
    assert mended(source, tmp_path, "detach") == source


@pytest.mark.torch
def test_all_three_parts_train(tmp_path: pathlib.Path) -> None:
    """The encoder gets the decoder's gradient as it is at the entry, and the entries that of their own loss alone."""
    torch = pytest.importorskip("torch")
    source, _ = WRONG["a tuple"]
    scope: dict[str, object] = {}
    exec(compile(mended(source, tmp_path), "train.py", "exec"), scope)  # noqa: S102
    torch.manual_seed(0)
    book = scope["Book"]()  # type: ignore[operator]
    z = torch.randn(5, 4, requires_grad=True)
    q, loss = book(z)
    (q.square().sum() + loss).backward()
    codes = torch.cdist(z, book.table.weight).argmin(1)
    entries = book.table.weight.detach()[codes]
    torch.testing.assert_close(z.grad, 2 * entries)
    own = torch.zeros(8, 4).index_add_(0, codes, 2 * (entries - z.detach()) / z.numel())
    torch.testing.assert_close(book.table.weight.grad, own)
