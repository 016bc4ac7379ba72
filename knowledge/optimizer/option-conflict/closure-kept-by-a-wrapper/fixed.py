import torch
from torch import nn


class Sharpness(torch.optim.SGD):
    """Steps with the gradient at the worst point nearby."""

    def step(self, closure=None):
        assert closure is not None, "Sharpness Aware Minimization requires closure, but it was not provided"
        owned = [p for group in self.param_groups for p in group["params"]]
        with torch.no_grad():
            moved = [0.05 * p.grad / (p.grad.norm() + 1e-12) for p in owned]
            for p, by in zip(owned, moved):
                p.add_(by)
        self.zero_grad()
        loss = closure()
        with torch.no_grad():
            for p, by in zip(owned, moved):
                p.sub_(by)
        super().step()
        return loss


class Lookahead:
    def __init__(self, optimizer):
        self.optimizer = optimizer

    def step(self, closure=None):
        return self.optimizer.step(closure)


torch.manual_seed(0)
model = nn.Linear(4, 2)
inner = Sharpness(model.parameters(), lr=0.1)
optimizer = Lookahead(inner)
for x in torch.rand(24, 4).split(8):

    def closure():
        loss = model(x).square().mean()
        loss.backward()
        return loss

    inner.zero_grad()
    closure()
    optimizer.step(closure)
