"""Labels that are left out pick no row, and count nothing in the sum or the mean of what was picked."""

from __future__ import annotations

import pathlib

import pytest

from tests.fix.rewriting import changed_lines, rewritten

MESSAGE = "index -100 is out of bounds for dimension 2 with size 40"
PROGRAM = """\
import torch

IGNORED = -100


def score(logits, labels):
    logp = logits.log_softmax(-1)
{body}
"""
PICKED = "picked = logp.gather(-1, labels.unsqueeze(-1)).squeeze(-1)"
MENDED = "picked = logp.gather(-1, labels.clamp(min=0).unsqueeze(-1)).squeeze(-1).masked_fill(labels == IGNORED, 0.0)"


def edited(folder: pathlib.Path, *body: str, message: str = MESSAGE) -> list[str]:
    """The lines that change where `gather` raised."""
    source = PROGRAM.format(body="\n".join(f"    {line}" for line in body))
    return changed_lines(source, rewritten(folder, "pick_without_ignored", source, "gather(", message=message))


@pytest.mark.parametrize(
    ("body", "changed"),
    [
        ([PICKED, "return picked.sum(-1)"], [MENDED]),
        ([PICKED, "return -(picked * weights).sum()"], [MENDED]),
        ([PICKED, "return -picked.mean()"], [MENDED, "return -picked.sum() / (labels != IGNORED).sum()"]),
        (
            [PICKED, "return 2 * picked.mean(dim=-1)"],
            [MENDED, "return 2 * (picked.sum(dim=-1) / (labels != IGNORED).sum(dim=-1))"],
        ),
        (
            ["return torch.gather(logp, 2, labels[..., None])[..., 0].sum(-1)"],
            ["return torch.gather(logp, 2, labels.clamp(min=0)[..., None])[..., 0].masked_fill(labels == IGNORED, 0.0).sum(-1)"],
        ),
    ],
)  # fmt: skip
def test_left_out(tmp_path: pathlib.Path, body: list[str], changed: list[str]) -> None:
    """Of sums they are 0, of means they are not counted."""
    assert edited(tmp_path, *body) == changed


@pytest.mark.parametrize(
    "body",
    [
        pytest.param([PICKED, "return picked"], id="handed on"),
        pytest.param([PICKED, "return picked.max()"], id="the largest"),
        pytest.param(["return logp.gather(-1, labels.unsqueeze(-1)).sum()"], id="its axis is kept"),
        pytest.param(["return logp.gather(-1, index).squeeze(-1).sum()"], id="an index of another kind"),
        pytest.param(["return logp.gather(-1, labels.unsqueeze(-1)).squeeze(-1).mean()"], id="a mean on the spot"),
    ],
)
def test_left_as_it_is(tmp_path: pathlib.Path, body: list[str]) -> None:
    """Only what is seen to be added up."""
    assert edited(tmp_path, *body) == []


def test_another_index(tmp_path: pathlib.Path) -> None:
    """A label that is no marker is out of the table."""
    assert edited(tmp_path, PICKED, "return picked.sum()", message=MESSAGE.replace("-100", "57")) == []


def test_the_mean_is_that_of_cross_entropy(tmp_path: pathlib.Path) -> None:
    """With the same gradients."""
    torch = pytest.importorskip("torch")
    source = PROGRAM.format(body=f"    {PICKED}\n    return -picked.mean()")
    after = rewritten(tmp_path, "pick_without_ignored", source, "gather(", message=MESSAGE)
    space: dict[str, object] = {}
    exec(after, space)  # noqa: S102 - the program under test
    logits = torch.randn(2, 5, 7, requires_grad=True)
    labels = torch.tensor([[-100, -100, 3, 6, 0], [-100, 1, 2, -100, 5]])
    ours = torch.autograd.grad(space["score"](logits, labels), logits)[0]  # type: ignore[operator]
    loss = torch.nn.functional.cross_entropy(logits.flatten(0, 1), labels.flatten())
    assert torch.allclose(ours, torch.autograd.grad(loss, logits)[0], atol=1e-6)
