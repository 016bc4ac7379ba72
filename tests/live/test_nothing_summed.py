"""A loss that is the number 0 because nothing was there to be added, beside one that was made a number."""

from __future__ import annotations

import linecache

import pytest

pytestmark = pytest.mark.torch

PROGRAM = """import torch
from torch import nn

model = nn.Linear(2, 1)


def term(x):
    try:
        return model(x).mean()
    except RuntimeError:
        return None


def main():
    losses = [one for x in {batches} if (one := term(x)) is not None]
    total = {total}
    total.backward()


main()
"""
BAD, GOOD = "[torch.ones(2, 3), torch.ones(2, 4)]", "[torch.ones(2, 2)]"


def _explained(batches: str, total: str):
    import gradfix

    name, text = f"<nothing {batches} {total}>.py", PROGRAM.format(batches=batches, total=total)
    linecache.cache[name] = (len(text), None, text.splitlines(True), name)
    with pytest.raises(AttributeError) as caught:
        exec(compile(text, name, "exec"), {"__name__": "program"})
    return gradfix.explain(caught.value).findings[0]


@pytest.mark.parametrize("total", ["sum(losses)", "sum(losses) / 2"])
def test_a_loss_of_no_terms_was_not_cut(total: str) -> None:
    found = _explained(BAD, total)
    assert found.cause == "no-graph/loss-not-from-model"
    assert any("`losses` is empty" in one.says for one in found.evidence)


def test_a_loss_that_was_made_a_number_was_cut() -> None:
    assert _explained(GOOD, "sum(one.item() for one in losses)").cause == "no-graph/detached"
