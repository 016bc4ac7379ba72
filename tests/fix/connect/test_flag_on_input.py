"""An input requires grad before the forward whose gradient by it is asked for."""

from __future__ import annotations

import pytest

from tests.fix.rewriting import changed_lines, rewritten

HEAD = """import torch
from torch import nn
from torch.nn import functional as F
net = nn.Linear(4, 3)
x, y = torch.randn(2, 4), torch.tensor([0, 1])
"""
RIGHT = {
    "a flagged input": (
        HEAD
        + """x = x.detach().requires_grad_(True)
out = net(x).sum()
(g,) = torch.autograd.grad(out, x)
""",
        "autograd.grad",
    ),
    "a gradient by what a model computed": (
        HEAD
        + """h = net(x)
out = h.square().sum()
(g,) = torch.autograd.grad(out, h)
""",
        "autograd.grad",
    ),
    "parameters that require grad": (
        HEAD
        + """out = net(x).sum()
g = torch.autograd.grad(out, [p for p in net.parameters() if p.requires_grad])
""",
        "autograd.grad",
    ),
    "a walk that flags each point": (
        HEAD
        + """for _ in range(3):
    x.requires_grad_(True)
    (slope,) = torch.autograd.grad(net(x).sum(), x)
    x = (x - 0.1 * slope).detach()
""",
        "autograd.grad",
    ),
    "another function of that name": (
        HEAD
        + """def grad(out, x):
    return x


mixed = x * 2
grad(net(mixed), mixed)
""",
        "grad(net",
    ),
}
WRONG = {
    "a walk that detaches": (
        HEAD
        + """def walk(x):
    x.requires_grad_(True)
    for _ in range(3):
        (slope,) = torch.autograd.grad(net(x).sum(), x)
        x = (x - 0.1 * slope).detach()
    return x
walk(x)
""",
        "autograd.grad",
        ["x.requires_grad_(True)"],
    ),
    "a walk whose first point is flagged where it is made": (
        HEAD
        + """x = torch.randn(2, 4, requires_grad=True)
while x.norm() > 1:
    energy = net(x).sum()
    (slope,) = torch.autograd.grad(energy, x)
    x = x.detach() - 0.1 * slope
""",
        "autograd.grad",
        ["x.requires_grad_(True)"],
    ),
    "an interpolation": (
        HEAD
        + """mixed = 0.5 * x + 0.5 * torch.rand_like(x)
out = net(mixed).sum()
(g,) = torch.autograd.grad(out, mixed, create_graph=True)
""",
        "autograd.grad",
        ["mixed = (0.5 * x + 0.5 * torch.rand_like(x)).requires_grad_(True)"],
    ),
    "a call": (
        HEAD
        + """points = torch.rand(5, 4)
u = net(points)
(g,) = torch.autograd.grad(u.sum(), points)
""",
        "autograd.grad",
        ["points = torch.rand(5, 4).requires_grad_(True)"],
    ),
    "another name for data": (
        HEAD
        + """image = x
score = net(image)[0, 1]
(g,) = torch.autograd.grad(score, [image])
""",
        "autograd.grad",
        ["image = x.detach().requires_grad_(True)"],
    ),
    "a parameter of the function": (
        HEAD
        + """def penalty(critic, sample):
    score = critic(sample).sum()
    (g,) = torch.autograd.grad(score, sample, create_graph=True)
    return g.norm()


penalty(net, torch.randn(2, 4))
""",
        "autograd.grad",
        ["sample = sample.detach().requires_grad_(True)"],
    ),
    "a helper that gets input and output": (
        HEAD
        + """def slope(u, t):
    return torch.autograd.grad(u.sum(), t, create_graph=True)[0]


def residual():
    t = torch.rand(5, 4)
    u = net(t)
    return slope(u, t)


residual()
""",
        "autograd.grad",
        ["t = torch.rand(5, 4).requires_grad_(True)"],
    ),
    "an interpolation, all of it named": (
        HEAD
        + """mixed = 0.5 * x + 0.5 * torch.rand_like(x)
out = net(mixed)
(g,) = torch.autograd.grad(
    outputs=out, inputs=mixed, grad_outputs=torch.ones_like(out), create_graph=True)
""",
        "autograd.grad",
        ["mixed = (0.5 * x + 0.5 * torch.rand_like(x)).requires_grad_(True)"],
    ),
    "what a loader brings": (
        HEAD
        + """def penalty(scores, images):
    (g,) = torch.autograd.grad(scores.sum(), images, create_graph=True)
    return g.square().sum()


def fit(loader, opt):
    for step, real in enumerate(loader):
        print(len(real))
        scores = net(real)
        loss = scores.mean() + penalty(scores, real)
        loss.backward()
""",
        "autograd.grad",
        ["real.requires_grad_(True)"],
    ),
    "what a hook differentiates by": (
        HEAD
        + """def solve(x):
    z = net(x)
    point = z.detach()
    image = net(torch.cat([point, point[:, :1]], 1))

    def implicit(grad):
        def adjoint(g):
            return torch.autograd.grad(image, point, g, retain_graph=True)[0]

        return adjoint(grad)

    z.register_hook(implicit)
    return z


solve(x).sum().backward()
""",
        "torch.autograd.grad",
        ["point = z.detach().requires_grad_(True)"],
    ),
    "frozen parameters in the list": (
        HEAD
        + """out = net(x).sum()
g = torch.autograd.grad(out, list(net.parameters()))
""",
        "autograd.grad",
        ["g = torch.autograd.grad(out, [p for p in net.parameters() if p.requires_grad])"],
    ),
}


@pytest.mark.parametrize(("source", "at"), RIGHT.values(), ids=RIGHT)
def test_right_programs_stay(tmp_path, source: str, at: str) -> None:
    """Inputs that require grad, and functions of other libraries, are left alone."""
    assert rewritten(tmp_path, "flag_on_input", source, at or None) == source


@pytest.mark.parametrize(("source", "at", "wanted"), WRONG.values(), ids=WRONG)
def test_faults_are_cured(tmp_path, source: str, at: str, wanted: list[str]) -> None:
    """The flag is set before the forward; a second time nothing is left to do."""
    after = rewritten(tmp_path, "flag_on_input", source, at or None)
    assert changed_lines(source, after) == wanted
    again = at if at and at in after else None
    assert rewritten(tmp_path, "flag_on_input", after, again) == after
