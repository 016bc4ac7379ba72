"""An inner loop that is differentiated asks for its gradients; the program runs, and the outer gradients are those by hand."""

from __future__ import annotations

import pathlib

import pytest

pytestmark = pytest.mark.torch
torch = pytest.importorskip("torch")

from tests.fix.mending import mended, run  # noqa: E402
from tests.fix.rewriting import rewritten  # noqa: E402

HEAD = """import torch
x = torch.tensor([1.0, 2.0])
w = torch.nn.Parameter(torch.tensor([0.5, -0.5]))
rate = torch.nn.Parameter(torch.tensor(0.1))
"""
LIST = """fast = [w]
for _ in range(2):
    loss = (fast[0] * x).square().sum()
    loss.backward(create_graph=True)
    fast = [p - rate * p.grad for p in fast]
out = (fast[0] * x).sum()
"""
DICTIONARY = """fast = {"w": w}
for _ in range(2):
    loss = (fast["w"] * x).square().sum()
    loss.backward(create_graph=True)
    fast = {name: p - rate * p.grad for name, p in fast.items()}
out = (fast["w"] * x).sum()
"""
LEFT = {
    "no graph is kept": LIST.replace("create_graph=True", ""),
    "other weights": LIST.replace("p.grad", "other.grad"),
    "a condition": LIST.replace("for p in fast]", "for p in fast if p.grad is not None]"),
    "something between": LIST.replace("    fast =", "    print(loss)\n    fast ="),
}


@pytest.mark.filterwarnings("ignore:Using backward:UserWarning", "ignore:The .grad attribute:UserWarning")
@pytest.mark.parametrize("body", [LIST, DICTIONARY], ids=["a list", "a dictionary"])
def test_the_outer_gradients(body: str, tmp_path: pathlib.Path) -> None:
    """Two steps of w - r * 2 w x^2: each factor is 1 - 2 r x^2."""
    after = mended("grad_of_fast_weights", HEAD + body, tmp_path)
    space = run(after, tmp_path / "after.py")
    found = torch.autograd.grad(space["out"], [space["w"], space["rate"]])
    w, x, rate = space["w"].detach(), space["x"], 0.1
    factor = 1 - 2 * rate * x.square()
    assert torch.allclose(found[0], factor.square() * x)
    assert torch.allclose(found[1], (w * x * 2 * factor * (-2 * x.square())).sum())


@pytest.mark.parametrize("body", LEFT.values(), ids=LEFT)
def test_others_stay(body: str, tmp_path: pathlib.Path) -> None:
    """What is no inner loop that is differentiated, or is written in another way."""
    assert rewritten(tmp_path, "grad_of_fast_weights", HEAD + body, "loss.backward") == HEAD + body
