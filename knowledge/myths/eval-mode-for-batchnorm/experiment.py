"""`model.eval()` during training to avoid a BatchNorm error on a batch of one."""

import torch
from torch import nn


def train(*, remedy):
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Dropout(0.5), nn.Linear(4, 1))
    model.train(not remedy)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for _ in range(20):
        x = 5 + 10 * torch.randn(8, 3)
        loss = (model(x) - x.mean(1, keepdim=True) / 10).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    hidden = model[0](x)
    kept = (model[1](hidden).std(0) / model[1].weight.abs()).mean().item()
    return model[1].running_mean.tolist(), kept


remedy, spread = train(remedy=True)
meant, normal = train(remedy=False)
print("running mean after 20 steps, eval():", remedy)
print("running mean after 20 steps, train():", [round(one, 4) for one in meant])
print(f"spread of the normalised features (1 is meant), eval() and train(): {spread:.4f} {normal:.4f}")
layer = nn.BatchNorm1d(4)
try:
    layer(torch.randn(1, 4))
    error = "none"
except ValueError as failure:
    error = str(failure).partition(",")[0]
print("error on a batch of one, train():", error)

assert not any(remedy) and any(meant)
assert spread > 2 and abs(normal - 1) < 0.2
assert error.startswith("Expected more than 1 value per channel")
