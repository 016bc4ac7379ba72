import torch
from torch import nn


def perturb(model, x, target, size=0.1):
    x = x.clone().requires_grad_(True)
    with torch.enable_grad():
        loss = nn.functional.cross_entropy(model(x), target)
        (gradient,) = torch.autograd.grad(loss, x)
    return (x + size * gradient.sign()).detach()


def evaluate(model, batches):
    correct = 0
    with torch.no_grad():
        for x, target in batches:
            x = perturb(model, x, target)
            correct += (model(x).argmax(1) == target).sum().item()
    return correct


torch.manual_seed(0)
model = nn.Linear(8, 3)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
batches = [(torch.randn(4, 8), torch.randint(0, 3, (4,))) for _ in range(2)]
nn.functional.cross_entropy(model(batches[0][0]), batches[0][1]).backward()
optimizer.step()
evaluate(model, batches)
