"""A module's backward hook returns a tuple or None, and one kind of hook is used."""

from __future__ import annotations

import pathlib

import pytest

from explainer.fix.codemod import Context, find_codemod
from explainer.fix.splice import splice
from tests.fix.rewriting import diff_lines, failed, rewritten, write

RIGHT = {
    "a tuple": (
        """import torch
from torch import nn, optim
from torch.nn import functional as F
net = nn.Linear(2, 2)
def hook(module, grad_input, grad_output):
    return (grad_input[0] * 2,)
net.register_full_backward_hook(hook)
""",
        None,
    ),
    "nothing": (
        """import torch
from torch import nn, optim
from torch.nn import functional as F
net = nn.Linear(2, 2)
def hook(module, grad_input, grad_output):
    print(grad_output[0].norm())
net.register_full_backward_hook(hook)
""",
        None,
    ),
    "the gradients as they came": (
        """import torch
from torch import nn, optim
from torch.nn import functional as F
net = nn.Linear(2, 2)
def hook(module, grad_input, grad_output):
    return grad_input
net.register_full_backward_hook(hook)
""",
        None,
    ),
    "a hook of a tensor": (
        """import torch
from torch import nn, optim
from torch.nn import functional as F
def hook(grad):
    return grad * 2
x.register_hook(hook)
""",
        None,
    ),
}
WRONG = {
    "a bare tensor": (
        """import torch
from torch import nn, optim
from torch.nn import functional as F
net = nn.Linear(2, 2)
def hook(module, grad_input, grad_output):
    return grad_input[0] * 2
net.register_full_backward_hook(hook)
""",
        None,
        ["-    return grad_input[0] * 2", "+    return (grad_input[0] * 2,)"],
    ),
    "a lambda": (
        """import torch
from torch import nn, optim
from torch.nn import functional as F
net = nn.Linear(2, 2)
net.register_full_backward_hook(lambda m, gi, go: gi[0].clamp(-1, 1))
""",
        None,
        [
            "-net.register_full_backward_hook(lambda m, gi, go: gi[0].clamp(-1, 1))",
            "+net.register_full_backward_hook(lambda m, gi, go: (gi[0].clamp(-1, 1),))",
        ],
    ),
    "a call": (
        """import torch
from torch import nn, optim
from torch.nn import functional as F
net = nn.Linear(2, 2)
def hook(module, grad_input, grad_output):
    return torch.clamp(grad_input[0], -1, 1)
net.register_full_backward_hook(hook)
""",
        None,
        ["-    return torch.clamp(grad_input[0], -1, 1)", "+    return (torch.clamp(grad_input[0], -1, 1),)"],
    ),
}


TENSOR = "import torch\nx = torch.ones(2, requires_grad=True)\nnorms = Norms()\n"
NUMBER = "expected Variable, but hook returned 'float'"
LOOKS = {
    "a lambda": (
        TENSOR + "x.register_hook(lambda grad: norms.update(grad.norm().item()))\n",
        ["-x.register_hook(lambda grad: norms.update(grad.norm().item()))",
         "+def hook(grad):", "+    norms.update(grad.norm().item())", "+", "+x.register_hook(hook)"],
    ),
    "a function": (
        TENSOR + "def look(grad):\n    return norms.update(grad.norm().item())\nx.register_hook(look)\n",
        ["-    return norms.update(grad.norm().item())", "+    norms.update(grad.norm().item())"],
    ),
    "a scaled gradient": (TENSOR + "x.register_hook(lambda grad: grad * 2)\n", []),
}  # fmt: skip


@pytest.mark.parametrize(("source", "changes"), LOOKS.values(), ids=LOOKS)
def test_a_hook_that_looks_gives_nothing_back(source: str, changes: list[str], tmp_path: pathlib.Path) -> None:
    """What its last call returns is no gradient."""
    after = rewritten(tmp_path, "contract_of_hook", source, message=NUMBER)
    assert diff_lines(source, after) == changes
    assert rewritten(tmp_path, "contract_of_hook", after, message=NUMBER) == after


@pytest.mark.parametrize(("source", "at"), RIGHT.values(), ids=RIGHT)
def test_right_programs_stay(source: str, at: str | None, tmp_path: pathlib.Path) -> None:
    """Nothing is proposed where the fault is not."""
    assert rewritten(tmp_path, "contract_of_hook", source, at) == source


@pytest.mark.parametrize(("source", "at", "changes"), WRONG.values(), ids=WRONG)
def test_wrong_programs_are_mended(source: str, at: str | None, changes: list[str], tmp_path: pathlib.Path) -> None:
    """The best edit changes these lines; a second time nothing is left to do."""
    after = rewritten(tmp_path, "contract_of_hook", source, at)
    assert diff_lines(source, after) == changes
    still = at if at and at in after else None
    assert rewritten(tmp_path, "contract_of_hook", after, still) == after


HOOK = """import torch


class Clip:
    def attach(self, x):
        x.register_hook({hook})
        return x

    def {name}(self, grad):
        flat = grad.flatten(1)
        norm = flat.norm(dim=1, keepdim=True)
        {result}


Clip().attach(net(x)).sum().backward()
"""
SIZE = "hook '<unknown>' has changed the size of value"


@pytest.mark.parametrize(("hook", "name"), [("self", "__call__"), ("self.bound", "bound")])
def test_a_hook_gives_back_the_shape_it_got(tmp_path: pathlib.Path, hook: str, name: str) -> None:
    """What it has flattened comes back as it was; what it has summed, or passes on, is another fault, or none."""
    source = HOOK.format(hook=hook, name=name, result="return flat / norm.clamp_min(1.0)")
    after = rewritten(tmp_path, "contract_of_hook", source, "Clip().attach", message=SIZE)
    assert diff_lines(source, after) == [
        "-        return flat / norm.clamp_min(1.0)", "+        return (flat / norm.clamp_min(1.0)).view_as(grad)",
    ]  # fmt: skip
    assert rewritten(tmp_path, "contract_of_hook", after, "Clip().attach", message=SIZE) == after
    for result in ("return norm.squeeze(1)", "return grad * 2", "print(flat.mean())"):
        other = HOOK.format(hook=hook, name=name, result=result)
        assert rewritten(tmp_path, "contract_of_hook", other, "Clip().attach", message=SIZE) == other


def test_data_has_no_gradient(tmp_path: pathlib.Path) -> None:
    """Behind the plain tuple stands one that hands None on, for the layer whose input is data."""
    source = "def scaled(model):\n    for m in model:\n        m.register_full_backward_hook(lambda m, gi, go: gi[0] * 2)\nrun()\n"
    program = write(tmp_path, {"train.py": source})
    found = list(find_codemod("contract_of_hook")(Context(program=program, incident=failed())))
    bodies = [splice(source, one.edits) for one in sorted(found, key=lambda one: -one.belief)]
    assert bodies == [
        source.replace("gi[0] * 2", "(gi[0] * 2,)"),
        source.replace("gi[0] * 2", "(gi[0] * 2 if gi[0] is not None else None,)"),
    ]
