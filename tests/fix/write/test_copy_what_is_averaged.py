"""An average of weights holds copies of them; each program runs, fails, is mended and runs."""

from __future__ import annotations

import pathlib

import pytest

pytestmark = pytest.mark.torch
torch = pytest.importorskip("torch")

from tests.fix.mending import mended, run  # noqa: E402
from tests.fix.rewriting import changed_lines  # noqa: E402

SOURCE = """import torch
torch.manual_seed(0)
model = torch.nn.Linear(2, 1)
before = [p.detach().clone() for p in model.parameters()]


class Average:
    def __init__(self, model):
        self.shadow = {n: p for n, p in model.named_parameters()}

    def update(self, model):
        for n, p in model.named_parameters():
            self.shadow[n].mul_(0.5).add_(p, alpha=0.5)


average = Average(model)
with torch.no_grad():
    model.weight.add_(1)
average.update(model)
out = average.shadow["weight"]
"""
LISTED = (
    SOURCE.replace("{n: p for n, p in model.named_parameters()}", "list(model.parameters())")
    .replace(
        """        for n, p in model.named_parameters():
            self.shadow[n].mul_(0.5).add_(p, alpha=0.5)""",
        """        for s, p in zip(self.shadow, model.parameters()):
            s.lerp_(p, 0.5)""",
    )
    .replace('shadow["weight"]', "shadow[0]")
)
CALLED = SOURCE.replace("{n: p for n, p in model.named_parameters()}", "dict(model.named_parameters())")
WRONG = {
    "a dictionary": (SOURCE, "{n: p.detach().clone() for n, p in model.named_parameters()}"),
    "a list": (LISTED, "[p.detach().clone() for p in model.parameters()]"),
    "by a call": (CALLED, "{name: p.detach().clone() for name, p in model.named_parameters()}"),
}


@pytest.mark.parametrize(("source", "made"), WRONG.values(), ids=WRONG)
def test_copies_are_averaged(source: str, made: str, tmp_path: pathlib.Path) -> None:
    """The model is what it was, and the average lies between the two."""
    after = mended("copy_what_is_averaged", source, tmp_path)
    lines = changed_lines(source, after)
    assert lines[:2] == [f"self.shadow = {made}", "with torch.no_grad():"]
    told = run(after, tmp_path / "after.py")
    assert torch.equal(told["model"].weight, told["before"][0] + 1)
    assert torch.allclose(told["out"], told["before"][0] + 0.5)
    assert not told["out"].requires_grad


RIGHT = {
    "another model's": SOURCE.replace("model.named_parameters()}", "old.named_parameters()}").replace(
        "class Average", "old = torch.nn.Linear(2, 1)\n\n\nclass Average"
    ),
    "a copy's": SOURCE.replace("        self.shadow", "        import copy\n        model = copy.deepcopy(model)\n        self.shadow"),
}  # fmt: skip


@pytest.mark.parametrize("source", RIGHT.values(), ids=RIGHT)
def test_the_parameters_of_others_stay(source: str, tmp_path: pathlib.Path) -> None:
    """Those of a copy, or of another model, may be written."""
    assert mended("copy_what_is_averaged", source, tmp_path) == source


@pytest.mark.parametrize("codemod", ["write_out_of_place", "write_under_no_grad"])
@pytest.mark.parametrize("source", [one for one, _ in WRONG.values()], ids=WRONG)
def test_no_other_edit_writes_the_model(codemod: str, source: str, tmp_path: pathlib.Path) -> None:
    """Out of place the update would be lost; under no_grad alone it would write the parameters."""
    assert mended(codemod, source, tmp_path, options={"at": "raise"}) == source
