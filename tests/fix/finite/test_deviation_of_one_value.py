"""A deviation that is NaN for a single value of data counts as 0, where what divides by it is kept from 0."""

from __future__ import annotations

import pathlib
from dataclasses import replace

import pytest

from explainer.model.incident import Fact
from explainer.model.trace import NOT_FINITE, TracedLine
from tests.fix.rewriting import best, changed_lines, failed, write

TOP = "import torch\ndef scale(values, eps=1e-8):\n"
FACT = Fact(name="traced_nan_without_graph", value="std")
MENDED = {
    "a small number is added": ("    return (values - values.mean()) / (values.std() + eps)\n", "return (values - values.mean()) / (values.std().nan_to_num() + eps)"),
    "added in front": ("    return (values - values.mean()) / (eps + torch.std(values))\n", "return (values - values.mean()) / (eps + torch.std(values).nan_to_num())"),
    "clamped": ("    return values / values.std(0).clamp_min(eps)\n", "return values / values.std(0).nan_to_num().clamp_min(eps)"),
    "clamped by a function": ("    return values / torch.clamp(values.std(), min=eps)\n", "return values / torch.clamp(values.std().nan_to_num(), min=eps)"),
}  # fmt: skip
LEFT = {
    "nothing keeps it from 0": "    return (values - values.mean()) / values.std()\n",
    "two of them": "    return (values.std() + eps) / (values.mean().std() + eps)\n",
    "counted already": "    return values / (values.std().nan_to_num() + eps)\n",
    "biased on purpose": "    return values / torch.sqrt(values.square().mean() + eps)\n",
}


ASKED = {
    "over frames": ("    return torch.cat([values.mean(0), values.std(0)])\n", "return torch.cat([values.mean(0), values.std(0) if values.size(0) > 1 else torch.zeros_like(values.mean(0))])"),
    "over all": ("    return torch.stack([values.mean(), torch.std(values)])\n", "return torch.stack([values.mean(), torch.std(values) if values.numel() > 1 else torch.zeros_like(values.mean())])"),
    "a divisor that has a name": ("    spread = values.std(dim=0, keepdim=True)\n    return values / spread\n", None),
    "a divisor with a floor": ("    return values / (values.std(0) + 1e-5)\n", None),
    "a divisor": ("    return values / values.std(0)\n", None),
    "of an expression": ("    return (values * 2).std(0)\n", None),
}  # fmt: skip


@pytest.mark.torch
@pytest.mark.parametrize(("body", "after"), ASKED.values(), ids=ASKED)
def test_a_single_value_is_asked_for(body: str, after: str | None, tmp_path: pathlib.Path) -> None:
    """Where a gradient goes through: that of one value is finite, and all others have theirs."""
    torch = pytest.importorskip("torch")
    from explainer.fix.splice import splice

    _, found = proposed(tmp_path, TOP + body, node="StdBackward0")
    assert (found is None) == (after is None)
    if found is None:
        return
    assert found.applicability == "unsafe"
    text = splice(TOP + body, found.edits) or ""
    assert changed_lines(TOP + body, text) == [after]
    before: dict = {}
    space: dict = {}
    exec(TOP + body, before)  # noqa: S102
    exec(text, space)  # noqa: S102
    many, one = torch.randn(5, 3, requires_grad=True), torch.randn(1, 1, requires_grad=True)
    wanted = torch.autograd.grad(before["scale"](many).sum(), many)[0]
    torch.testing.assert_close(torch.autograd.grad(space["scale"](many).sum(), many)[0], wanted)
    result = space["scale"](one).sum()
    assert result.isfinite()
    if result.requires_grad:
        assert torch.autograd.grad(result, one)[0].isfinite().all()


def proposed(folder: pathlib.Path, text: str, *facts: Fact, operation: str = "std", node: str | None = None):
    program = write(folder, {"train.py": text})
    traced = TracedLine(kind=NOT_FINITE, operation=operation, file=str(folder / "train.py"), line=3, node=node)
    incident = replace(failed(), traced=(traced,), facts=facts)
    return program, best("deviation_of_one_value", program, incident=incident)


@pytest.mark.parametrize(("body", "after"), MENDED.values(), ids=MENDED)
def test_one_value_has_no_deviation(body: str, after: str, tmp_path: pathlib.Path) -> None:
    """All other values keep theirs."""
    from explainer.fix.splice import splice

    _, found = proposed(tmp_path, TOP + body, FACT)
    assert found is not None
    assert changed_lines(TOP + body, splice(TOP + body, found.edits) or "") == [after]


@pytest.mark.parametrize("body", LEFT.values(), ids=LEFT)
def test_what_would_stay_nan(body: str, tmp_path: pathlib.Path) -> None:
    """An edit that cures nothing is none."""
    assert proposed(tmp_path, TOP + body, FACT)[1] is None


def test_only_what_was_traced(tmp_path: pathlib.Path) -> None:
    """Not with a graph behind it, and not where another operation made the NaN."""
    body = next(iter(MENDED.values()))[0]
    assert proposed(tmp_path, TOP + body)[1] is None
    assert proposed(tmp_path, TOP + body, FACT, operation="log")[1] is None


def test_what_an_episode_of_one_step_teaches_is_the_authors_choice(tmp_path: pathlib.Path) -> None:
    """The line of normalised returns is named, and nothing written."""
    body = next(iter(MENDED.values()))[0].replace("values", "returns")
    _, found = proposed(tmp_path, TOP + body, FACT)
    assert found is not None
    assert found.edits == ()
