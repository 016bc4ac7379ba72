"""What is computed again, beside the tensor that a derivative is asked for by, becomes that tensor."""

from __future__ import annotations

import pathlib

import pytest

from tests.fix.rewriting import changed_lines, rewritten

MESSAGE = "One of the differentiated Tensors appears to not have been used in the graph. Set allow_unused=True if this is the desired behavior."
PROGRAM = """\
import torch


def penalty(critic, real, fake, mix):
    between = ({made}).requires_grad_(True)
    scores = critic({given})
    (slope,) = torch.autograd.grad(scores.sum(), {by}, create_graph=True)
    return slope.square().mean()
"""
MIXED = "mix * real + (1 - mix) * fake"


def edited(
    folder: pathlib.Path, made: str = MIXED, given: str = MIXED, by: str = "between", message: str = MESSAGE
) -> list[str]:
    """The lines that change where the derivative was refused."""
    source = PROGRAM.format(made=made, given=given, by=by)
    return changed_lines(source, rewritten(folder, "use_the_leaf", source, "autograd.grad", message=message))


@pytest.mark.parametrize("by", ["between", "[between]", "(between,)"])
def test_the_tensor_itself(tmp_path: pathlib.Path, by: str) -> None:
    """In whatever form it is asked for."""
    assert edited(tmp_path, by=by) == ["scores = critic(between)"]


def test_within_an_expression(tmp_path: pathlib.Path) -> None:
    """What is done with it stays."""
    assert edited(tmp_path, given=f"torch.cat([{MIXED}, mix], 1)") == ["scores = critic(torch.cat([between, mix], 1))"]


@pytest.mark.parametrize(
    "given",
    [
        pytest.param({"given": "mix * fake + (1 - mix) * real"}, id="another mixture"),
        pytest.param(
            {"made": "real + torch.rand_like(real)", "given": "real + torch.rand_like(real)"}, id="another draw"
        ),
        pytest.param({"made": "real", "given": "real"}, id="a name"),
        pytest.param({"message": "it failed"}, id="another failure"),
        pytest.param({"by": "real"}, id="of another tensor"),
    ],
)
def test_left_as_it_is(tmp_path: pathlib.Path, given: dict[str, str]) -> None:
    """Only the same words, which compute the same."""
    assert edited(tmp_path, **given) == []
