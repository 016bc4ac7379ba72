"""Forces are a derivative of the energy, so that the norm of each pair, the zero one with itself too, is differentiated twice."""

import torch
from torch import nn

torch.autograd.set_detect_anomaly(True)


def pair_distances(positions):
    vectors = positions[:, None] - positions[None]
    return vectors.norm(dim=-1)


torch.manual_seed(0)
potential = nn.Sequential(nn.Linear(5, 16), nn.Tanh(), nn.Linear(16, 1, bias=False))
positions = torch.randn(5, 3, requires_grad=True)
reference = torch.randn(5, 3)
energy = potential(pair_distances(positions)).sum()
(gradient,) = torch.autograd.grad(energy, positions, create_graph=True)
loss = nn.functional.mse_loss(-gradient, reference)
loss.backward()
