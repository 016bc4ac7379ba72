"""The index of `gather` has the axes of what it picks from; each program runs, fails, is mended and runs."""

from __future__ import annotations

import pathlib

import pytest

pytestmark = pytest.mark.torch
torch = pytest.importorskip("torch")

from tests.fix.mending import is_mended, mended  # noqa: E402

HEAD = """import torch
torch.manual_seed(0)
q, action, floats = torch.rand(6, 3), torch.randint(0, 3, (6,)), torch.tensor([0.0, 1.0, 2.0, 0.0, 1.0, 2.0])
logp, ids, column = torch.rand(2, 5, 7), torch.randint(0, 7, (2, 5)), torch.rand(6, 1)
"""
WRONG = {
    "the action of each sample": (
        "out = q.gather(1, action)",
        "out = q.gather(1, action.unsqueeze(1)).squeeze(1)",
        "q[torch.arange(6), action]",
    ),
    "the token of each step": (
        "out = torch.gather(logp, -1, ids)",
        "out = torch.gather(logp, -1, ids.unsqueeze(-1)).squeeze(-1)",
        "logp.gather(2, ids[..., None])[..., 0]",
    ),
    "the tokens but the first": (
        "out = logp[:, :-1].gather(-1, ids[:, 1:]).squeeze(-1)",
        "out = logp[:, :-1].gather(-1, ids[:, 1:].unsqueeze(-1)).squeeze(-1)",
        "logp[:, :-1].gather(2, ids[:, 1:, None])[..., 0]",
    ),
    "squeezed already": (
        "out = q.gather(1, action).squeeze(1)",
        "out = q.gather(1, action.unsqueeze(1)).squeeze(1)",
        "q[torch.arange(6), action]",
    ),
    "squeezed later": (
        "picked = q.gather(1, action)\nout = picked.squeeze(1)",
        "picked = q.gather(1, action.unsqueeze(1))",
        "q[torch.arange(6), action]",
    ),
    "beside a column": (
        "picked = q.gather(1, action)\nout = picked - column",
        "picked = q.gather(1, action.unsqueeze(1))",
        "q.gather(1, action[:, None]) - column",
    ),
    "labels as rows of ones": (
        "out = torch.zeros(6, 3).scatter_(1, action, 1.0)",
        "out = torch.zeros(6, 3).scatter_(1, action.unsqueeze(1), 1.0)",
        "torch.eye(3)[action]",
    ),
    "values of each": (
        "out = torch.zeros(6, 3).scatter_add_(-1, action, floats)",
        "out = torch.zeros(6, 3).scatter_add_(-1, action.unsqueeze(-1), floats.unsqueeze(-1))",
        "torch.eye(3)[action] * floats[:, None]",
    ),
}


@pytest.mark.parametrize(("body", "line", "equal"), WRONG.values(), ids=WRONG)
def test_one_value_is_picked_for_each(tmp_path: pathlib.Path, body: str, line: str, equal: str) -> None:
    """What is picked has the shape in which it is used."""
    assert is_mended("index_of_gather", HEAD, body, line, equal, tmp_path)


@pytest.mark.parametrize(
    "body", ["out = q.gather(0, action)", "out = logp.gather(2, action)"], ids=["rows", "two axes"]
)
def test_nothing_is_guessed(tmp_path: pathlib.Path, body: str) -> None:
    """Along another axis than the last, or of more axes than one."""
    assert mended("index_of_gather", f"{HEAD}{body}\n", tmp_path) == f"{HEAD}{body}\n"
