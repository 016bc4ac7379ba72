"""A loop over all parameters passes over those without a gradient, where the live model had some of others."""

from __future__ import annotations

import pathlib
from dataclasses import replace

import pytest

from explainer.fix.splice import splice
from explainer.model.incident import Fact
from tests.fix.rewriting import best, failed, line_of, write

HEAD = "loss.backward()\n"
LOOPS = {
    "a loop": (
        "for p in net.parameters():\n    p.grad.data.clamp_(-1, 1)\n",
        "for p in net.parameters():\n    if p.grad is not None:\n        p.grad.data.clamp_(-1, 1)\n",
    ),
    "what is made of it": (
        "for n, p in net.named_parameters():\n    size = p.grad.norm()\n    total += size\n    p.grad /= size\n    print(n)\n",
        "for n, p in net.named_parameters():\n    if p.grad is not None:\n        size = p.grad.norm()\n        total += size\n"
        "        p.grad /= size\n    print(n)\n",
    ),
    "a sum": (
        "total = sum(p.grad.norm() ** 2 for p in net.parameters())\n",
        "total = sum(p.grad.norm() ** 2 for p in net.parameters() if p.grad is not None)\n",
    ),
}
KEPT = {
    "a list of other tensors": "for p in rows:\n    p.grad.data.clamp_(-1, 1)\n",
    "one parameter": "net.weight.grad.data.clamp_(-1, 1)\n",
}


def mended(source: str, folder: pathlib.Path, *, is_live: bool = True) -> str:
    incident = failed({"train.py": line_of(source, "grad.")}, "'NoneType' object has no attribute 'data'")
    facts = (Fact(name="live_without_gradient", value="Net: value.weight"),) if is_live else ()
    proposal = best(
        "skip_without_gradient", write(folder, {"train.py": source}), incident=replace(incident, facts=facts)
    )
    return source if proposal is None else splice(source, proposal.edits) or ""


@pytest.mark.parametrize(("loop", "wanted"), LOOPS.values(), ids=LOOPS)
def test_what_has_none_is_passed_over(loop: str, wanted: str, tmp_path: pathlib.Path) -> None:
    """Where none of the model has one, the loop stands in the wrong place, and stays."""
    assert mended(HEAD + loop, tmp_path) == HEAD + wanted
    assert mended(HEAD + loop, tmp_path, is_live=False) == HEAD + loop


@pytest.mark.parametrize("loop", KEPT.values(), ids=KEPT)
def test_others_stay(loop: str, tmp_path: pathlib.Path) -> None:
    """What is no parameter of a module was to have its gradient."""
    assert mended(HEAD + loop, tmp_path) == HEAD + loop


CALLS = {
    "under a condition": ("a + self.value(a) if self.is_dueling else a", True),
    "always": ("a + 0 * self.value(a).detach()", False),
}


@pytest.mark.parametrize(("result", "is_mended"), CALLS.values(), ids=CALLS)
def test_a_part_that_is_always_run_was_to_be_trained(result: str, is_mended: bool, tmp_path: pathlib.Path) -> None:
    """What became of its output is to be found; one that a setting leaves out has nothing to clip."""
    net = f"class Net(nn.Module):\n    def forward(self, a):\n        return {result}\n\n\n"
    loop, wanted = LOOPS["a loop"]
    assert mended(net + HEAD + loop, tmp_path) == net + HEAD + (wanted if is_mended else loop)
