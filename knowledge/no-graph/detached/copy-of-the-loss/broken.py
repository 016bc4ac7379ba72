import torch
from torch import nn


def finite(loss):
    if not torch.isfinite(loss):
        raise ValueError("the loss is not finite")
    return torch.tensor(loss)


torch.manual_seed(0)
model = nn.Linear(8, 3)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
x, target = torch.randn(4, 8), torch.tensor([0, 1, 2, 0])
loss = finite(nn.functional.cross_entropy(model(x), target))
loss.backward()
optimizer.step()
