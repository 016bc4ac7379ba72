"""A repaired write in place is held against the failed program's twin: it trains on the values that were used, or it is red."""

from __future__ import annotations

import pathlib
import sys

import pytest

from explainer.fix.choice import Choice
from explainer.model.finding import Finding, Fix
from explainer.model.patch import FilePatch
from explainer.proof import SAVED, Target, wants_look, with_look
from explainer.repair import _Attempt
from explainer.run import Job

pytestmark = pytest.mark.torch
pytest.importorskip("torch")

WAVE = """import torch
from torch import nn

torch.manual_seed(0)
speed = nn.Parameter(torch.full((8,), 0.3))
optimizer = torch.optim.SGD([speed], lr=0.1)


def simulate(u):
    frames = []
    for _ in range(4):
        u += 0.1 * torch.sin(speed * u)
        frames.append({kept})
    return torch.stack(frames)


for step in range(4):
    loss = simulate(torch.linspace(-1, 1, 8) * speed).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""
OTHERWISE = "gradients are not those of the values that the program used before the edit"


@pytest.mark.parametrize(
    ("kept", "verdict"),
    [
        pytest.param("u", "red", id="the state itself is kept"),
        pytest.param("u.clone()", "green", id="copies are kept", marks=pytest.mark.slow),
    ],
)
def test_an_edit_that_computes_something_else_is_red(tmp_path: pathlib.Path, catalog, kept: str, verdict: str) -> None:
    """Every entry of `frames` is the last state: out of place each is another one, which trains as well, and otherwise."""
    text = WAVE.format(kept=kept)
    path = tmp_path / "train.py"
    path.write_text(text)
    change = FilePatch(file=str(path), before=text.encode(), after=text.replace("u += ", "u = u + ").encode())
    fix = Fix(id="out-of-place", title="", applicability="safe", kind="edit", patch="", changes=(change,))
    finding = Finding(
        cause="inplace/op-on-saved-tensor", title="", summary="", kind="failure", confidence="likely", score=1.0, fixes=(fix,)
    )  # fmt: skip
    choice = Choice(finding=finding, fix=fix)
    job = Job(command=(sys.executable, "train.py"), root=str(tmp_path), catalog=catalog)
    assert wants_look(Target(), choice)
    target = with_look(job, Target(), choice)
    assert not wants_look(target, choice)
    attempt = _Attempt(job, lambda _: None, target)
    assert attempt._apply(finding, fix)
    proof = attempt._verify(finding, fix)
    attempt.take_all_back()
    assert proof.verdict == verdict
    if verdict == "red":
        assert any(reason.startswith(OTHERWISE) for reason in proof.reasons)
    else:
        assert (proof.comparison.against, proof.comparison.verdict) == ("meant", "same")


def test_the_causes_are_those_of_the_rules(catalog) -> None:
    """A cause that is renamed would be held to nothing, in silence; one of a silent run has no forward to be held to."""
    assert set(catalog.cause_ids) >= SAVED
    fix = Fix(id="one", title="", applicability="safe", kind="edit", patch="")
    finding = Finding(cause=min(SAVED), title="", summary="", kind="failure", confidence="likely", score=1.0)
    assert not wants_look(Target(is_silent=True), Choice(finding=finding, fix=fix))
