import torch
from torch import nn


class Energy(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(3, 16), nn.SiLU(), nn.Linear(16, 1))

    def forward(self, inputs):
        return {**inputs, "energy": self.net(inputs["positions"]).sum()}


class Forces(nn.Module):
    differentiates_by = ("positions",)

    def forward(self, inputs):
        by = [inputs[key] for key in self.differentiates_by]
        (slope,) = torch.autograd.grad(inputs["energy"], by, create_graph=True)
        return {**inputs, "forces": -slope}


class Potential(nn.Module):
    def __init__(self, *parts):
        super().__init__()
        self.parts = nn.ModuleList(parts)

    def forward(self, inputs):
        for part in self.children():
            for key in getattr(part, "differentiates_by", ()):
                inputs[key].requires_grad_()
        for part in self.parts:
            inputs = part(inputs)
        return inputs


torch.manual_seed(0)
potential = Potential(Energy(), Forces())
optimizer = torch.optim.SGD(potential.parameters(), lr=0.1)
for _ in range(3):
    made = potential({"positions": torch.randn(5, 3)})
    loss = made["energy"].square() + made["forces"].square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
