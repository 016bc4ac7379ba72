"""A forward hook clamps the output of a Tanh in place, which Tanh keeps for its backward."""

import torch
from torch import nn


def limiter(bound):
    def limit(module, inputs, output):
        return output.clamp(-bound, bound)

    return limit


torch.manual_seed(0)
model = nn.Sequential(nn.Linear(6, 8), nn.Tanh(), nn.Linear(8, 3))
model[1].register_forward_hook(limiter(0.4))
features, labels = torch.randn(4, 6), torch.tensor([0, 1, 2, 0])
loss = nn.functional.cross_entropy(model(features), labels)
loss.backward()
