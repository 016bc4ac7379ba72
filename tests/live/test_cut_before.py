"""A cut that was there when the same backward went well is not what stops it now."""

from __future__ import annotations

import pytest

pytestmark = pytest.mark.torch
torch = pytest.importorskip("torch")

from tests.live.tracing import lines  # noqa: E402


def rounds(*, thaws: bool, cuts_late: bool) -> None:
    """Two rounds of a critic that scores what a painter made."""
    painter, critic = torch.nn.Linear(3, 3), torch.nn.Linear(3, 1)
    for step in range(2):
        fake = painter(torch.randn(2, 3))
        scores = critic(fake.detach())
        if cuts_late and step:
            scores = scores.data
        scores.mean().backward()
        critic.requires_grad_(thaws)


def test_what_was_cut_before_is_no_cause() -> None:
    """The critic was frozen after the first round; the painter's graph has always ended there."""
    assert [one for one in lines(lambda: rounds(thaws=False, cuts_late=False)) if one.kind == "cut"] == []


def test_what_is_cut_for_the_first_time_is() -> None:
    found = [one for one in lines(lambda: rounds(thaws=True, cuts_late=True)) if one.kind == "cut"]
    assert [one.operation for one in found][0] == "data"


def test_the_first_backward_of_all() -> None:
    def step() -> None:
        torch.nn.Linear(3, 1)(torch.randn(2, 3)).detach().mean().backward()

    assert [(one.kind, one.operation) for one in lines(step)] == [("cut", "detach")]
