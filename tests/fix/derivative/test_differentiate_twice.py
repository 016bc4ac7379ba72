"""Operations without a second derivative are written with ones that have it."""

from __future__ import annotations

import pathlib

import pytest

from tests.fix.rewriting import diff_lines, rewritten

RIGHT = {
    "plain attention already": (
        """import torch
from torch import nn
from torch.nn.attention import SDPBackend, sdpa_kernel


class Critic(nn.Module):
    def __init__(self):
        super().__init__()
        self.project, self.score = nn.Linear(8, 24), nn.Linear(8, 1)

    def forward(self, inputs):
        query, key, value = self.project(inputs).unsqueeze(1).chunk(3, dim=-1)
        return self.score(nn.functional.scaled_dot_product_attention(query, key, value)).mean()


torch.manual_seed(0)
critic = Critic()
optimizer = torch.optim.Adam(critic.parameters())
inputs = torch.rand(4, 6, 8, requires_grad=True)
with sdpa_kernel(SDPBackend.MATH):
    score = critic(inputs)
(slope,) = torch.autograd.grad(score, inputs, create_graph=True)
loss = score + (slope.flatten(1).norm(dim=1) - 1).pow(2).mean()
optimizer.zero_grad()
loss.backward()
optimizer.step()
""",
        None,
        "derivative for aten::_scaled_dot_product_flash_attention_for_cpu_backward is not implemented",
    ),
    "no such operation": (
        """import torch
from torch import nn, optim
from torch.nn import functional as F
net = nn.Linear(3, 2)
opt = optim.SGD(net.parameters(), 0.1)
x = torch.randn(4, 3)
loss = net(x).sum()
opt.zero_grad()
loss.backward()
opt.step()
""",
        None,
        "the derivative for '_cdist_backward' is not implemented.",
    ),
    "distances with another norm": (
        """import torch
from torch import nn, optim
from torch.nn import functional as F
d = torch.cdist(a, b, p=1.0)
""",
        None,
        "the derivative for '_cdist_backward' is not implemented.",
    ),
}
WRONG = {
    "cdist": (
        """import torch
from torch import nn

torch.manual_seed(0)
energy, centers = nn.Linear(5, 1, bias=False), nn.Parameter(torch.rand(5, 3))
optimizer = torch.optim.Adam([*energy.parameters(), centers])
positions = torch.rand(16, 3, requires_grad=True)
forces_target = torch.rand(16, 3)
potential = energy(torch.cdist(positions, centers)).sum()
(forces,) = torch.autograd.grad(-potential, positions, create_graph=True)
loss = nn.functional.mse_loss(forces, forces_target)
optimizer.zero_grad()
loss.backward()
optimizer.step()
""",
        None,
        "the derivative for '_cdist_backward' is not implemented.",
        [
            "-potential = energy(torch.cdist(positions, centers)).sum()",
            "+potential = energy((positions[:, None] - centers).norm(dim=2)).sum()",
        ],
    ),
    "once_differentiable": (
        """import torch
from torch import nn
from torch.autograd.function import Function, once_differentiable


class Square(Function):
    @staticmethod
    def forward(ctx, inputs):
        ctx.save_for_backward(inputs)
        return inputs.pow(2)

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        return 2 * grad * ctx.saved_tensors[0]


torch.manual_seed(0)
layer = nn.Linear(3, 4)
optimizer = torch.optim.SGD(layer.parameters(), lr=0.1)
inputs = torch.rand(8, 3, requires_grad=True)
output = Square.apply(layer(inputs)).pow(2).sum()
(slope,) = torch.autograd.grad(output, inputs, create_graph=True)
optimizer.zero_grad()
slope.pow(2).mean().backward()
optimizer.step()
""",
        None,
        "trying to differentiate twice a function that was marked with @once_differentiable",
        [
            "-from torch.autograd.function import Function, once_differentiable",
            "+from torch.autograd.function import Function",
            "-    @once_differentiable",
        ],
    ),
}


@pytest.mark.parametrize(("source", "at", "message"), RIGHT.values(), ids=RIGHT)
def test_right_programs_stay(source: str, at: str | None, message: str, tmp_path: pathlib.Path) -> None:
    """Nothing is proposed where the fault is not."""
    assert rewritten(tmp_path, "differentiate_twice", source, at, message=message) == source


@pytest.mark.parametrize(("source", "at", "message", "changes"), WRONG.values(), ids=WRONG)
def test_wrong_programs_are_mended(
    source: str, at: str | None, message: str, changes: list[str], tmp_path: pathlib.Path
) -> None:
    """The best edit changes these lines; a second time nothing is left to do."""
    after = rewritten(tmp_path, "differentiate_twice", source, at, message=message)
    assert diff_lines(source, after) == changes
    still = at if at and at in after else None
    assert rewritten(tmp_path, "differentiate_twice", after, still, message=message) == after
