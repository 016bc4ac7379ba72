"""`drop_last=True` where BatchNorm refuses a last batch of one sample."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def train(samples, **options):
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Linear(4, 1))
    steps = 0
    for (x,) in DataLoader(TensorDataset(torch.randn(samples, 3)), batch_size=4, **options):
        try:
            model(x).pow(2).mean().backward()
        except ValueError as failure:
            return str(failure).partition(",")[0]
        steps += 1
    gradient = model[0].weight.grad
    return steps, None if gradient is None else round(gradient.norm().item(), 4)


found = {
    "9 samples": train(9),
    "9 samples, drop_last=True": train(9, drop_last=True),
    "3 samples, drop_last=True": train(3, drop_last=True),
    "3 samples": train(3),
}
for name, result in found.items():
    print(f"batches of 4 and gradient norm, {name}: {result}")

assert str(found["9 samples"]).startswith("Expected more than 1 value per channel")
assert found["9 samples, drop_last=True"][0] == 2 and found["9 samples, drop_last=True"][1] > 0
assert found["3 samples, drop_last=True"] == (0, None) and found["3 samples"][0] == 1
