"""A run that failed before its first step has no step's gradients; those of its first backward are held against a cut."""

from __future__ import annotations

import difflib
import pathlib

import pytest

from explainer.proof import CARRIED, UNREDUCED, Target, wants_look, with_look
from explainer.repair import _Attempt
from explainer.run import Job
from tests import forked
from tests.verification.programs import chosen

pytestmark = pytest.mark.torch
pytest.importorskip("torch")

CHUNKED = """import torch
from torch import nn

torch.manual_seed(0)
cell, head, start = nn.GRUCell(3, 4), nn.Linear(4, 1), nn.Linear(2, 4)
optimizer = torch.optim.SGD([*cell.parameters(), *head.parameters(), *start.parameters()], lr=0.1)


def follow(chunk, state):
    for frame in chunk:
        state = cell(frame, state)
    return head(state).square().mean(), state


state = start(torch.ones(2, 2))
for chunk in torch.randn(3, 4, 2, 3):
    loss, state = follow(chunk, state)
    loss.backward()
optimizer.step()
"""


@pytest.mark.parametrize(
    ("old", "new", "verdict"),
    [
        pytest.param("cell(frame, state)", "cell(frame, state.detach())", "red", id="inside a chunk"),
        pytest.param("follow(chunk, state)\n    loss", "follow(chunk, state.detach())\n    loss", "red", id="before the first"),
        pytest.param("loss.backward()", "loss.backward()\n    state = state.detach()", "green", id="behind a chunk"),
    ],
)  # fmt: skip
def test_a_cut_changes_nothing_in_the_first_backward(
    tmp_path: pathlib.Path, catalog, old: str, new: str, verdict: str
) -> None:
    after = CHUNKED.replace(old, new)
    patch = "\n".join(
        difflib.unified_diff(CHUNKED.splitlines(), after.splitlines(), "a/train.py", "b/train.py", lineterm="")
    )
    choice = chosen(tmp_path / "train.py", CHUNKED, after, CARRIED, patch)
    job = Job(command=(forked.python(), "train.py"), root=str(tmp_path), catalog=catalog)
    assert wants_look(Target(), choice)
    target = with_look(job, Target(), choice)
    attempt = _Attempt(job, lambda line: None, target)
    assert attempt._apply(choice.finding, choice.fix)
    proof = attempt._verify(choice.finding, choice.fix)
    assert proof.verdict == verdict
    if verdict == "red":
        assert "trained before, and now with other gradients: the edit changes what was right" in proof.reasons[0]


def test_gradients_that_were_never_reduced(tmp_path: pathlib.Path) -> None:
    """A layer that DDP waited for is frozen: each rank had its own gradients before, and has the mean of all now."""
    frozen = CHUNKED.replace("nn.Linear(2, 4)", "nn.Linear(2, 4).requires_grad_(False)")
    patch = "\n".join(
        difflib.unified_diff(CHUNKED.splitlines(), frozen.splitlines(), "a/train.py", "b/train.py", lineterm="")
    )
    for cause, is_held in ((UNREDUCED, False), ("inplace/op-on-saved-tensor", True)):
        choice = chosen(tmp_path / "train.py", CHUNKED, frozen, cause, patch)
        assert wants_look(Target(past=(("SGD", 1),)), choice) == is_held
