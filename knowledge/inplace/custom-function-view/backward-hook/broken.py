"""A full backward hook wraps a layer's output in a view, and the next activation works in place."""

import torch
from torch import nn


def keep_gradient(module, grad_input, grad_output):
    gradients.append(grad_output[0])


torch.manual_seed(0)
gradients = []
model = nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU(inplace=True), nn.Flatten(), nn.Linear(4 * 36, 2))
model[0].register_full_backward_hook(keep_gradient)
loss = nn.functional.cross_entropy(model(torch.randn(2, 3, 8, 8)), torch.tensor([0, 1]))
loss.backward()
