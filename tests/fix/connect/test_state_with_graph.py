"""Weights on which a module is called are taken with their graph."""

from __future__ import annotations

import pathlib

import pytest

from tests.fix.mending import run
from tests.fix.rewriting import changed_lines, rewritten

pytestmark = pytest.mark.torch
torch = pytest.importorskip("torch")

HEAD = "import torch, copy\nfrom torch import nn\nfrom torch.func import functional_call\nnet = nn.Linear(3, 1)\nx = torch.ones(2, 3)\n"
SAID = "element 0 of tensors does not require grad and does not have a grad_fn"
ADAPT = """loss = functional_call(net, weights, (x,)).square().mean()
grads = torch.autograd.grad(loss, list(weights.values()), create_graph=True)
adapted = {name: one - 0.1 * grad for (name, one), grad in zip(weights.items(), grads)}
functional_call(net, adapted, (x,)).mean().backward()
out = net.weight.grad
"""


@pytest.mark.parametrize(
    "made", ["weights = STATE", "weights = {name: one for name, one in STATE.items()}", "weights = dict(STATE)"]
)
def test_the_inner_loop_reaches_the_weights(tmp_path: pathlib.Path, made: str) -> None:
    source = f"{HEAD}torch.manual_seed(0)\n{made.replace('STATE', 'net.state_dict()')}\n{ADAPT}"
    with pytest.raises(RuntimeError, match="does not require grad"):
        run(source, tmp_path / "before.py")
    after = rewritten(tmp_path, "state_with_graph", source, "grads =", message=SAID)
    assert changed_lines(source, after) == [made.replace("STATE", "net.state_dict(keep_vars=True)")]
    assert run(after, tmp_path / "after.py")["out"].abs().sum() > 0


@pytest.mark.parametrize(
    "made",
    ["torch.save(net.state_dict(), 'a.pt')", "kept = copy.deepcopy(net.state_dict())", "other.load_state_dict(net.state_dict())"],
)  # fmt: skip
def test_what_is_stored_stays(tmp_path: pathlib.Path, made: str) -> None:
    source = f"{HEAD}{made}\nfunctional_call(net, weights, (x,)).sum().backward()\n"
    assert rewritten(tmp_path, "state_with_graph", source, "backward()", message=SAID) == source
