"""A flag that stands in the place of gradients gets its name."""

from __future__ import annotations

import pytest

from tests.fix.rewriting import changed_lines, rewritten

HEAD = (
    "import torch\nfrom torch.autograd import grad\nnet = torch.nn.Linear(2, 1)\nloss = net(torch.ones(1, 2)).sum()\n"
)
GIVEN = {"message": "'bool' object is not iterable"}
WRONG = {
    "backward": ("loss.backward(True)\n", "loss.backward(retain_graph=True)"),
    "a setting": ("loss.backward(cfg.retain)\n", "loss.backward(retain_graph=cfg.retain)"),
    "grad": ("g = grad(loss, net.weight, True)\n", "g = grad(loss, net.weight, create_graph=True)"),
    "grad by its module": (
        "g = torch.autograd.grad(loss, net.weight, not first_order)\n",
        "g = torch.autograd.grad(loss, net.weight, create_graph=not first_order)",
    ),
    "backward of the module": (
        "torch.autograd.backward(loss, True)\n",
        "torch.autograd.backward(loss, retain_graph=True)",
    ),
}
RIGHT = [
    "loss.backward(torch.ones(()))\n",
    "loss.backward(True, retain_graph=True)\n",
    "g = grad(loss, net.weight, [torch.ones(())])\n",
    "g = grad(loss, net.weight, None, True)\n",
    "loss.backward()\n",
]


@pytest.mark.parametrize(("line", "wanted"), WRONG.values(), ids=WRONG)
def test_the_flag_gets_its_name(line: str, wanted: str, tmp_path) -> None:
    """What follows the inputs are gradients, and a flag is none."""
    after = rewritten(tmp_path, "flag_by_keyword", HEAD + line, line.strip(), **GIVEN)
    assert changed_lines(HEAD + line, after) == [wanted]
    assert rewritten(tmp_path, "flag_by_keyword", after, wanted, **GIVEN) == after


@pytest.mark.parametrize("line", RIGHT)
def test_gradients_stay(line: str, tmp_path) -> None:
    """Gradients, flags with a name, and calls with more arguments."""
    assert rewritten(tmp_path, "flag_by_keyword", HEAD + line, line.strip(), **GIVEN) == HEAD + line


@pytest.mark.torch
@pytest.mark.parametrize("call", ["loss.backward(True)", "torch.autograd.grad(loss, [w], True)"])
def test_what_torch_says_of_a_flag(call: str) -> None:
    """The message that the rule knows is what torch raises."""
    torch = pytest.importorskip("torch")
    w = torch.ones(2, requires_grad=True)
    loss = (w * w).sum()
    with pytest.raises(TypeError, match="'bool' object is not iterable"):
        eval(call)
